// Building variables from objects outside: lazily, and on first use by the object's type, with the guards that make what was
// assumed hold at the next call.
#include "base/check.h"
#include "source/plain.h"
#include "variables/torch_types.h"
#include "variables/tracer.h"

namespace pellucid::variables {

using GuardKind = guard::Kind;
using SourceKind = source::Kind;

Variable* Tracer::lazy(PyObject* real, const source::Source* source) {
  auto* variable = make<LazyVariable>();
  variable->real = keep(real);
  variable->source = source;
  return variable;
}

Variable* Tracer::known_object(PyObject* real) {
  if (Variable* existing = outside(real)) return existing;
  auto* object = make<ObjectVariable>();
  object->real = keep(real);
  object->type = Py_TYPE(real);
  object->by_identity = true;
  object->source = sources().constant(real);
  outside_[real] = object;
  return object;
}

namespace {

bool is_plain_constant(PyObject* o, const TorchTypes& torch) {
  PyTypeObject* type = Py_TYPE(o);
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyBool_Type ||
         type == &PyComplex_Type || type == torch.device || type == &PyRange_Type;
}

bool is_singleton_constant(PyObject* o, const TorchTypes& torch) {
  PyTypeObject* type = Py_TYPE(o);
  return o == Py_None || o == Py_Ellipsis || o == Py_NotImplemented || type == torch.dtype || type == torch.layout ||
         type == torch.memory_format;
}

bool is_deeply_constant(PyObject* o, const TorchTypes& torch) {
  if (is_plain_constant(o, torch) || is_singleton_constant(o, torch)) return true;
  if (!PyTuple_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
    if (!is_deeply_constant(PyTuple_GET_ITEM(o, i), torch)) return false;
  return true;
}

bool identified(PyObject* o, const TorchTypes& torch) {  // objects that are what they are: guarded by identity
  return PyType_Check(o) || PyModule_Check(o) || PyCFunction_Check(o) || PyCode_Check(o) || Py_TYPE(o) == &PyMethodDescr_Type ||
         Py_TYPE(o) == &PyWrapperDescr_Type || Py_TYPE(o) == &PyGetSetDescr_Type || Py_TYPE(o) == &PyMemberDescr_Type ||
         Py_TYPE(o) == &PyClassMethodDescr_Type || PyObject_TypeCheck(o, torch.module) || Py_IS_TYPE(Py_TYPE(o), torch.enum_meta) ||
         PyObject_TypeCheck(o, torch.op_overload) || PyObject_TypeCheck(o, torch.op_overload_packet);
}

constexpr Py_ssize_t kLargestDict = 1 << 16;  // every key is guarded

bool hashable_key(PyObject* o, const TorchTypes& torch) {
  return is_deeply_constant(o, torch) || identified(o, torch) || PyFunction_Check(o);
}

}  // namespace

// The order is by frequency; each branch installs exactly the guards its variable relies on.
struct Builder {
  Tracer& t;
  const TorchTypes& torch;
  PyObject* real;
  const source::Source* source;

  Variable* constant(GuardKind kind) {
    t.guard(kind, source, real);
    Variable* result = t.constant(real);
    result->source = source;
    return result;
  }

  Variable* object(bool by_identity) {
    if (by_identity)
      t.guard(GuardKind::kId, source, real);
    else
      t.guard(GuardKind::kType, source, reinterpret_cast<PyObject*>(Py_TYPE(real)));
    auto* result = t.make<ObjectVariable>();
    result->type = Py_TYPE(real);
    result->by_identity = by_identity;
    return result;
  }

  Variable* sequence(bool is_list) {
    t.guard(GuardKind::kType, source, reinterpret_cast<PyObject*>(Py_TYPE(real)));
    const Py_ssize_t size = is_list ? PyList_GET_SIZE(real) : PyTuple_GET_SIZE(real);
    t.guard(GuardKind::kLength, source, nullptr, size);
    std::vector<Variable*> items;
    for (Py_ssize_t i = 0; i < size; i++) {
      PyObject* item = is_list ? PyList_GET_ITEM(real, i) : PyTuple_GET_ITEM(real, i);
      items.push_back(t.lazy(item, t.sources().indexed(SourceKind::kItem, source, i)));
    }
    if (is_list) return t.list(std::move(items));
    return t.tuple(std::move(items), Py_TYPE(real));
  }

  // A tuple of plain values that an object or class is configured with (a kernel's size, a normalized shape): compared as a whole, by
  // the version of the dict that holds it. Arguments are read item by item: calls may differ in items that nobody looks at.
  bool is_setting() {
    if (!source || !source::is_plain(real)) return false;
    return source->kind == SourceKind::kClassAttr || (source->kind == SourceKind::kInstanceItem && t.guarded(GuardKind::kId, source->base));
  }

