// Callables that always end the graph, each with the reason that says why: they look at the frame, write output, or make objects
// whose behaviour belongs to the program as written.
#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

template <Reason kReason>
Answer break_with(Tracer& t, PyObject* callable, Arguments&) {
  return t.fail(kReason, callable_name(callable));
}

}  // namespace

void add_breaks(Table& table) {
  table.add("builtins", {"locals", "globals", "dir", "eval", "exec", "compile"}, break_with<Reason::frame_introspection>);
  table.add("builtins", {"breakpoint"}, break_with<Reason::frame_introspection>);
  table.add("sys", {"_getframe", "exc_info", "settrace", "setprofile", "_current_frames"}, break_with<Reason::frame_introspection>);
  table.add("inspect", {"currentframe", "stack", "trace"}, break_with<Reason::frame_introspection>);
  table.add("traceback", {"print_exc", "print_stack", "format_exc", "format_stack", "extract_stack"},
            break_with<Reason::frame_introspection>);
  table.add("builtins", {"print", "input", "open"}, break_with<Reason::side_effect_output>);
  table.add("warnings", {"warn", "warn_explicit", "showwarning"}, break_with<Reason::side_effect_output>);
  table.add("logging", {"debug", "info", "warning", "error", "critical", "exception", "log"}, break_with<Reason::side_effect_output>);
  table.add("logging",
            {"Logger.debug", "Logger.info", "Logger.warning", "Logger.error", "Logger.critical", "Logger.exception", "Logger.log"},
            break_with<Reason::side_effect_output>);
  table.add("builtins", {"__import__"}, break_with<Reason::import_in_function>);
  table.add("importlib", {"import_module", "reload"}, break_with<Reason::import_in_function>);
  // Descriptors made by the traced program would have to be rebuilt with the functions they hold.
  table.add("builtins", {"property", "classmethod", "staticmethod", "memoryview", "bytearray"}, break_with<Reason::unsupported_builtin>);
  table.add_instances("functools", {"_lru_cache_wrapper"}, break_with<Reason::unsupported_callable>);  // its cache is seen by others
}

}  // namespace pellucid::variables::builtins
