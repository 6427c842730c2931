// The table itself, the entry call_builtin, and the polyfills: Python functions that behave like their C originals and are inlined
// like user code.
#include <cstring>

#include "base/check.h"
#include "py/once.h"
#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

// What stands for `callable` in the table: builtin methods of classes (dict.fromkeys) are made anew at each access, the descriptor
// in the class is not.
PyObject* table_key(PyObject* callable) {
  if (!PyCFunction_CheckExact(callable)) return callable;
  PyObject* self = PyCFunction_GetSelf(callable);
  if (self == nullptr || !PyType_Check(self)) return callable;
  const char* name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  PyObject* found = mro_lookup(reinterpret_cast<PyTypeObject*>(self), name);
  return found != nullptr ? found : callable;
}

// A new reference to module.a.b; classmethods as the descriptor in the class. Null without an exception if absent.
py::Ref resolve(const char* module, const char* dotted) {
  py::Ref object = py::Ref::steal(PyImport_ImportModule(module));
  if (!object) {
    PyErr_Clear();
    return {};
  }
  const char* rest = dotted;
  while (*rest != '\0') {
    const char* dot = std::strchr(rest, '.');
    std::string name = dot != nullptr ? std::string(rest, dot) : std::string(rest);
    rest = dot != nullptr ? dot + 1 : rest + name.size();
    if (PyType_Check(object.get())) {
      PyObject* found = mro_lookup(reinterpret_cast<PyTypeObject*>(object.get()), name.c_str());
      if (found == nullptr) return {};
      object = py::Ref::share(found);
      continue;
    }
    object = py::Ref::steal(PyObject_GetAttrString(object.get(), name.c_str()));
    if (!object) {
      PyErr_Clear();
      return {};
    }
  }
  return object;
}

}  // namespace

const Table& Table::get() {
  static py::Once<const Table*> table;
  return *table.get([] {
    auto* made = new Table;
    add_attributes(*made);
    add_breaks(*made);
    add_collections(*made);
    add_conversion(*made);
    add_functional(*made);
    add_introspection(*made);
    add_iteration(*made);
    add_itertools(*made);
    add_numeric(*made);
    add_operators(*made);
    add_slots(*made);
    add_text(*made);
    return static_cast<const Table*>(made);
  });
}

const Table::Entry* Table::find(PyObject* callable) const {
  if (auto found = by_callable_.find(table_key(callable)); found != by_callable_.end()) return &found->second;
  if (auto found = by_type_.find(Py_TYPE(callable)); found != by_type_.end()) return &found->second;
  return nullptr;
}

void Table::add(PyObject* callable, Handler handler, size_t forced) {
  PyObject* key = table_key(callable);
  if (by_callable_.emplace(key, Entry{handler, forced}).second) Py_INCREF(key);  // the table lives as long as the process
}

void Table::add(const char* module, std::initializer_list<const char*> names, Handler handler, size_t forced) {
  for (const char* name : names) {
    if (py::Ref callable = resolve(module, name)) add(callable.get(), handler, forced);
  }
}

void Table::replace(const char* module, std::initializer_list<const char*> names, Handler handler) {
  for (const char* name : names) {
    if (py::Ref callable = resolve(module, name)) by_callable_[table_key(callable.get())] = Entry{handler};
  }
}

void Table::add_instances(const char* module, std::initializer_list<const char*> type_names, Handler handler) {
  for (const char* name : type_names) {
    py::Ref type = resolve(module, name);
    if (type && PyType_Check(type.get())) by_type_.emplace(reinterpret_cast<PyTypeObject*>(type.release()), Entry{handler});
  }
}

void Table::polyfill(const char* module, std::initializer_list<const char*> names, const char* polyfill_module) {
  for (const char* name : names) {
    py::Ref callable = resolve(module, name);
    if (!callable) continue;
    add(callable.get(), call_polyfill, 0);
    polyfills_.emplace(table_key(callable.get()), polyfill_module);
  }
}

const char* Table::polyfill_module(PyObject* callable) const {
  auto found = polyfills_.find(table_key(callable));
  return found != polyfills_.end() ? found->second : nullptr;
}

Variable* polyfill(Tracer& t, const char* module, const char* name) {
  std::string path = std::string("pellucid.polyfills.") + module;
  py::Ref loaded = py::Ref::steal(PyImport_ImportModule(path.c_str()));
  CHECK(loaded) << path;
  py::Ref function = py::Ref::steal(PyObject_GetAttrString(loaded.get(), name));
  CHECK(function) << path << "." << name;
  return t.known_object(t.keep(function.get()));
}

Answer call_polyfill(Tracer& t, PyObject* callable, Arguments& arguments) {
  const char* module = Table::get().polyfill_module(callable);
  CHECK(module != nullptr) << callable_name(callable);
  std::string name = callable_name(callable);
  name.erase(0, name.rfind('.') + 1);
  return call(t, polyfill(t, module, name.c_str()), arguments);
}

void IteratorSnapshot::take(Variable* v) {
  if (auto* lazy = as<LazyVariable>(v, Kind::kLazy)) v = lazy->resolved;
  IteratorVariable* iterator = as_iterator(v);
  if (iterator == nullptr) return;
  for (const State& state : states_) {
    if (state.iterator == iterator) return;
  }
  states_.push_back({iterator, iterator->index, iterator->version, iterator->exhausted, iterator->over, iterator->inner});
  for (Variable* inner : iterator->inner) take(inner);
  take(iterator->over);
}

void IteratorSnapshot::restore() const {
  for (const State& state : states_) {
    state.iterator->index = state.index;
    state.iterator->version = state.version;
    state.iterator->exhausted = state.exhausted;
    state.iterator->over = state.over;
    state.iterator->inner = state.inner;
  }
}

}  // namespace pellucid::variables::builtins

namespace pellucid::variables {

Answer call_builtin(Tracer& t, PyObject* callable, Arguments& arguments, bool* handled) {
  const builtins::Table::Entry* entry = builtins::Table::get().find(callable);
  *handled = entry != nullptr;
  if (entry == nullptr) return Answer(nullptr);
  builtins::force_arguments(t, arguments, entry->forced);
  builtins::IteratorSnapshot snapshot;
  for (Variable* v : arguments.positional) snapshot.take(v);
  for (auto& [name, v] : arguments.keywords) snapshot.take(v);
  Answer answer = entry->handler(t, callable, arguments);
  if (!answer.ok() && answer.failure()->kind != Failure::Kind::kRaise) snapshot.restore();
  return answer;
}

}  // namespace pellucid::variables
