// Values that are wholly known: what their real object is, and C code that is called on them instead of being modelled. Only code that
// is pure on plain data is ever called here; nothing of the traced program runs.
#include <unordered_set>

#include "base/check.h"
#include "py/once.h"
#include "source/plain.h"
#include "variables/values.h"

namespace pellucid::variables {

PyObject* module_attribute(const char* module, const char* name) {
  py::Ref imported = py::Ref::steal(PyImport_ImportModule(module));
  PyObject* attribute = imported ? PyObject_GetAttrString(imported.get(), name) : nullptr;
  CHECK(attribute) << module << "." << name << " is missing";
  return attribute;
}

namespace {

// torch's value types: immutable, compared and hashed in C.
struct ValueTypes {
  PyTypeObject* types[8] = {};  // torch.Size first
  bool has(PyTypeObject* type) const {
    for (int i = 1; i < 8; i++) {
      if (types[i] == type) return true;
    }
    return false;
  }
  PyTypeObject* size() const { return types[0]; }
};

const ValueTypes& torch_value_types() {
  static py::Once<ValueTypes> found;
  return found.get([] {
    static const char* const names[8] = {"Size", "dtype", "device", "layout", "memory_format", "qscheme", "finfo", "iinfo"};
    ValueTypes result;
    for (int i = 0; i < 8; i++) result.types[i] = reinterpret_cast<PyTypeObject*>(module_attribute("torch", names[i]));
    return result;
  });
}

bool all_data(PyObject* const* items, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!is_data(items[i])) return false;
  }
  return true;
}

bool set_of_data(PyObject* set) {
  py::Ref items = py::Ref::steal(PySequence_Tuple(set));
  if (!items) {
    PyErr_Clear();
    return false;
  }
  return all_data(&PyTuple_GET_ITEM(items.get(), 0), PyTuple_GET_SIZE(items.get()));
}

}  // namespace

PyTypeObject* torch_size_type() { return torch_value_types().size(); }

bool is_data(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBool_Type || type == &PyFloat_Type || object == Py_None ||
      type == &PyBytes_Type || type == &PyComplex_Type || type == &PyRange_Type || object == Py_Ellipsis || object == Py_NotImplemented) {
    return true;
  }
  const ValueTypes& torch = torch_value_types();
  if (type == &PyTuple_Type || type == torch.size()) return all_data(&PyTuple_GET_ITEM(object, 0), PyTuple_GET_SIZE(object));
  if (type == &PySlice_Type) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return is_data(slice->start) && is_data(slice->stop) && is_data(slice->step);
  }
  if (type == &PyFrozenSet_Type) return set_of_data(object);
  return torch.has(type);
}

bool is_data_type(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyBytes_Type ||
         type == &PyComplex_Type || type == &PyRange_Type || type == &PyTuple_Type || type == &PySlice_Type || type == &PyFrozenSet_Type ||
         type == Py_TYPE(Py_None) || type == torch_value_types().size() || torch_value_types().has(type);
}

