// structured_source: decodes, and says for each code object whether it has a structured form.
#include "decompile/decompile.h"

namespace pellucid::decompile {

bool structured_source(PyObject* code, const Options&, Decompiled* out) {
  bytecode::Code decoded;
  if (!bytecode::decode(code, decoded)) return false;
  out->structured = false;
  out->reason = "no rule gives this code a structure";
  return true;
}

}  // namespace pellucid::decompile