  Variable* setting() {
    t.guard(GuardKind::kEquals, source, real);
    std::vector<Variable*> items;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(real); i++) items.push_back(t.constant(PyTuple_GET_ITEM(real, i)));
    return t.tuple(std::move(items));
  }

  // A module's own dict of parameters, buffers or submodules.
  bool is_module_part() {
    if (!source || source->kind != SourceKind::kInstanceItem || !t.guarded(GuardKind::kId, source->base)) return false;
    for (const char* part : {"_modules", "_parameters", "_buffers"})
      if (PyUnicode_CompareWithASCIIString(source->key, part) == 0) return true;
    return false;
  }

  Variable* dictionary() {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (PyDict_GET_SIZE(real) > kLargestDict) return object(false);
    while (PyDict_Next(real, &position, &key, &value))
      if (!hashable_key(key, torch)) return object(false);  // looking at such a key may run the program's __eq__
    t.guard(GuardKind::kType, source, reinterpret_cast<PyObject*>(Py_TYPE(real)));
    if (is_module_part()) t.guard(GuardKind::kId, source, real);
    py::Ref keys = py::Ref::steal(PySequence_Tuple(real));
    CHECK(keys) << "keys of a dict";
    if (Py_TYPE(real) == torch.ordered_dict) keys = ordered_keys();
    if (PyTuple_GET_SIZE(keys.get()) == 0)
      t.guard(GuardKind::kEmptyDict, source);
    else
      t.guard(GuardKind::kDictKeys, source, keys.get());
    DictVariable* dict = t.dict(Py_TYPE(real));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); i++) {
      key = t.keep(PyTuple_GET_ITEM(keys.get(), i));
      value = PyDict_GetItemWithError(real, key);
      CHECK(value) << "a dict lost a key while it was read";
      dict_store(t, dict, key, t.lazy(value, t.sources().keyed(SourceKind::kDictItem, source, key)));
    }
    dict->changed = false;
    dict->version = 0;
    if (Py_TYPE(real) == torch.default_dict) {
      py::Ref factory = py::Ref::steal(PyObject_GetAttrString(real, "default_factory"));
      dict->default_factory = t.lazy(factory.get(), t.sources().keyed(SourceKind::kAttr, source, t.intern("default_factory")));
    }
    return dict;
  }

  py::Ref ordered_keys() {  // an OrderedDict's own order, which move_to_end may have made another than the dict's
    py::Ref keys = py::Ref::steal(PySequence_Tuple(real));
    CHECK(keys) << "keys of an OrderedDict";
    return keys;
  }

  Variable* function() {
    auto* result = t.make<FunctionVariable>();
    PyObject* code = PyFunction_GET_CODE(real);
    result->code = t.keep(code);
    result->globals = t.keep(PyFunction_GET_GLOBALS(real));
    auto* object = reinterpret_cast<PyFunctionObject*>(real);
    result->name = t.keep(object->func_name);
    result->qualname = t.keep(object->func_qualname);
    if (source && source->kind != SourceKind::kConst) {
      if (reinterpret_cast<PyCodeObject*>(code)->co_flags & CO_NESTED) {
        // Closures and lambdas are made anew by every call of the function around them: what they do is in the code and the globals.
        t.guard(GuardKind::kType, source, reinterpret_cast<PyObject*>(&PyFunction_Type));
        if (source->kind != SourceKind::kGlobal)
          t.guard(GuardKind::kId, t.sources().keyed(SourceKind::kAttr, source, t.intern("__globals__")), result->globals);
      } else {  // made once, by a module or class: the version of the dict or class that holds it says that it is still this one
        t.guard(GuardKind::kId, source, real);
      }
      t.guard(GuardKind::kFunctionCode, source, code);
    }
    if (PyObject* closure = object->func_closure) {
      py::Ref names = py::Ref::steal(PyObject_GetAttrString(code, "co_freevars"));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure); i++) {
        PyObject* cell = PyTuple_GET_ITEM(closure, i);
        auto* known_cell = as<CellVariable>(t.outside(cell), Kind::kCell);
        if (!known_cell) known_cell = t.outside_cell(cell, source ? t.sources().indexed(SourceKind::kClosureCell, source, i) : nullptr);
        known_cell->name = t.keep(PyTuple_GET_ITEM(names.get(), i));
        result->closure.push_back(known_cell);
      }
    }
    auto read = [&](PyObject* value, const char* name) -> Variable* {
      if (!source) return value ? t.constant(value) : nullptr;
      const source::Source* from = t.sources().keyed(SourceKind::kAttr, source, t.intern(name));
      return value ? t.lazy(value, from) : t.lazy(Py_None, from);
    };
    result->defaults = read(object->func_defaults, "__defaults__");
    result->kwdefaults = read(object->func_kwdefaults, "__kwdefaults__");
    return result;
  }

  Variable* bound_method() {
    t.guard(GuardKind::kType, source, reinterpret_cast<PyObject*>(&PyMethod_Type));
    auto* result = t.make<BoundMethodVariable>();
    result->function = t.lazy(PyMethod_GET_FUNCTION(real), t.sources().derived(SourceKind::kBoundFunc, source));
    result->self = t.lazy(PyMethod_GET_SELF(real), t.sources().derived(SourceKind::kBoundSelf, source));
    return result;
  }

  Variable* partial() {
    t.guard(GuardKind::kType, source, reinterpret_cast<PyObject*>(torch.partial));
    auto* result = t.make<PartialVariable>();
    auto attribute = [&](const char* name) {
      py::Ref value = py::Ref::steal(PyObject_GetAttrString(real, name));
      CHECK(value) << "functools.partial without " << name;
      return t.lazy(value.get(), t.sources().keyed(SourceKind::kAttr, source, t.intern(name)));
    };
    result->function = attribute("func");
    auto* args = as_tuple(t.force(attribute("args")));
    auto* keywords = as_dict(t.force(attribute("keywords")));
    if (!args || !keywords) return object(false);
    result->args = args->items;
    for (auto& [key, value] : keywords->entries)
      if (value) result->kwargs.emplace_back(key, value);
    return result;
  }

  Variable* build() {
    PyTypeObject* type = Py_TYPE(real);
    if (is_singleton_constant(real, torch)) return constant(GuardKind::kId);
    if (is_plain_constant(real, torch)) return constant(GuardKind::kEquals);
    if (type == &PySlice_Type) {
      auto* slice = reinterpret_cast<PySliceObject*>(real);
      if (is_deeply_constant(slice->start, torch) && is_deeply_constant(slice->stop, torch) && is_deeply_constant(slice->step, torch))
        return constant(GuardKind::kEquals);
      return object(false);
    }
    if (type == &PyTuple_Type && is_setting()) return setting();
    if (PyTuple_Check(real)) return sequence(false);
    if (type == &PyFrozenSet_Type) {
      py::Ref items = py::Ref::steal(PySequence_Tuple(real));
      if (items && is_deeply_constant(items.get(), torch)) return constant(GuardKind::kEquals);
      PyErr_Clear();
      return object(false);
    }
    return nullptr;  // has an identity
  }

  Variable* build_with_identity() {
    PyTypeObject* type = Py_TYPE(real);
    if (type == &PyList_Type) return sequence(true);
    if (type == &PyDict_Type || type == torch.ordered_dict || type == torch.default_dict) return dictionary();
    if (type == &PyFunction_Type) return function();
    if (type == &PyMethod_Type) return bound_method();
    if (type == torch.partial) return partial();
    if (identified(real, torch)) return object(true);
    return object(false);
  }
};