namespace {

PyTypeObject* itertools_type(const char* name) { return reinterpret_cast<PyTypeObject*>(module_attribute("itertools", name)); }

PyTypeObject* iterator_type(IteratorVariable* iterator) {
  using Form = IteratorVariable::Form;
  static py::Once<PyTypeObject*> kept_chain;
  PyTypeObject* const chain = kept_chain.get([] { return itertools_type("chain"); });
  static py::Once<PyTypeObject*> kept_repeat;
  PyTypeObject* const repeat = kept_repeat.get([] { return itertools_type("repeat"); });
  static py::Once<PyTypeObject*> kept_count;
  PyTypeObject* const count = kept_count.get([] { return itertools_type("count"); });
  static py::Once<PyTypeObject*> kept_islice;
  PyTypeObject* const islice = kept_islice.get([] { return itertools_type("islice"); });
  switch (iterator->form) {
    case Form::kSequence: {
      Variable* over = iterator->over;
      if (!iterator->inner.empty()) return &PySetIter_Type;
      if (as_list(over)) return &PyListIter_Type;
      if (auto* constant = as_constant(over)) {
        if (PyUnicode_CheckExact(constant->real)) return &PyUnicodeIter_Type;
        if (PyRange_Check(constant->real)) return &PyRangeIter_Type;
        if (PyBytes_CheckExact(constant->real)) return &PyBytesIter_Type;
      }
      return as_tuple(over) ? &PyTupleIter_Type : &PySeqIter_Type;
    }
    case Form::kDict:
      return iterator->which == 0 ? &PyDictIterKey_Type : iterator->which == 1 ? &PyDictIterValue_Type : &PyDictIterItem_Type;
    case Form::kEnumerate:
      return &PyEnum_Type;
    case Form::kZip:
      return &PyZip_Type;
    case Form::kMap:
      return &PyMap_Type;
    case Form::kFilter:
      return &PyFilter_Type;
    case Form::kChain:
      return chain;
    case Form::kRepeat:
      return repeat;
    case Form::kCount:
      return count;
    case Form::kIslice:
      return islice;
    case Form::kReversed:
      return as_list(iterator->over) ? &PyListRevIter_Type : &PyReversed_Type;
    case Form::kCallable:
      return &PyCallIter_Type;
  }
  return nullptr;
}

}  // namespace

PyTypeObject* type_of(Variable* v) {
  switch (v->kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kLazy: {
      auto* lazy = static_cast<LazyVariable*>(v);
      return lazy->resolved ? type_of(lazy->resolved) : nullptr;
    }
    case Kind::kConstant:
      return Py_TYPE(v->real);
    case Kind::kTensor:
      return static_cast<TensorVariable*>(v)->type;
    case Kind::kTuple:
      return static_cast<TupleVariable*>(v)->type;
    case Kind::kList:
      return &PyList_Type;
    case Kind::kDict:
      return static_cast<DictVariable*>(v)->type;
    case Kind::kSet:
      return static_cast<SetVariable*>(v)->frozen ? &PyFrozenSet_Type : &PySet_Type;
    case Kind::kSlice:
      return &PySlice_Type;
    case Kind::kFunction:
      return &PyFunction_Type;
    case Kind::kBoundMethod:
      return &PyMethod_Type;
    case Kind::kBuiltinMethod:
      return &PyCFunction_Type;
    case Kind::kObject:
      return static_cast<ObjectVariable*>(v)->type;
    case Kind::kCell:
      return &PyCell_Type;
    case Kind::kIterator:
      return iterator_type(static_cast<IteratorVariable*>(v));
    case Kind::kDictView: {
      const uint8_t which = static_cast<DictViewVariable*>(v)->which;
      return which == 0 ? &PyDictKeys_Type : which == 1 ? &PyDictValues_Type : &PyDictItems_Type;
    }
    case Kind::kSuper:
      return &PySuper_Type;
    case Kind::kPartial: {
      static py::Once<PyTypeObject*> kept_partial;
      PyTypeObject* const partial =
          kept_partial.get([] { return reinterpret_cast<PyTypeObject*>(module_attribute("functools", "partial")); });
      return partial;
    }
    case Kind::kGenerator:
      return &PyGen_Type;
  }
  return nullptr;
}

const char* type_name(Variable* v) {
  PyTypeObject* type = type_of(v);
  return type ? type->tp_name : "object";
}

