// call_method: a method of a builtin type, by name. Special methods that every kind shares map to the protocols; the rest goes to the
// kind's own file.
#include <opcode.h>

#include "base/check.h"
#include "variables/values.h"

namespace pellucid::variables {
namespace {

struct BinaryName {
  std::string_view name;
  int operation;
  bool reflected;
};

// Methods of operators as a program names them, which are rare: obj.__add__(x).
constexpr BinaryName kBinaryNames[] = {
    {"__add__", NB_ADD, false},
    {"__radd__", NB_ADD, true},
    {"__sub__", NB_SUBTRACT, false},
    {"__rsub__", NB_SUBTRACT, true},
    {"__mul__", NB_MULTIPLY, false},
    {"__rmul__", NB_MULTIPLY, true},
    {"__mod__", NB_REMAINDER, false},
    {"__or__", NB_OR, false},
    {"__ror__", NB_OR, true},
    {"__and__", NB_AND, false},
    {"__rand__", NB_AND, true},
    {"__xor__", NB_XOR, false},
    {"__rxor__", NB_XOR, true},
    {"__iadd__", NB_INPLACE_ADD, false},
    {"__imul__", NB_INPLACE_MULTIPLY, false},
    {"__ior__", NB_INPLACE_OR, false},
    {"__iand__", NB_INPLACE_AND, false},
    {"__isub__", NB_INPLACE_SUBTRACT, false},
    {"__ixor__", NB_INPLACE_XOR, false},
};

constexpr std::pair<std::string_view, int> kComparisonNames[] = {{"__eq__", Py_EQ}, {"__ne__", Py_NE}, {"__lt__", Py_LT},
                                                                 {"__le__", Py_LE}, {"__gt__", Py_GT}, {"__ge__", Py_GE}};

bool has_method(Variable* self, PyObject* name) {
  PyTypeObject* type = type_of(self);
  if (type == nullptr) return false;
  const bool found = PyObject_HasAttr(reinterpret_cast<PyObject*>(type), name) != 0;  // a builtin type: C code
  PyErr_Clear();
  return found;
}

// The operator methods answer NotImplemented where the operator tries the other side; only equal types are surely answered.
bool same_family(Variable* a, Variable* b) {
  if (a->kind != b->kind) return false;
  return a->kind == Kind::kList || a->kind == Kind::kTuple || a->kind == Kind::kSet || a->kind == Kind::kDict;
}

Answer call_shared(Tracer& t, Variable* self, PyObject* name, std::string_view method, Arguments& arguments, bool* handled) {
  auto& args = arguments.positional;
  *handled = true;
  if (arguments.keywords.empty() && has_method(self, name)) {
    if (args.empty()) {
      if (method == "__len__") return t.integer(TRY(length(t, self)));
      if (method == "__iter__") return get_iterator(t, self);
      if (method == "__bool__") return t.boolean(TRY(truth(t, self)));
      if (method == "__reversed__" && (self->kind == Kind::kList || self->kind == Kind::kDict || self->kind == Kind::kDictView)) {
        auto* iterator = t.make<IteratorVariable>();
        iterator->form = IteratorVariable::Form::kReversed;
        Variable* items = self->kind == Kind::kList ? self : t.tuple(TRY(unpack(t, self)));
        iterator->over = items;
        iterator->index = TRY(length(t, items)) - 1;
        return iterator;
      }
    }
    if (args.size() == 1) {
      if (method == "__getitem__") return get_item(t, self, args[0]);
      if (method == "__contains__") return contains(t, self, args[0]);
      if (method == "__delitem__") {
        TRY(delete_item(t, self, args[0]));
        return t.none();
      }
      Variable* other = t.force(args[0]);
      if (same_family(self, other)) {
        for (auto& [special, operation] : kComparisonNames) {
          if (method == special) return compare(t, operation, self, other);
        }
        for (auto& entry : kBinaryNames) {
          if (method == entry.name)
            return entry.reflected ? binary(t, entry.operation, other, self) : binary(t, entry.operation, self, other);
        }
      }
      const bool sequence = self->kind == Kind::kList || self->kind == Kind::kTuple;
      if (sequence && method == "__mul__") return binary(t, NB_MULTIPLY, self, other);
      if (sequence && method == "__rmul__") return binary(t, NB_MULTIPLY, other, self);
      if (self->kind == Kind::kList && (method == "__iadd__" || method == "__imul__")) {
        return binary(t, method == "__iadd__" ? NB_INPLACE_ADD : NB_INPLACE_MULTIPLY, self, other);
      }
    }
    if (args.size() == 2 && method == "__setitem__") {
      TRY(set_item(t, self, args[0], args[1]));
      return t.none();
    }
  }
  *handled = false;
  return nullptr;
}

bool exception_like(Variable* v) {
  PyTypeObject* type = v->kind == Kind::kObject ? type_of(v) : nullptr;
  return type && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException));
}

