// itertools: count, repeat, chain and islice have native iterators; the rest are generator functions in pellucid.polyfills.itertools.
#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

using Form = IteratorVariable::Form;

bool small_integer(Tracer& t, Variable* v, Py_ssize_t* value) {
  PyObject* number = plain(t, v);
  if (number == nullptr || !PyLong_CheckExact(number)) return false;
  *value = PyLong_AsSsize_t(number);
  if (*value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return true;
}

Answer call_count(Tracer& t, PyObject* callable, Arguments& arguments) {
  Variable* values[2];
  if (!bind(arguments, {"start", "step"}, 0, 0, values)) return unsupported(t, callable, arguments);
  Py_ssize_t start = 0, step = 1;
  constexpr Py_ssize_t kFar = PY_SSIZE_T_MAX / 4;  // the native counter doesn't reach its limits from here
  for (Variable* v : values) {
    PyObject* number = v != nullptr ? plain(t, v) : Py_None;
    bool is_number = v == nullptr || as_tensor(v) ||
                     (number != nullptr && (PyFloat_CheckExact(number) || PyLong_Check(number) || PyComplex_CheckExact(number)));
    if (!is_number) return unsupported(t, callable, arguments);
  }
  bool native =
      (values[0] == nullptr || small_integer(t, values[0], &start)) && (values[1] == nullptr || small_integer(t, values[1], &step));
  if (!native || start > kFar || start < -kFar || step > 0x10000 || step < -0x10000) return call_polyfill(t, callable, arguments);
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kCount;
  made->index = start;
  made->step = step;
  return made;
}

Answer call_repeat(Tracer& t, PyObject* callable, Arguments& arguments) {
  Variable* values[2];
  if (!bind(arguments, {"object", "times"}, 1, 0, values)) return unsupported(t, callable, arguments);
  Py_ssize_t times = -1;
  if (values[1] != nullptr) {
    if (!small_integer(t, values[1], &times)) return unsupported(t, callable, arguments);
    times = std::max<Py_ssize_t>(times, 0);
  }
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kRepeat;
  made->over = values[0];
  made->stop = times;  // -1: no end
  return made;
}

Answer call_chain(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(0, SIZE_MAX)) return unsupported(t, callable, arguments);
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kChain;
  made->inner = arguments.positional;  // each becomes an iterator when its turn comes
  return made;
}

Answer call_from_iterable(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kChain;
  made->over = TRY(t.wait(get_iterator(t, arguments.positional[0])));
  return made;
}

// islice(iterable, stop), islice(iterable, start, stop[, step]) of small known integers; the rest, and what it refuses, by the polyfill.
Answer call_islice(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 4)) return unsupported(t, callable, arguments);
  Py_ssize_t numbers[3] = {0, -1, 1};  // start, stop (-1: none), step
  size_t count = arguments.positional.size() - 1;
  bool native = true;
  for (size_t i = 0; i < count; i++) {
    size_t which = count == 1 ? 1 : i;
    Variable* v = arguments.positional[i + 1];
    if (plain(t, v) == Py_None) continue;
    native = native && small_integer(t, v, &numbers[which]) && numbers[which] >= (which == 2 ? 1 : 0) && numbers[which] < INT32_MAX;
  }
  auto [start, stop, step] = numbers;
  if (!native || (stop >= 0 && start > stop)) return call_polyfill(t, callable, arguments);
  Variable* inner = TRY(t.wait(get_iterator(t, arguments.positional[0])));
  auto* made = t.make<IteratorVariable>();
  made->form = Form::kIslice;
  made->inner = {inner};
  made->index = start;
  made->stop = stop;
  made->step = step;
  return made;
}

}  // namespace

void add_itertools(Table& table) {
  table.add("itertools", {"repeat"}, call_repeat, 0);
  table.add("itertools", {"chain"}, call_chain, 0);
  table.add("itertools", {"chain.from_iterable"}, call_from_iterable);
  table.polyfill("itertools",
                 {"accumulate", "batched", "count", "combinations", "combinations_with_replacement", "compress", "cycle", "dropwhile",
                  "filterfalse", "groupby", "islice", "pairwise", "permutations", "product", "starmap", "takewhile", "tee", "zip_longest"},
                 "itertools");
  table.replace("itertools", {"count"}, call_count);  // their polyfills are for the arguments that these leave
  table.replace("itertools", {"islice"}, call_islice);
}

}  // namespace pellucid::variables::builtins