std::string describe(Variable* v) {
  if (v == nullptr) return "nothing";
  auto counted = [](const char* what, size_t n) { return std::string(what) + " of " + std::to_string(n); };
  auto named = [](const char* what, PyObject* name) {
    return std::string(what) + (name && PyUnicode_Check(name) ? " " + std::string(text_of(name)) : std::string());
  };
  switch (v->kind) {
    case Kind::kNull:
      return "NULL";
    case Kind::kLazy: {
      auto* lazy = static_cast<LazyVariable*>(v);
      return lazy->resolved ? describe(lazy->resolved) : std::string("value of type ") + Py_TYPE(v->real)->tp_name;
    }
    case Kind::kConstant: {
      std::string text = source::plain_text(v->real);
      if (text.size() > 60) text = text.substr(0, 57) + "...";
      return std::string(Py_TYPE(v->real)->tp_name) + " " + text;
    }
    case Kind::kTensor:
      return type_name(v)[0] == 'P' ? "Parameter" : "Tensor";
    case Kind::kTuple:
      return counted(type_name(v), static_cast<TupleVariable*>(v)->items.size());
    case Kind::kList:
      return counted("list", static_cast<ListVariable*>(v)->items.size());
    case Kind::kDict:
      return counted(type_name(v), static_cast<DictVariable*>(v)->live);
    case Kind::kSet:
      return counted(type_name(v), static_cast<size_t>(PySet_GET_SIZE(static_cast<SetVariable*>(v)->keys.get())));
    case Kind::kSlice:
      return "slice";
    case Kind::kFunction:
      return named("function", static_cast<FunctionVariable*>(v)->qualname);
    case Kind::kBoundMethod:
      return "method of " + describe(static_cast<BoundMethodVariable*>(v)->self);
    case Kind::kBuiltinMethod: {
      auto* method = static_cast<BuiltinMethodVariable*>(v);
      return named("method", method->name) + " of " + describe(method->self);
    }
    case Kind::kObject: {
      if (v->real && PyType_Check(v->real)) return std::string("class ") + reinterpret_cast<PyTypeObject*>(v->real)->tp_name;
      if (v->real && PyModule_Check(v->real)) {
        const char* name = PyModule_GetName(v->real);
        if (name == nullptr) PyErr_Clear();
        return std::string("module ") + (name ? name : "?");
      }
      if (v->real && PyCFunction_Check(v->real)) {
        return std::string("builtin function ") + reinterpret_cast<PyCFunctionObject*>(v->real)->m_ml->ml_name;
      }
      return std::string("object of class ") + type_name(v);
    }
    case Kind::kCell:
      return "cell";
    case Kind::kIterator:
      return type_name(v);
    case Kind::kDictView:
      return type_name(v);
    case Kind::kSuper:
      return "super object";
    case Kind::kPartial:
      return "partial of " + describe(static_cast<PartialVariable*>(v)->function);
    case Kind::kGenerator:
      return named("generator", static_cast<GeneratorVariable*>(v)->name);
  }
  return "?";
}

namespace {

bool may_be_known(Variable* v) {  // without resolving anything lazy: no guard may come from asking
  if (auto* lazy = as<LazyVariable>(v, Kind::kLazy)) return lazy->resolved == nullptr || may_be_known(lazy->resolved);
  return v->kind == Kind::kConstant || v->kind == Kind::kTuple || v->kind == Kind::kSlice || v->kind == Kind::kSet ||
         v->kind == Kind::kObject || v->kind == Kind::kFunction;
}

PyObject* known_tuple(Tracer& t, TupleVariable* tuple) {
  for (Variable* item : tuple->items) {
    if (!may_be_known(item)) return nullptr;
  }
  std::vector<PyObject*> items;
  for (Variable* item : tuple->items) {
    PyObject* value = known(t, item);
    if (value == nullptr) return nullptr;
    items.push_back(value);
  }
  if (tuple->real) return tuple->real;  // every item is guarded now, so the tuple outside is as known as one made here
  py::Ref made = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  CHECK(made) << "no memory for a tuple";
  for (size_t i = 0; i < items.size(); i++) PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), Py_NewRef(items[i]));
  if (tuple->type != &PyTuple_Type) {
    // tuple.__new__, not the class's: a namedtuple's own takes its items one by one, in Python.
    py::Ref arguments = py::Ref::steal(PyTuple_Pack(1, made.get()));
    made = py::Ref::steal(arguments ? PyTuple_Type.tp_new(tuple->type, arguments.get(), nullptr) : nullptr);
    if (!made) {
      PyErr_Clear();
      return nullptr;
    }
  }
  return t.keep(made.get());
}

}  // namespace