Answer call_iterator_method(Tracer& t, Variable* self, PyObject* name, std::string_view method, Arguments& arguments) {
  auto* generator = as<GeneratorVariable>(self, Kind::kGenerator);
  auto& args = arguments.positional;
  if (method == "__iter__" && arguments.only_positional(0, 0)) return self;
  if (method == "__next__" && arguments.only_positional(0, 0)) {
    if (generator) return t.resume_generator(generator, t.none());
    Variable* value = nullptr;
    if (TRY(next(t, self, &value))) return value;
    auto* exception = t.make<ObjectVariable>();
    exception->existed = false;
    exception->type = reinterpret_cast<PyTypeObject*>(PyExc_StopIteration);
    exception->class_variable = t.known_object(PyExc_StopIteration);
    return t.raise(exception);
  }
  if (generator == nullptr) return no_such_method(t, self, name, arguments);
  if (method == "send" && arguments.only_positional(1, 1)) return t.resume_generator(generator, args[0]);
  if (method == "throw" && arguments.only_positional(1, 3)) {  // throw(exception) or throw(type, exception, traceback)
    Variable* given = args.size() > 1 ? t.force(args[1]) : nullptr;
    const bool has_instance = given && exception_like(given);
    if (given && !has_instance && given->real != Py_None) return no_such_method(t, self, name, arguments);
    Variable* exception = has_instance ? given : TRY(exception_instance(t, t.force(args[0])));
    return t.throw_into_generator(generator, exception);
  }
  if (method == "close" && arguments.only_positional(0, 0)) {
    if (generator->frame == nullptr) return t.none();
    Variable* exit = TRY(exception_instance(t, t.known_object(PyExc_GeneratorExit)));
    Answer answer = t.throw_into_generator(generator, exit);
    if (!answer.ok()) {
      if (raised(answer.failure(), PyExc_GeneratorExit) || raised(answer.failure(), PyExc_StopIteration)) return t.none();
      return answer;
    }
    return t.raise_new(PyExc_RuntimeError, "generator ignored GeneratorExit");
  }
  return no_such_method(t, self, name, arguments);
}

Answer call_slice_method(Tracer& t, Variable* self, PyObject* name, Arguments& arguments) {
  if (text_of(name) != "indices" || !arguments.only_positional(1, 1)) return no_such_method(t, self, name, arguments);
  PyObject* slice = known(t, self);
  PyObject* size = known(t, arguments.positional[0]);
  if (slice == nullptr || size == nullptr || !is_data(slice) || !is_data(size)) return no_such_method(t, self, name, arguments);
  return from_result(t, PyObject_CallMethod(slice, "indices", "O", size));
}

// An instance, class, module, function: whatever the attribute is. C code that is bound to it by name comes here again and must not
// be asked for its attribute a second time.
Answer call_method_of_object(Tracer& t, Variable* self, PyObject* name, Arguments arguments) {
  if (self->kind == Kind::kObject) {
    Variable* method = TRY(class_lookup(t, self, name));
    method = method ? t.force(method) : nullptr;
    PyObject* real = method && method->kind == Kind::kObject ? method->real : nullptr;
    if (real && (Py_TYPE(real) == &PyWrapperDescr_Type || Py_TYPE(real) == &PyMethodDescr_Type)) {
      arguments.positional.insert(arguments.positional.begin(), self);
      return call(t, method, std::move(arguments));
    }
    if (self->real && PyType_Check(self->real) &&
        Py_TYPE(self->real)->tp_getattro == PyType_Type.tp_getattro) {  // a class method in C, or a method called through its class
      py::Ref found = py::Ref::steal(PyObject_GetAttr(self->real, name));
      if (!found) PyErr_Clear();
      if (found && PyCFunction_Check(found.get())) return call(t, t.known_object(found.get()), std::move(arguments));
    }
  }
  Variable* callee = t.force(TRY(t.wait(get_attribute(t, self, name))));
  auto* again = as<BuiltinMethodVariable>(callee, Kind::kBuiltinMethod);
  if (again && again->self == self) return no_such_method(t, self, name, arguments);
  return call(t, callee, std::move(arguments));
}

}  // namespace

Answer call_method(Tracer& t, Variable* self, PyObject* name, Arguments arguments) {
  self = t.force(self);
  if (self->kind == Kind::kTensor) return call_tensor_method(t, static_cast<TensorVariable*>(self), name, arguments);
  if (self->kind == Kind::kConstant) return call_constant_method(t, self, name, arguments);
  const std::string_view method = text_of(name);
  switch (self->kind) {
    case Kind::kIterator:
    case Kind::kGenerator:
      return call_iterator_method(t, self, name, method, arguments);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kSet:
    case Kind::kSlice:
    case Kind::kDictView:
      break;
    default:
      return call_method_of_object(t, self, name, std::move(arguments));
  }
  if (method.starts_with("__")) {
    bool handled = false;
    Answer answer = call_shared(t, self, name, method, arguments, &handled);
    if (handled) return answer;
  }
  switch (self->kind) {
    case Kind::kList:
      return call_list_method(t, static_cast<ListVariable*>(self), name, arguments);
    case Kind::kTuple:
      return call_tuple_method(t, static_cast<TupleVariable*>(self), name, arguments);
    case Kind::kDict:
      return call_dict_method(t, static_cast<DictVariable*>(self), name, arguments);
    case Kind::kSet:
      return call_set_method(t, self, name, arguments);
    case Kind::kSlice:
      return call_slice_method(t, self, name, arguments);
    default:
      return call_view_method(t, static_cast<DictViewVariable*>(self), name, arguments);
  }
}

}  // namespace pellucid::variables
