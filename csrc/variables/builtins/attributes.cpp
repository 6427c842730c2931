// getattr, setattr, hasattr, delattr, and vars() of one object.
#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

// The attribute name, interned for the capture; null if it is not a known str.
PyObject* attribute_name(Tracer& t, Variable* v) {
  PyObject* name = plain(t, v);
  if (name == nullptr || !PyUnicode_CheckExact(name)) return nullptr;
  PyObject* interned = Py_NewRef(name);
  PyUnicode_InternInPlace(&interned);
  return t.keep_new(interned);
}

Answer call_getattr(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 3)) return unsupported(t, callable, arguments);
  PyObject* name = attribute_name(t, arguments.positional[1]);
  if (name == nullptr) return unsupported(t, callable, arguments);
  if (arguments.positional.size() == 2) return get_attribute(t, arguments.positional[0], name);
  Answer answer = t.wait(get_attribute(t, arguments.positional[0], name));
  if (!answer.ok() && raised(answer.failure(), PyExc_AttributeError)) return arguments.positional[2];
  return answer;
}

Answer call_hasattr(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  PyObject* name = attribute_name(t, arguments.positional[1]);
  if (name == nullptr) return unsupported(t, callable, arguments);
  return t.boolean(TRY(has_attribute(t, arguments.positional[0], name)));
}

Answer call_setattr(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(3, 3)) return unsupported(t, callable, arguments);
  PyObject* name = attribute_name(t, arguments.positional[1]);
  if (name == nullptr) return unsupported(t, callable, arguments);
  TRY(set_attribute(t, arguments.positional[0], name, arguments.positional[2]));
  return t.none();
}

Answer call_delattr(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  PyObject* name = attribute_name(t, arguments.positional[1]);
  if (name == nullptr) return unsupported(t, callable, arguments);
  TRY(delete_attribute(t, arguments.positional[0], name));
  return t.none();
}

Answer call_vars(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return t.fail(Reason::frame_introspection, callable_name(callable) + "()");
  return get_attribute(t, arguments.positional[0], t.intern("__dict__"));
}

}  // namespace

void add_attributes(Table& table) {
  table.add("builtins", {"getattr"}, call_getattr, 2);
  table.add("builtins", {"hasattr"}, call_hasattr);
  table.add("builtins", {"setattr"}, call_setattr, 2);
  table.add("builtins", {"delattr"}, call_delattr);
  table.add("builtins", {"vars"}, call_vars);
}

}  // namespace pellucid::variables::builtins
