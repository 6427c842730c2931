// Methods of list and tuple. A stable merge sort calls the traced program's comparison where keys are not plain data.
#include <algorithm>

#include "base/check.h"
#include "variables/values.h"

namespace pellucid::variables {
namespace {

struct Keyed {
  Variable* key;
  Variable* item;
};

Result<bool> less(Tracer& t, Variable* a, Variable* b) {
  if (a->kind == Kind::kConstant && b->kind == Kind::kConstant && is_data(a->real) && is_data(b->real)) {
    const int yes = PyObject_RichCompareBool(a->real, b->real, Py_LT);
    if (yes < 0) return t.raise_python_error();
    return yes == 1;
  }
  Variable* result = TRY(compare(t, Py_LT, a, b));
  return truth(t, result);
}

Status merge_sort(Tracer& t, std::vector<Keyed>& values) {
  std::vector<Keyed> scratch(values.size());
  for (size_t width = 1; width < values.size(); width *= 2) {
    for (size_t low = 0; low < values.size(); low += 2 * width) {
      const size_t middle = std::min(low + width, values.size()), high = std::min(low + 2 * width, values.size());
      size_t left = low, right = middle;
      for (size_t at = low; at < high; at++) {
        const bool take_right = right < high && (left >= middle || TRY(less(t, values[right].key, values[left].key)));
        scratch[at] = take_right ? values[right++] : values[left++];
      }
    }
    std::swap(values, scratch);
  }
  return Unit{};
}

Status sort(Tracer& t, ListVariable* list, Variable* key, bool reverse) {
  std::vector<Keyed> values;
  key = key ? t.force(key) : nullptr;
  if (key && key->kind == Kind::kConstant && key->real == Py_None) key = nullptr;
  const std::vector<Variable*> before = list->items;
  for (Variable* item : before) {
    Variable* sort_key = item;
    if (key) {
      Arguments arguments;
      arguments.positional = {item};
      sort_key = TRY(t.wait(call(t, key, std::move(arguments))));
    }
    values.push_back({t.force(sort_key), item});
  }
  // CPython keeps equal items in order by reversing before and after.
  if (reverse) std::reverse(values.begin(), values.end());
  TRY(merge_sort(t, values));
  if (reverse) std::reverse(values.begin(), values.end());
  if (list->items != before) return t.raise_new(PyExc_ValueError, "list modified during sort");
  for (size_t i = 0; i < values.size(); i++) list->items[i] = values[i].item;
  t.mark_changed(list);
  return Unit{};
}

// index(value, start, stop): positions clipped as CPython does.
Answer index_of(Tracer& t, const std::vector<Variable*>& items, const std::vector<Variable*>& args, const char* error) {
  Py_ssize_t start = 0, stop = PY_SSIZE_T_MAX;
  if (args.size() > 1) start = TRY(index_value(t, args[1], nullptr));
  if (args.size() > 2) stop = TRY(index_value(t, args[2], nullptr));
  const auto size = static_cast<Py_ssize_t>(items.size());
  if (start < 0) start = std::max<Py_ssize_t>(start + size, 0);
  if (stop < 0) stop = std::max<Py_ssize_t>(stop + size, 0);
  for (Py_ssize_t i = start; i < stop && i < static_cast<Py_ssize_t>(items.size()); i++) {
    if (TRY(same_or_equal(t, items[static_cast<size_t>(i)], args[0]))) return t.integer(i);
  }
  if (std::string_view(error).find('%') == std::string_view::npos) return t.raise_new(PyExc_ValueError, "%s", error);
  PyObject* value = known(t, args[0]);
  if (value == nullptr || !is_data(value)) return t.fail(Reason::unsupported_method, "list.index of a value that is not in the list");
  return t.raise_new(PyExc_ValueError, error, value);
}

Answer count_of(Tracer& t, const std::vector<Variable*>& items, Variable* value) {
  Py_ssize_t count = 0;
  for (size_t i = 0; i < items.size(); i++) count += TRY(same_or_equal(t, items[i], value));
  return t.integer(count);
}

Answer pop(Tracer& t, ListVariable* self, Variable* position) {
  Py_ssize_t index = -1;
  if (position) index = TRY(index_value(t, position, PyExc_IndexError));
  const auto size = static_cast<Py_ssize_t>(self->items.size());
  if (size == 0) return t.raise_new(PyExc_IndexError, "pop from empty list");
  if (index < 0) index += size;
  if (index < 0 || index >= size) return t.raise_new(PyExc_IndexError, "pop index out of range");
  Variable* value = self->items[static_cast<size_t>(index)];
  self->items.erase(self->items.begin() + index);
  t.mark_changed(self);
  return value;
}

Answer insert(Tracer& t, ListVariable* self, Variable* position, Variable* value) {
  Py_ssize_t index = TRY(index_value(t, position, PyExc_OverflowError));
  const auto size = static_cast<Py_ssize_t>(self->items.size());
  if (index < 0) index = std::max<Py_ssize_t>(index + size, 0);
  self->items.insert(self->items.begin() + std::min(index, size), value);
  t.mark_changed(self);
  return t.none();
}

Answer remove(Tracer& t, ListVariable* self, Variable* value) {
  for (size_t i = 0; i < self->items.size(); i++) {
    if (!TRY(same_or_equal(t, self->items[i], value))) continue;
    if (i < self->items.size()) self->items.erase(self->items.begin() + static_cast<Py_ssize_t>(i));
    t.mark_changed(self);
    return t.none();
  }
  return t.raise_new(PyExc_ValueError, "list.remove(x): x not in list");
}

}  // namespace

// What came before an exception stays in the list.
Status list_extend(Tracer& t, ListVariable* list, Variable* iterable) {
  std::vector<Variable*> more;
  Status status = unpack_into(t, iterable, &more);
  if (broke(status)) return status;
  if (!more.empty()) {
    list->items.insert(list->items.end(), more.begin(), more.end());
    t.mark_changed(list);
  }
  return status;
}

Answer call_list_method(Tracer& t, ListVariable* self, PyObject* name, Arguments& arguments) {
  const std::string_view method = text_of(name);
  auto& args = arguments.positional;
  if (method == "append" && arguments.only_positional(1, 1)) {
    self->items.push_back(args[0]);
    t.mark_changed(self);
    return t.none();
  }
  if (method == "extend" && arguments.only_positional(1, 1)) {
    TRY(list_extend(t, self, args[0]));
    return t.none();
  }
  if (method == "pop" && arguments.only_positional(0, 1)) return pop(t, self, args.empty() ? nullptr : args[0]);
  if (method == "insert" && arguments.only_positional(2, 2)) return insert(t, self, args[0], args[1]);
  if (method == "remove" && arguments.only_positional(1, 1)) return remove(t, self, args[0]);
  if (method == "index" && arguments.only_positional(1, 3)) return index_of(t, self->items, args, "%R is not in list");
  if (method == "count" && arguments.only_positional(1, 1)) return count_of(t, self->items, args[0]);
  if ((method == "copy" || method == "__copy__") && arguments.only_positional(0, 0)) return t.list(self->items);
  if (method == "reverse" && arguments.only_positional(0, 0)) {
    std::reverse(self->items.begin(), self->items.end());
    t.mark_changed(self);
    return t.none();
  }
  if (method == "clear" && arguments.only_positional(0, 0)) {
    self->items.clear();
    t.mark_changed(self);
    return t.none();
  }
  if (method == "sort" && args.empty()) {
    Variable *key = arguments.keyword("key"), *reverse = arguments.keyword("reverse");
    if (arguments.keywords.size() != static_cast<size_t>((key != nullptr) + (reverse != nullptr)))
      return no_such_method(t, self, name, arguments);
    const bool backwards = reverse ? TRY(truth(t, reverse)) : false;
    TRY(sort(t, self, key, backwards));
    return t.none();
  }
  return no_such_method(t, self, name, arguments);
}

namespace {

// namedtuple's own methods; the class may have replaced them.
Result<std::vector<PyObject*>> fields_of(Tracer& t, PyTypeObject* type) {
  py::Ref fields = py::Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "_fields"));
  std::vector<PyObject*> names;
  if (!fields || !PyTuple_CheckExact(fields.get())) {
    PyErr_Clear();
    return names;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.get()); i++) names.push_back(t.keep(PyTuple_GET_ITEM(fields.get(), i)));
  return names;
}

