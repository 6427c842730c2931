// Tracer's own services: ownership of variables and objects, guards with the user's location, failures.
#include "variables/tracer.h"

#include <algorithm>
#include <cstdarg>
#include <map>
#include <unordered_set>

#include "base/check.h"

namespace pellucid::variables {

namespace {
const ReasonText kReasons[] = {
#define BREAK_REASON(id, title, explanation, hint) {#id, title, explanation, hint},
#include "variables/break_reasons.def"
#undef BREAK_REASON
};
}  // namespace

const ReasonText& reason_text(Reason reason) { return kReasons[static_cast<size_t>(reason)]; }

Variable* Arguments::keyword(std::string_view name) const {
  for (auto& [key, value] : keywords) {
    const char* text = PyUnicode_AsUTF8(key);
    if (text && name == text) return value;
  }
  return nullptr;
}

Tracer::~Tracer() = default;

PyObject* Tracer::keep(PyObject* borrowed) {
  kept_.push_back(py::Ref::share(borrowed));
  return borrowed;
}

PyObject* Tracer::keep_new(PyObject* owned) {
  CHECK(owned) << "a Python object could not be made";
  kept_.push_back(py::Ref::steal(owned));
  return owned;
}

PyObject* Tracer::intern(const char* text) {
  PyObject*& slot = interned_[text];
  if (!slot) slot = keep_new(PyUnicode_InternFromString(text));
  return slot;
}

Variable* Tracer::constant(PyObject* borrowed) {
  if (PyTuple_CheckExact(borrowed)) {
    std::vector<Variable*> items;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(borrowed); i++) items.push_back(constant(PyTuple_GET_ITEM(borrowed, i)));
    TupleVariable* result = tuple(std::move(items));
    result->real = keep(borrowed);
    return result;
  }
  if (PyFrozenSet_CheckExact(borrowed)) {
    auto* set = make<SetVariable>();
    set->keys = py::Ref::share(borrowed);
    set->real = keep(borrowed);
    set->frozen = true;
    return set;
  }
  auto* result = make<ConstantVariable>();
  result->real = keep(borrowed);
  return result;
}

Variable* Tracer::constant_new(PyObject* owned) {
  CHECK(owned) << "a constant could not be made";
  Variable* result = constant(owned);
  Py_DECREF(owned);
  return result;
}

Variable* Tracer::string(std::string_view text) {
  return constant_new(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

TupleVariable* Tracer::tuple(std::vector<Variable*> items, PyTypeObject* type) {
  auto* result = make<TupleVariable>();
  result->items = std::move(items);
  result->type = type;
  return result;
}

ListVariable* Tracer::list(std::vector<Variable*> items) {
  auto* result = make<ListVariable>();
  result->items = std::move(items);
  return result;
}

DictVariable* Tracer::dict(PyTypeObject* type) {
  auto* result = make<DictVariable>();
  result->index = py::Ref::steal(PyDict_New());
  result->type = type;
  return result;
}

void Tracer::guard(guard::Kind kind, const source::Source* source, PyObject* payload, Py_ssize_t number) {
  if (!source) return;
  guard::Guard made{kind, source, nullptr, py::Ref::share(payload), {}, number, location()};
  guards_.add(std::move(made));
}

// One guard serves all objects of a class: the others are only guarded to be of that class. Of objects that the traced program made
// the class itself is known.
void Tracer::guard_class_attribute(const source::Source* source, PyTypeObject* type, PyObject* name, PyObject* expected) {
  auto* cls = reinterpret_cast<PyObject*>(type);
  if (!source && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return;  // which cannot be written to
  auto [known, first] = class_attributes_[type].try_emplace(name, source);
  if (!first) {
    if (known->second != source) guard(guard::Kind::kType, source, cls);
    return;
  }
  keep(name);
  guard::Guard made{guard::Kind::kClassAttr, source, nullptr, py::Ref::share(name), py::Ref::share(expected), -1, location()};
  if (!source) {
    made.source = sources().constant(cls);
    made.number = 1;
  }
  guards_.add(std::move(made));
}

bool may_be_written(PyTypeObject* type) {
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)) return false;
  PyObject* module = PyDict_GetItemString(type->tp_dict, "__module__");
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (!text) return PyErr_Clear(), true;
  // Whoever writes to what these are made of changes more than a guard could see.
  const std::string_view name = std::string_view(text).substr(0, std::string_view(text).find('.'));
  for (std::string_view own : {"torch", "abc", "enum", "typing", "functools", "collections", "contextlib", "dataclasses", "pellucid"})
    if (name == own) return false;
  return true;
}

void Tracer::guard_mro(const source::Source* source, PyTypeObject* type) {
  if (!may_be_written(type)) return;
  auto [known, first] = mros_.try_emplace(type, source);
  if (!first) {
    if (known->second != source) guard(guard::Kind::kType, source, reinterpret_cast<PyObject*>(type));
    return;
  }
  const source::Source* from = source ? source : sources().constant(reinterpret_cast<PyObject*>(type));
  guards_.add({guard::Kind::kMro, from, nullptr, py::Ref::share(type->tp_mro), {}, source ? -1 : 1, location()});
}

Variable* Tracer::lazy_present(PyObject* real, const source::Source* source) {
  Variable* made = lazy(real, source);
  present_.push_back(static_cast<LazyVariable*>(made));
  return made;
}

void Tracer::guard_presence() {
  for (LazyVariable* one : present_)
    if (!one->resolved) guard(guard::Kind::kSubclassOf, one->source, reinterpret_cast<PyObject*>(&PyBaseObject_Type));
}

void Tracer::guard_pair(guard::Kind kind, const source::Source* a, const source::Source* b) {
  if (!a || !b || a == b) return;
  guards_.add({kind, a, b, {}, {}, -1, location()});
}

Failed Tracer::fail(Reason reason, std::string detail) {
  failures_.push_back(std::make_unique<Failure>(Failure{Failure::Kind::kBreak, reason, std::move(detail), nullptr}));
  return {failures_.back().get()};
}

Failed Tracer::skip_frame(Reason reason, std::string detail) {
  failures_.push_back(std::make_unique<Failure>(Failure{Failure::Kind::kSkip, reason, std::move(detail), nullptr}));
  return {failures_.back().get()};
}

Failed Tracer::raise(Variable* exception) {
  failures_.push_back(std::make_unique<Failure>(Failure{Failure::Kind::kRaise, {}, {}, exception}));
  return {failures_.back().get()};
}

Failed Tracer::fatal() {
  failures_.push_back(std::make_unique<Failure>(Failure{Failure::Kind::kFatal, {}, {}, nullptr}));
  return {failures_.back().get()};
}

Failed Tracer::raise_new(PyObject* exception_type, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  PyObject* message = PyUnicode_FromFormatV(format, arguments);
  va_end(arguments);
  auto* exception = make<ObjectVariable>();
  exception->existed = false;
  exception->type = reinterpret_cast<PyTypeObject*>(keep(exception_type));
  exception->class_variable = known_object(exception_type);
  exception->arguments.push_back(constant_new(message));
  return raise(exception);
}

// A real exception that a folded C call raised becomes an exception of the traced program with the same class and args. Signals and
// memory errors are not the program's: they leave the capture.
Failed Tracer::raise_python_error() {
  CHECK(PyErr_Occurred()) << "no Python exception is set";
  if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return fatal();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(traceback);
  auto* exception = make<ObjectVariable>();
  exception->existed = false;
  exception->type = reinterpret_cast<PyTypeObject*>(keep_new(type));
  exception->class_variable = known_object(type);
  PyObject* arguments = keep_new(PyObject_GetAttrString(value, "args"));
  Py_DECREF(value);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); i++) exception->arguments.push_back(constant(PyTuple_GET_ITEM(arguments, i)));
  return raise(exception);
}