CellVariable* Tracer::outside_cell(PyObject* cell, const source::Source* source) {
  auto* variable = make<CellVariable>();
  variable->real = keep(cell);
  variable->source = source;
  variable->loaded = false;
  outside_[cell] = variable;
  return variable;
}

Result<Variable*> Tracer::cell_contents(CellVariable* cell) {  // null: empty
  if (!cell->loaded) {
    cell->loaded = true;
    if (PyObject* contents = PyCell_GET(cell->real)) {
      cell->contents = lazy(contents, cell->source ? sources().derived(SourceKind::kCellContents, cell->source) : nullptr);
    } else {
      guard(GuardKind::kCellEmpty, cell->source);
    }
  }
  return cell->contents;
}

Variable* Tracer::force(Variable* variable) {
  if (variable->kind != Kind::kLazy) return variable;
  auto* lazy = static_cast<LazyVariable*>(variable);
  if (lazy->resolved) return lazy->resolved;
  const TorchTypes* torch = torch_types();
  CHECK(torch) << "torch can't be imported";
  Builder builder{*this, *torch, lazy->real, lazy->source};
  Variable* result = nullptr;
  if (Variable* existing = outside(lazy->real)) {
    if (lazy->source && existing->source && guards_.has(guard::Kind::kId, existing->source))
      guard(guard::Kind::kId, lazy->source, lazy->real);
    else
      guard_pair(guard::Kind::kSame, lazy->source, existing->source);
    result = existing;
  } else if (PyObject_TypeCheck(lazy->real, torch->tensor_base)) {
    auto made = tensor_input(lazy->real, lazy->source);
    if (made.ok()) {
      result = made.value();
      outside_[lazy->real] = result;
    } else {
      result = builder.object(false);
      result->source = lazy->source;
      result->real = lazy->real;
    }
  } else if ((result = builder.build())) {
    result->source = lazy->source;
    result->real = lazy->real;
  } else {
    result = builder.build_with_identity();
    result->source = lazy->source;
    result->real = lazy->real;
    outside_[lazy->real] = result;
  }
  lazy->resolved = result;
  return result;
}

}  // namespace pellucid::variables
