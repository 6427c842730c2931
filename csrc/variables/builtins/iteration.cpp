// Iterators of the builtins module: iter, next, enumerate, zip, map, filter, reversed, sorted.
#include "variables/builtins/builtins.h"
#include "variables/builtins/sorting.h"

namespace pellucid::variables::builtins {
namespace {

using Form = IteratorVariable::Form;

Result<std::vector<Variable*>> iterators_of(Tracer& t, const std::vector<Variable*>& iterables, size_t from) {
  std::vector<Variable*> iterators;
  for (size_t i = from; i < iterables.size(); i++) iterators.push_back(TRY(t.wait(get_iterator(t, iterables[i]))));
  return iterators;
}

Answer call_iter(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 2)) return unsupported(t, callable, arguments);
  if (arguments.positional.size() == 1) return get_iterator(t, arguments.positional[0]);
  PyTypeObject* type = type_of(arguments.positional[0]);
  if (type == nullptr || type->tp_call == nullptr) return unsupported(t, callable, arguments);
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kCallable;
  made->function = arguments.positional[0];
  made->inner = {arguments.positional[1]};  // the sentinel
  return made;
}

Failed stop_iteration(Tracer& t) {
  auto* exception = t.make<ObjectVariable>();
  exception->existed = false;
  exception->type = reinterpret_cast<PyTypeObject*>(PyExc_StopIteration);
  exception->class_variable = t.known_object(PyExc_StopIteration);
  return t.raise(exception);
}

Answer call_next(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 2)) return unsupported(t, callable, arguments);
  Variable* iterator = arguments.positional[0];
  bool has_default = arguments.positional.size() == 2;
  if (iterator->kind == Kind::kIterator) {
    Variable* value = nullptr;
    if (TRY(next(t, iterator, &value))) return value;
    return has_default ? Answer(arguments.positional[1]) : Answer(stop_iteration(t));
  }
  Answer answer(nullptr);
  if (iterator->kind == Kind::kGenerator) {
    answer = t.resume_generator(static_cast<GeneratorVariable*>(iterator), t.none());
  } else if (as_object(iterator)) {
    Variable* method = TRY(class_lookup(t, iterator, t.intern("__next__")));
    if (method == nullptr || !as_function(t.force(method))) return unsupported(t, callable, arguments);
    answer = call_special(t, iterator, "__next__", {});
  } else {
    return unsupported(t, callable, arguments);  // a TypeError: not an iterator
  }
  if (!has_default) return answer;
  answer = t.wait(answer);
  if (!answer.ok() && raised(answer.failure(), PyExc_StopIteration)) return arguments.positional[1];
  return answer;
}

Answer call_enumerate(Tracer& t, PyObject* callable, Arguments& arguments) {
  Variable* values[2];
  if (!bind(arguments, {"iterable", "start"}, 1, 0, values)) return unsupported(t, callable, arguments);
  Py_ssize_t start = 0;
  if (values[1] != nullptr) {
    PyObject* number = plain(t, values[1]);
    if (number == nullptr || !PyLong_CheckExact(number)) return unsupported(t, callable, arguments);
    start = PyLong_AsSsize_t(number);
    if (start == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return unsupported(t, callable, arguments);
    }
  }
  Variable* inner = TRY(t.wait(get_iterator(t, values[0])));
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kEnumerate;
  made->inner = {inner};
  made->index = start;
  return made;
}

Answer call_zip(Tracer& t, PyObject* callable, Arguments& arguments) {
  bool strict = false;
  for (auto& [name, v] : arguments.keywords) {
    if (PyUnicode_CompareWithASCIIString(name, "strict") != 0) return unsupported(t, callable, arguments);
    strict = TRY(truth(t, v));
  }
  std::vector<Variable*> inner = TRY(iterators_of(t, arguments.positional, 0));
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kZip;
  made->inner = std::move(inner);
  made->strict = strict;
  return made;
}

Answer call_map(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, SIZE_MAX)) return unsupported(t, callable, arguments);
  std::vector<Variable*> inner = TRY(iterators_of(t, arguments.positional, 1));
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kMap;
  made->function = arguments.positional[0];
  made->inner = std::move(inner);
  return made;
}

Answer call_filter(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  std::vector<Variable*> inner = TRY(iterators_of(t, arguments.positional, 1));
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kFilter;
  made->function = arguments.positional[0];
  made->inner = std::move(inner);
  return made;
}

Answer call_reversed(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  Variable* v = arguments.positional[0];
  if (auto* object = as_object(v)) {
    Variable* method = TRY(class_lookup(t, object, t.intern("__reversed__")));
    if (method != nullptr && as_function(t.force(method))) return call_special(t, object, "__reversed__", {});
    if (object->inner != nullptr && as_list(object->inner)) {
      v = object->inner;
    } else if (method == nullptr) {
      Variable* item = TRY(class_lookup(t, object, t.intern("__getitem__")));
      Variable* size = TRY(class_lookup(t, object, t.intern("__len__")));
      if (item == nullptr || size == nullptr) return unsupported(t, callable, arguments);
      return call(t, polyfill(t, "builtins", "reversed"), arguments);
    } else {
      return unsupported(t, callable, arguments);
    }
  }
  if (as_dict(v)) return call(t, polyfill(t, "builtins", "reversed_keys"), arguments);
  if (auto* view = as<DictViewVariable>(v, Kind::kDictView)) {
    constexpr const char* kNames[] = {"reversed_keys", "reversed_values", "reversed_items"};
    return call(t, polyfill(t, "builtins", kNames[view->which]), {{view->dict}, {}});
  }
  if (v->kind == Kind::kConstant && PyRange_Check(v->real)) {
    py::Ref minus_one = py::Ref::steal(PyLong_FromLong(-1));
    py::Ref backwards = py::Ref::steal(PySlice_New(nullptr, nullptr, minus_one.get()));
    return get_iterator(t, t.constant_new(PyObject_GetItem(v->real, backwards.get())));
  }
  if (!as_list(v) && !as_tuple(v) && !(v->kind == Kind::kConstant && PyUnicode_CheckExact(v->real)))
    return unsupported(t, callable, arguments);
  Py_ssize_t size = TRY(length(t, v));
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kReversed;
  made->over = v;
  made->index = size - 1;  // next position
  return made;
}

Answer call_sorted(Tracer& t, PyObject* callable, Arguments& arguments) {
  Variable* values[3];
  if (!bind(arguments, {"iterable", "key", "reverse"}, 1, 1, values, 1)) return unsupported(t, callable, arguments);
  bool reverse = false;
  if (values[2] != nullptr) {
    PyObject* flag = plain(t, values[2]);
    if (flag == nullptr || !PyLong_Check(flag)) return unsupported(t, callable, arguments);
    reverse = PyObject_IsTrue(flag) == 1;
  }
  std::vector<Variable*> items = TRY(unpack(t, values[0]));
  return t.list(TRY(sort_values(t, std::move(items), values[1], reverse)));
}

}  // namespace

void add_iteration(Table& table) {
  table.add("builtins", {"iter"}, call_iter);
  table.add("builtins", {"next"}, call_next, 1);
  table.add("builtins", {"enumerate"}, call_enumerate);
  table.add("builtins", {"zip"}, call_zip);
  table.add("builtins", {"map"}, call_map);
  table.add("builtins", {"filter"}, call_filter);
  table.add("builtins", {"reversed"}, call_reversed);
  table.add("builtins", {"sorted"}, call_sorted);
}

}  // namespace pellucid::variables::builtins