bool defined_by_namedtuple(PyTypeObject* type, PyObject* name) {
  py::Ref method = py::Ref::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
  py::Ref code = method ? py::Ref::steal(PyObject_GetAttrString(method.get(), "__code__")) : py::Ref();
  py::Ref file = code ? py::Ref::steal(PyObject_GetAttrString(code.get(), "co_filename")) : py::Ref();
  PyErr_Clear();
  return file && PyUnicode_Check(file.get()) && text_of(file.get()).find("collections") != std::string_view::npos;
}

}  // namespace

Answer call_tuple_method(Tracer& t, TupleVariable* self, PyObject* name, Arguments& arguments) {
  const std::string_view method = text_of(name);
  auto& args = arguments.positional;
  if (method == "count" && arguments.only_positional(1, 1)) return count_of(t, self->items, args[0]);
  if (method == "index" && arguments.only_positional(1, 3)) return index_of(t, self->items, args, "tuple.index(x): x not in tuple");
  if (method == "numel" && self->type == torch_size_type() && arguments.only_positional(0, 0)) {
    py::Ref product = py::Ref::steal(PyLong_FromLong(1));
    for (Variable* item : self->items) {
      PyObject* size = known(t, item);
      if (size == nullptr || !PyLong_Check(size)) return no_such_method(t, self, name, arguments);
      product = py::Ref::steal(PyNumber_Multiply(product.get(), size));
    }
    return from_result(t, product.release());
  }
  if ((method == "_asdict" || method == "_replace") && args.empty() && defined_by_namedtuple(self->type, name)) {
    std::vector<PyObject*> names = TRY(fields_of(t, self->type));
    if (names.size() != self->items.size()) return no_such_method(t, self, name, arguments);
    if (method == "_asdict") {
      DictVariable* dict = t.dict();
      for (size_t i = 0; i < names.size(); i++) dict_store(t, dict, names[i], self->items[i]);
      return dict;
    }
    std::vector<Variable*> items = self->items;
    size_t used = 0;
    for (size_t i = 0; i < names.size(); i++) {
      if (Variable* value = arguments.keyword(text_of(names[i]))) items[i] = value, used++;
    }
    if (used != arguments.keywords.size()) return no_such_method(t, self, name, arguments);
    return t.tuple(std::move(items), self->type);
  }
  return no_such_method(t, self, name, arguments);
}

}  // namespace pellucid::variables