void Tracer::mark_changed(Variable* variable) {
  if (variable->changed) return;
  variable->changed = true;
  changed_.push_back(variable);
}

void Tracer::guard_distinctness() {
  struct Members {
    std::vector<Variable*> changed, others;
  };
  std::map<std::pair<Kind, PyTypeObject*>, Members> groups;  // what can be one object
  std::unordered_set<Variable*> seen;
  for (Variable* one : changed_) {
    if (one->changed && one->source && one->real && seen.insert(one).second) groups[{one->kind, Py_TYPE(one->real)}].changed.push_back(one);
  }
  if (groups.empty()) return;
  for (auto& [object, other] : outside_) {
    auto found = groups.find({other->kind, Py_TYPE(object)});
    if (found != groups.end() && other->source && !other->changed) found->second.others.push_back(other);
  }
  const auto by_age = [](Variable* a, Variable* b) { return a->born != b->born ? a->born < b->born : a->source->name < b->source->name; };
  for (auto& [what, members] : groups) {
    std::sort(members.others.begin(), members.others.end(), by_age);
    guard::Guard made{guard::Kind::kDistinct, nullptr, nullptr, {}, {}, -1, location(), {}};
    bool all_known = true;
    for (const auto* part : {&members.changed, &members.others}) {
      for (Variable* member : *part) {
        all_known = all_known && guards_.has(guard::Kind::kId, member->source);
        made.group.push_back(member->source);
      }
    }
    if (all_known || made.group.size() < 2) continue;
    if (made.group.size() == 2) {
      guard_pair(guard::Kind::kDistinct, made.group[0], made.group[1]);
      continue;
    }
    if (!members.others.empty()) made.number = static_cast<Py_ssize_t>(members.changed.size());
    guards_.add(std::move(made));
  }
}

Variable* Tracer::outside(PyObject* real) const {
  auto found = outside_.find(real);
  return found == outside_.end() ? nullptr : found->second;
}

Tracer::GlobalWrite* Tracer::written_global(PyObject* globals, PyObject* name) {
  if (global_writes_.empty()) return nullptr;  // the rule: this is asked for every global that is read
  auto found = global_write_of_.find({globals, name});
  return found == global_write_of_.end() ? nullptr : &global_writes_[found->second];
}

void Tracer::write_global(PyObject* globals, PyObject* name, Variable* value) {
  if (GlobalWrite* written = written_global(globals, name)) {
    if (!value) written->stored = true;
    written->value = value;
    return;
  }
  global_write_of_[{globals, name}] = global_writes_.size();
  global_writes_.push_back({globals, name, value});
}

}  // namespace pellucid::variables