PyObject* known(Tracer& t, Variable* v) {
  if (!may_be_known(v)) return nullptr;
  v = t.force(v);
  switch (v->kind) {
    case Kind::kConstant:
      return v->real;
    case Kind::kTuple:
      return known_tuple(t, static_cast<TupleVariable*>(v));
    case Kind::kSet:
      return static_cast<SetVariable*>(v)->frozen ? static_cast<SetVariable*>(v)->keys.get() : nullptr;
    case Kind::kSlice: {
      auto* slice = static_cast<SliceVariable*>(v);
      PyObject* parts[3] = {};
      for (int i = 0; i < 3; i++) {
        parts[i] = slice->parts[i] ? known(t, slice->parts[i]) : Py_None;
        if (parts[i] == nullptr) return nullptr;
      }
      return t.keep_new(PySlice_New(parts[0], parts[1], parts[2]));
    }
    case Kind::kObject: {
      auto* object = static_cast<ObjectVariable*>(v);
      return object->by_identity && object->existed ? object->real : nullptr;
    }
    case Kind::kFunction:  // from outside they are guarded by their code, unless the entry itself keeps them
      return v->real && v->source && v->source->kind == source::Kind::kConst ? v->real : nullptr;
    default:
      return nullptr;
  }
}

Answer from_result(Tracer& t, PyObject* owned, bool* representable) {
  if (owned == nullptr) return t.raise_python_error();
  py::Ref result = py::Ref::steal(owned);
  PyTypeObject* type = Py_TYPE(owned);
  const bool size = type == torch_value_types().size();
  if (size && is_data(owned)) {
    std::vector<Variable*> items;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(owned); i++) items.push_back(t.constant(PyTuple_GET_ITEM(owned, i)));
    return t.tuple(std::move(items), type);
  }
  if (type == &PyTuple_Type || type == &PyList_Type) {
    std::vector<Variable*> items;
    py::Ref sequence = type == &PyList_Type ? py::Ref::steal(PyList_AsTuple(owned)) : result;
    CHECK(sequence) << "no memory for a tuple";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); i++) {
      Variable* item = TRY(from_result(t, Py_NewRef(PyTuple_GET_ITEM(sequence.get(), i)), representable));
      if (item == nullptr) return nullptr;
      items.push_back(item);
    }
    if (type == &PyList_Type) return t.list(std::move(items));
    return t.tuple(std::move(items));
  }
  if (is_data(owned)) return t.constant(owned);
  if (type == &PySet_Type && set_of_data(owned)) return make_set(t, result.release());
  if (PyType_Check(owned) && Py_TYPE(owned) == &PyType_Type) return t.known_object(owned);
  if (representable) {
    *representable = false;
    return nullptr;
  }
  return t.fail(Reason::unsupported_value, std::string("result of type ") + type->tp_name);
}

namespace {

constexpr int kMaxCopyDepth = 40;         // lists may hold themselves
constexpr int kMaxCopiedItems = 1 << 16;  // and each other many times over

class ReadableCopy {
 public:
  ReadableCopy(Tracer& t, bool* nested) : t_(t), nested_(nested) {}

  py::Ref of(Variable* v, int depth) {
    if (depth > kMaxCopyDepth || --left_ < 0) return py::Ref();
    v = t_.force(v);
    if (PyObject* value = known(t_, v)) return is_data(value) ? py::Ref::share(value) : py::Ref();
    if (auto* set = as_set(v)) return set_of_data(set->keys.get()) ? py::Ref::share(set->keys.get()) : py::Ref();
    if (auto* list = as_list(v)) return items(list->items, true, depth);
    auto* tuple = as_tuple(v);
    if (tuple && tuple->type == &PyTuple_Type) return items(tuple->items, false, depth);
    auto* dict = as_dict(v);
    return dict && dict->type == &PyDict_Type ? entries(*dict, depth) : py::Ref();
  }

 private:
  py::Ref items(const std::vector<Variable*>& items, bool list, int depth) {
    for (Variable* item : items) {
      if (item->kind == Kind::kTensor || item->kind == Kind::kObject || item->kind == Kind::kFunction) return py::Ref();
    }
    const auto size = static_cast<Py_ssize_t>(items.size());
    py::Ref copy = py::Ref::steal(list ? PyList_New(size) : PyTuple_New(size));
    CHECK(copy) << "no memory for a copy";
    for (Py_ssize_t i = 0; i < size; i++) {
      py::Ref item = of(items[static_cast<size_t>(i)], depth + 1);
      if (!item) return py::Ref();
      if (!is_data(item.get())) *nested_ = true;
      if (list)
        PyList_SET_ITEM(copy.get(), i, item.release());
      else
        PyTuple_SET_ITEM(copy.get(), i, item.release());
    }
    return copy;
  }

