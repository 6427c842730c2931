// str, repr, ascii and format: of known values by the real function, of objects by their special methods.
#include "py/once.h"
#include "variables/builtins/builtins.h"
#include "variables/exception.h"

namespace pellucid::variables::builtins {
namespace {

// Whether str(x) and repr(x) of this outside object run C code that looks at nothing but the object's identity and name.
bool has_fixed_repr(ObjectVariable* object) {
  if (!object->existed || object->real == nullptr || !object->by_identity) return false;
  PyTypeObject* type = Py_TYPE(object->real);
  return (PyType_Check(object->real) && type->tp_repr == PyType_Type.tp_repr) || PyCFunction_CheckExact(object->real);
}

// The generated __repr__ of a dataclass below the wrapper that ends recursion by id() and thread: an object that holds itself ends in
// a break here instead. Borrowed; null: not one.
PyObject* dataclass_repr(PyObject* function) {
  static py::Once<PyObject*> kept;
  PyObject* const wrapper_code = kept.get([] {
    py::Ref maker = py::Ref::share(library("dataclasses", "_recursive_repr"));
    py::Ref made = py::Ref::steal(maker ? PyObject_CallOneArg(maker.get(), maker.get()) : nullptr);
    PyObject* code = made ? PyObject_GetAttrString(made.get(), "__code__") : nullptr;
    PyErr_Clear();
    return code;
  });
  if (function == nullptr || !PyFunction_Check(function) || PyFunction_GET_CODE(function) != wrapper_code) return nullptr;
  py::Ref inner = py::Ref::steal(PyObject_GetAttrString(function, "__wrapped__"));  // the function's dict keeps it
  PyErr_Clear();
  return inner && PyFunction_Check(inner.get()) ? inner.get() : nullptr;
}

// "__str__", "__repr__" of an object that is neither known nor a container.
Answer text_of_object(Tracer& t, PyObject* callable, ObjectVariable* object, bool as_str, Arguments& arguments) {
  if (has_fixed_repr(object)) return t.constant_new(as_str ? PyObject_Str(object->real) : PyObject_Repr(object->real));
  for (const char* name : {"__str__", "__repr__"}) {
    if (!as_str && name[2] == 's') continue;
    Variable* method = TRY(class_lookup(t, object, t.intern(name)));
    if (method == nullptr) return unsupported(t, callable, arguments);
    method = t.force(method);
    if (as_function(method)) {
      if (PyObject* inner = dataclass_repr(method->real)) method = t.force(t.lazy(inner, t.sources().constant(inner)));
      Variable* text = t.force(TRY(t.wait(call(t, method, {{object}, {}}))));
      if (type_of(text) != &PyUnicode_Type) return unsupported(t, callable, arguments);  // a TypeError or a subclass
      return text;
    }
    if (PyType_IsSubtype(object->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
      // BaseException's own; a subclass in C with its own (OSError, SyntaxError) is told apart there.
      return exception_text(t, object, name[2] == 's');
    }
    bool inherited = as_object(method) && as_object(method)->real == mro_lookup(&PyBaseObject_Type, name);
    if (!(inherited && name[2] == 's')) break;  // object.__str__ is repr(); object.__repr__ shows the address
  }
  return unsupported(t, callable, arguments);
}

Answer call_text(Tracer& t, PyObject* callable, Arguments& arguments) {
  bool as_str = callable == reinterpret_cast<PyObject*>(&PyUnicode_Type);
  if (!arguments.only_positional(as_str ? 0 : 1, 1)) return fold(t, callable, arguments);  // str(bytes, encoding)
  if (arguments.positional.empty()) return t.string("");
  Variable* v = arguments.positional[0];
  if (as_tensor(v)) return data_dependent(t, callable, arguments);
  if (auto* object = as_object(v); object && object->inner == nullptr) return text_of_object(t, callable, object, as_str, arguments);
  return fold(t, callable, arguments);
}

Answer call_format(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 2)) return unsupported(t, callable, arguments);
  Variable* v = arguments.positional[0];
  if (as_tensor(v)) return data_dependent(t, callable, arguments);
  Variable* spec = arguments.positional.size() == 2 ? arguments.positional[1] : t.string("");
  PyObject* spec_text = plain(t, spec);
  if (spec_text == nullptr || !PyUnicode_CheckExact(spec_text)) return unsupported(t, callable, arguments);
  if (auto* object = as_object(v)) {
    Variable* method = TRY(class_lookup(t, object, t.intern("__format__")));
    if (method != nullptr && as_function(t.force(method))) {
      Variable* text = t.force(TRY(t.wait(call_special(t, object, "__format__", {{spec}, {}}))));
      if (type_of(text) != &PyUnicode_Type) return unsupported(t, callable, arguments);
      return text;
    }
    // object.__format__ with an empty specification is str().
    bool inherited =
        method != nullptr && as_object(t.force(method)) && as_object(t.force(method))->real == mro_lookup(&PyBaseObject_Type, "__format__");
    if (inherited && PyUnicode_GET_LENGTH(spec_text) == 0) {
      Arguments only{{v}, {}};
      return call_text(t, reinterpret_cast<PyObject*>(&PyUnicode_Type), only);
    }
    return unsupported(t, callable, arguments);
  }
  return fold(t, callable, arguments);
}

}  // namespace

void add_text(Table& table) {
  table.add("builtins", {"str", "repr"}, call_text);
  table.add("builtins", {"ascii"}, fold);
  table.add("builtins", {"format"}, call_format);
}

}  // namespace pellucid::variables::builtins
