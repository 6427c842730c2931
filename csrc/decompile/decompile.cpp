// structured_source: decodes, decompiles and prints, or says why there is no structured form.
#include "decompile/decompile.h"

#include "decompile/print.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

// A comprehension's code object stands alone: as the expression over its argument.
void print_comprehension(Session& session, Function& function, Printer& printer) {
  (void)session;
  (void)function;
  (void)printer;
  no_form("a comprehension without the function around it");
}

}  // namespace

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
    Printer printer(function.code.version);
    if (kind == CodeKind::kComprehension) print_comprehension(session, function, printer);
    printer.function(function);
    *out = printer.take();
  } catch (const NoForm& none) {
    *out = {};
    out->reason = none.reason;
  }
  return true;
}

}  // namespace pellucid::decompile