  py::Ref entries(const DictVariable& dict, int depth) {
    py::Ref copy = py::Ref::steal(PyDict_New());
    for (auto& [key, value] : dict.entries) {
      if (value == nullptr) continue;
      py::Ref item = is_data(key) ? of(value, depth + 1) : py::Ref();
      if (item && !is_data(item.get())) *nested_ = true;
      if (!item || PyDict_SetItem(copy.get(), key, item.get()) < 0) {
        PyErr_Clear();
        return py::Ref();
      }
    }
    return copy;
  }

  Tracer& t_;
  bool* nested_;
  int left_ = kMaxCopiedItems;
};

}  // namespace

py::Ref readable_copy(Tracer& t, Variable* v, bool* nested) { return ReadableCopy(t, nested).of(v, 0); }

namespace {

// Functions of C modules that are pure on data. Those of `operator` get no copies of lists: some change their first argument.
enum class Purity : uint8_t { kNone, kData, kReads };

const std::unordered_set<PyObject*>& functions_that_read() {
  static py::Once<std::unordered_set<PyObject*>> functions;
  return functions.get([] {
    std::unordered_set<PyObject*> set;
    for (const char* name : {"abs", "all", "any", "ascii", "bin", "chr", "divmod", "format", "hex", "len", "max", "min", "oct", "ord",
                             "pow", "repr", "round", "sorted", "sum"}) {
      set.insert(module_attribute("builtins", name));
    }
    for (const char* module_name : {"math", "cmath"}) {
      py::Ref module = py::Ref::steal(PyImport_ImportModule(module_name));
      PyObject *name, *value, *dict = module ? PyModule_GetDict(module.get()) : nullptr;
      Py_ssize_t position = 0;
      while (dict && PyDict_Next(dict, &position, &name, &value)) {
        if (PyCFunction_CheckExact(value)) set.insert(Py_NewRef(value));
      }
    }
    PyErr_Clear();
    for (const char* name : {"promote_types", "can_cast"}) {
      set.insert(module_attribute("torch", name));
    }
    return set;
  });
}

const std::unordered_set<PyObject*>& operator_functions() {
  static py::Once<std::unordered_set<PyObject*>> functions;
  return functions.get([] {
    std::unordered_set<PyObject*> set;
    py::Ref module = py::Ref::steal(PyImport_ImportModule("_operator"));
    PyObject *name, *value, *dict = module ? PyModule_GetDict(module.get()) : nullptr;
    Py_ssize_t position = 0;
    while (dict && PyDict_Next(dict, &position, &name, &value)) {
      if (PyCFunction_CheckExact(value)) set.insert(Py_NewRef(value));
    }
    PyErr_Clear();
    return set;
  });
}

Purity purity(PyObject* callable) {
  PyTypeObject* type = Py_TYPE(callable);
  if (PyType_Check(callable)) return is_data_type(reinterpret_cast<PyTypeObject*>(callable)) ? Purity::kReads : Purity::kNone;
  if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type) {
    return is_data_type(PyDescr_TYPE(callable)) ? Purity::kReads : Purity::kNone;
  }
  if (!PyCFunction_Check(callable)) return Purity::kNone;
  PyObject* self = PyCFunction_GET_SELF(callable);
  if (self && PyType_Check(self)) return is_data_type(reinterpret_cast<PyTypeObject*>(self)) ? Purity::kReads : Purity::kNone;
  if (self && !PyModule_Check(self)) return is_data(self) ? Purity::kReads : Purity::kNone;
  if (functions_that_read().count(callable)) return Purity::kReads;
  return operator_functions().count(callable) ? Purity::kData : Purity::kNone;
}

