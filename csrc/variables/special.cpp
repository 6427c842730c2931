// Special methods of user classes and the small questions that all protocols ask: indices, slices, exceptions by type, truth of
// an answer. Knows no kind of container.
#include "base/check.h"
#include "variables/values.h"

namespace pellucid::variables {

Result<Special> find_special(Tracer& t, Variable* object, const char* name) {
  Special special;
  PyObject* interned = t.intern(name);
  special.method = TRY(class_lookup(t, object, interned));
  if (special.method == nullptr) return special;
  special.method = t.force(special.method);
  PyObject* real = special.method->real;
  if (special.method->kind == Kind::kObject && real && (Py_TYPE(real) == &PyWrapperDescr_Type || Py_TYPE(real) == &PyMethodDescr_Type)) {
    special.builtin = PyDescr_TYPE(real);
    special.object_default = special.builtin == &PyBaseObject_Type;
  }
  return special;
}

Answer call_special_now(Tracer& t, Variable* object, const char* name, std::vector<Variable*> arguments) {
  Arguments packed;
  packed.positional = std::move(arguments);
  Variable* result = TRY(t.wait(call_special(t, object, name, std::move(packed))));
  CHECK(result) << "a call that was waited for has no result: " << name;
  return result;
}

Variable* inner_of(Variable* object, const Special& special) {
  auto* instance = as_object(object);
  if (instance == nullptr || instance->inner == nullptr || special.builtin == nullptr) return nullptr;
  PyTypeObject* held = type_of(instance->inner);
  return held && PyType_IsSubtype(held, special.builtin) && special.builtin != &PyBaseObject_Type ? instance->inner : nullptr;
}

bool is_not_implemented(Variable* v) { return v && v->kind == Kind::kConstant && v->real == Py_NotImplemented; }

bool raised(const Failure* failure, PyObject* type) {
  return failure && failure->kind == Failure::Kind::kRaise && failure->exception && exception_matches(failure->exception, type);
}

Failed raise_key_error(Tracer& t, Variable* key) {  // its argument is the key itself
  auto* exception = t.make<ObjectVariable>();
  exception->existed = false;
  exception->type = reinterpret_cast<PyTypeObject*>(PyExc_KeyError);
  exception->class_variable = t.known_object(PyExc_KeyError);
  exception->arguments.push_back(key);
  return t.raise(exception);
}

Failed raise_unhashable(Tracer& t, Variable* v) { return t.raise_new(PyExc_TypeError, "unhashable type: '%.200s'", type_name(v)); }

Answer truth_of_answer(Tracer& t, Answer answer, bool negate) {
  Variable* value = TRY(std::move(answer));
  const bool yes = TRY(truth(t, value));
  return t.boolean(yes != negate);
}

bool is_slice(Variable* v) { return v->kind == Kind::kSlice || (v->kind == Kind::kConstant && Py_TYPE(v->real) == &PySlice_Type); }

Result<Py_ssize_t> index_value(Tracer& t, Variable* v, PyObject* error) {
  v = t.force(v);
  PyObject* value = known(t, v);
  if (value && (PyLong_CheckExact(value) || PyBool_Check(value) ||
                (PyLong_Check(value) && Py_TYPE(value)->tp_as_number->nb_index == PyLong_Type.tp_as_number->nb_index))) {
    Py_ssize_t index = PyNumber_AsSsize_t(value, error);
    if (index == -1 && PyErr_Occurred()) return t.raise_python_error();
    return index;
  }
  if (v->kind == Kind::kTensor) return t.fail(Reason::data_dependent_operator, "a tensor is used as an index of a Python sequence");
  if (v->kind == Kind::kObject && !value) {
    Special special = TRY(find_special(t, v, "__index__"));
    if (special.method && !special.builtin) {
      Variable* result = t.force(TRY(call_special_now(t, v, "__index__", {})));
      if (result->kind == Kind::kConstant && PyLong_Check(result->real)) return index_value(t, result, error);
      return t.fail(Reason::unsupported_operator, "__index__ gave " + describe(result));
    }
    if (special.method) return t.fail(Reason::unsupported_operator, "index of type " + std::string(type_name(v)));
  }
  if (value && !is_data(value)) return t.fail(Reason::unsupported_operator, "index of type " + std::string(type_name(v)));
  return t.raise_new(PyExc_TypeError, "'%.200s' object cannot be interpreted as an integer", type_name(v));
}

Result<SliceBounds> slice_bounds(Tracer& t, Variable* v, Py_ssize_t size) {
  PyObject* slice = known(t, v);
  if (slice == nullptr || Py_TYPE(slice) != &PySlice_Type || !is_data(slice)) {
    return t.fail(Reason::data_dependent_operator, "slice of a Python sequence with parts that are not known");
  }
  SliceBounds bounds{};
  if (PySlice_Unpack(slice, &bounds.start, &bounds.stop, &bounds.step) < 0) return t.raise_python_error();
  bounds.count = PySlice_AdjustIndices(size, &bounds.start, &bounds.stop, bounds.step);
  return bounds;
}

Failed no_such_method(Tracer& t, Variable* self, PyObject* name, const Arguments& arguments) {
  std::string detail = std::string(type_name(self)) + "." + std::string(text_of(name)) + "(";
  const char* separator = "";
  for (Variable* v : arguments.positional) {
    detail += separator + describe(v);
    separator = ", ";
  }
  for (auto& [key, value] : arguments.keywords) {
    detail += separator + std::string(text_of(key)) + "=" + describe(value);
    separator = ", ";
  }
  return t.fail(Reason::unsupported_method, detail + ")");
}

}  // namespace pellucid::variables
