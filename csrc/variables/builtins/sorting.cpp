// sorted(): known keys are sorted by Python itself; other keys by the same comparisons in the same order as CPython makes for short
// lists (count_run and binarysort of listobject.c), so that a user's __lt__ sees what it would see.
#include "variables/builtins/sorting.h"

#include <algorithm>

#include "variables/builtins/builtins.h"

namespace pellucid::variables {
namespace {

constexpr size_t kShort = 64;  // from here on CPython merges runs

Result<bool> less(Tracer& t, Variable* a, Variable* b) { return truth(t, TRY(t.wait(compare(t, Py_LT, t.force(a), t.force(b))))); }

// The permutation that sorts `keys`, or an empty one if a key isn't known.
Result<std::vector<size_t>> sort_known(Tracer& t, const std::vector<Variable*>& keys, bool reverse, bool* done) {
  *done = false;
  py::Ref pairs = py::Ref::steal(PyList_New(0)), values = py::Ref::steal(PyList_New(0));
  for (size_t i = 0; i < keys.size(); i++) {
    py::Ref key = builtins::materialize(t, keys[i]);
    if (!key) return std::vector<size_t>{};
    py::Ref index = py::Ref::steal(PyLong_FromSize_t(i));
    if (PyList_Append(values.get(), key.get()) < 0 || PyList_Append(pairs.get(), index.get()) < 0) return t.fatal();
  }
  *done = true;
  py::Ref getter = py::Ref::steal(PyObject_GetAttrString(values.get(), "__getitem__"));
  py::Ref keywords = py::Ref::steal(Py_BuildValue("{s:O,s:O}", "key", getter.get(), "reverse", reverse ? Py_True : Py_False));
  py::Ref sort = py::Ref::steal(PyObject_GetAttrString(pairs.get(), "sort"));
  py::Ref nothing = py::Ref::steal(PyTuple_New(0));
  py::Ref sorted = py::Ref::steal(PyObject_Call(sort.get(), nothing.get(), keywords.get()));
  if (!sorted) return t.raise_python_error();  // TypeError: '<' not supported between ...
  std::vector<size_t> order;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.get()); i++) order.push_back(PyLong_AsSize_t(PyList_GET_ITEM(pairs.get(), i)));
  return order;
}

Result<std::vector<size_t>> sort_compared(Tracer& t, const std::vector<Variable*>& keys, bool reverse) {
  size_t size = keys.size();
  std::vector<size_t> order(size);
  for (size_t i = 0; i < size; i++) order[i] = i;
  if (size < 2) return order;
  if (size >= kShort)
    return t.fail(Reason::unsupported_builtin, "sorting " + std::to_string(size) + " values that are compared by the traced program");
  if (reverse) std::reverse(order.begin(), order.end());
  // count_run
  size_t run = 2;
  if (TRY(less(t, keys[order[1]], keys[order[0]]))) {
    while (run < size && TRY(less(t, keys[order[run]], keys[order[run - 1]]))) run++;
    std::reverse(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(run));
  } else {
    while (run < size && !TRY(less(t, keys[order[run]], keys[order[run - 1]]))) run++;
  }
  // binarysort
  for (size_t start = run; start < size; start++) {
    size_t low = 0, high = start, pivot = order[start];
    while (low < high) {
      size_t middle = low + ((high - low) >> 1);
      if (TRY(less(t, keys[pivot], keys[order[middle]])))
        high = middle;
      else
        low = middle + 1;
    }
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(low), order.begin() + static_cast<std::ptrdiff_t>(start),
                order.begin() + static_cast<std::ptrdiff_t>(start) + 1);
  }
  if (reverse) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

Result<std::vector<Variable*>> sort_values(Tracer& t, std::vector<Variable*> items, Variable* key, bool reverse) {
  std::vector<Variable*> keys = items;
  if (key != nullptr && builtins::plain(t, key) != Py_None) {
    for (Variable*& k : keys) k = TRY(t.wait(call(t, key, {{k}, {}})));
  }
  bool done = false;
  std::vector<size_t> order = TRY(sort_known(t, keys, reverse, &done));
  if (!done) order = TRY(sort_compared(t, keys, reverse));
  std::vector<Variable*> sorted;
  sorted.reserve(items.size());
  for (size_t index : order) sorted.push_back(items[index]);
  return sorted;
}

}  // namespace pellucid::variables