// A repetition that fills the memory is not evaluated ahead of time.
bool too_large(PyObject* callable, const std::vector<py::Ref>& values) {
  if (values.size() != 2 || (PyLong_Check(values[0].get()) && PyLong_Check(values[1].get()))) return false;
  static py::Once<PyObject*> kept_mul;
  PyObject* const mul = kept_mul.get([] { return module_attribute("operator", "mul"); });
  if (callable != mul) return false;
  for (int i = 0; i < 2; i++) {
    PyObject *sequence = values[i].get(), *count = values[1 - i].get();
    if (!PyLong_Check(count) || PyLong_Check(sequence) || !PySequence_Check(sequence)) continue;
    const Py_ssize_t size = PySequence_Size(sequence), times = PyLong_AsSsize_t(count);
    PyErr_Clear();
    return size > 0 && times > (Py_ssize_t{1} << 22) / size;
  }
  return false;
}

}  // namespace

Answer fold_call(Tracer& t, PyObject* callable, const Arguments& arguments, bool* handled) {
  *handled = false;
  const Purity how = purity(callable);
  if (how == Purity::kNone) return nullptr;
  std::vector<py::Ref> values;
  bool nested = false;
  auto take = [&](Variable* v) {
    if (how == Purity::kReads) {
      values.push_back(readable_copy(t, v, &nested));
    } else {
      PyObject* value = known(t, v);
      values.push_back(value && is_data(value) ? py::Ref::share(value) : py::Ref());
    }
    return static_cast<bool>(values.back());
  };
  for (Variable* v : arguments.positional) {
    if (v->kind == Kind::kTensor) return nullptr;
  }
  for (Variable* v : arguments.positional) {
    if (!take(v)) return nullptr;
  }
  py::Ref names;
  if (!arguments.keywords.empty()) {
    names = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.keywords.size())));
    CHECK(names) << "no memory for a tuple";
    Py_ssize_t i = 0;
    for (auto& [name, value] : arguments.keywords) {
      if (!take(value)) return nullptr;
      PyTuple_SET_ITEM(names.get(), i++, Py_NewRef(name));
    }
  }
  if (too_large(callable, values)) return nullptr;
  std::vector<PyObject*> stack;
  for (auto& value : values) stack.push_back(value.get());
  PyObject* result = PyObject_Vectorcall(callable, stack.data(), arguments.positional.size(), names.get());
  *handled = true;
  // An argument that came back unchanged keeps its variable: `tuple(x)` of a tuple is that tuple, with its source and identity.
  for (size_t i = 0; result && i < arguments.positional.size(); i++) {
    if (stack[i] == result && PyTuple_Check(result)) {
      Py_DECREF(result);
      return t.force(arguments.positional[i]);
    }
  }
  // A copy of an inner list that comes out again would have lost its identity.
  bool representable = !nested || result == nullptr || (is_data(result) && !PyTuple_Check(result));
  if (!representable) {
    Py_DECREF(result);
    *handled = false;
    return nullptr;
  }
  Answer answer = from_result(t, result, &representable);
  if (!representable) *handled = false;
  return answer;
}

// Methods of numbers, str, bytes, range, dtype and the like: found on the type, as C code, and called.
Answer call_constant_method(Tracer& t, Variable* self, PyObject* name, Arguments& arguments) {
  PyTypeObject* type = Py_TYPE(self->real);
  if (!is_data_type(type)) return no_such_method(t, self, name, arguments);
  py::Ref method = py::Ref::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
  if (!method) {
    PyErr_Clear();
    return t.raise_new(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", type->tp_name, name);
  }
  Arguments all = arguments;
  const bool bound = PyCFunction_Check(method.get());  // a class or static method
  if (type == &PyUnicode_Type && text_of(name) == "join" && arguments.only_positional(1, 1)) {
    Variable* iterable = t.force(arguments.positional[0]);
    if (iterable->kind != Kind::kConstant) all.positional[0] = t.list(TRY(unpack(t, iterable)));
  }
  if (!bound) all.positional.insert(all.positional.begin(), self);
  bool handled = false;
  Answer answer = fold_call(t, method.get(), all, &handled);
  if (handled || !answer.ok()) return answer;
  return no_such_method(t, self, name, arguments);
}

}  // namespace pellucid::variables
