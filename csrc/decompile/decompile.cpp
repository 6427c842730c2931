// structured_source: decodes, decompiles and prints, or says why there is no structured form.
#include "decompile/decompile.h"

#include "decompile/print.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
bool structured_source(PyObject* code, const Options& options, Decompiled* out) {
  Session session;
  Function& function = *session.arena.function();
  if (!bytecode::decode(code, function.code)) return false;
  try {
    CodeKind kind = kind_of(function.code);
    if (options.unit == Unit::kFunction && kind != CodeKind::kLambda) kind = CodeKind::kFunction;
    if (options.unit == Unit::kClass) kind = CodeKind::kClass;
    if (options.unit == Unit::kModule) kind = CodeKind::kModule;
    decompile_function(session, function, kind);
    Printer printer(function.code.version, options.line_layout);
    if (kind == CodeKind::kComprehension) {
      printer.expression(function, lone_comprehension(session, function));
    } else {
      printer.function(function);
    }
    *out = printer.take();
  } catch (const NoForm& none) {
    *out = {};
    out->reason = none.reason;
  }
  return true;
}

}  // namespace pellucid::decompile
