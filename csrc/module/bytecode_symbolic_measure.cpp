// What the engine costs without Python around it: loops for bench/symbolic.py. Each makes a ShapeEnv of its own, and gives the best
// nanoseconds a step of several rounds.
#include <algorithm>
#include <ctime>
#include <functional>
#include <string>

#include "module/bytecode_symbolic.h"
#include "symbolic/guard_set.h"

namespace pellucid::module {

namespace {

using symbolic::Builder;
using symbolic::DimPolicy;
using symbolic::Expr;
using symbolic::Handle;
using symbolic::ShapeEnv;
using symbolic::Site;

struct Symbols {
  Handle<ShapeEnv> env{new ShapeEnv()};
  std::vector<Expr> all;

  explicit Symbols(int count) {
    symbolic::DimSpec spec;
    spec.policy = DimPolicy::kDynamic;
    for (int i = 0; i < count; ++i) all.push_back(env->create_size(10 + i, "x" + std::to_string(i), spec, {}));
  }
};

double thread_nanoseconds() {  // other programs on the machine do not count
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// `run` does `count` steps on fresh symbols.
double best(int count, int rounds, const std::function<void(Symbols&, int)>& prepare, const std::function<void(Symbols&, int)>& run) {
  double least = 0;
  for (int round = 0; round < rounds; ++round) {
    Symbols symbols(count);
    prepare(symbols, count);
    const double start = thread_nanoseconds();
    run(symbols, count);
    const double each = (thread_nanoseconds() - start) / count;
    least = round == 0 ? each : std::min(least, each);
  }
  return least;
}

PyObject* measure(PyObject*, PyObject* args) {
  const char* what;
  int count;
  int rounds;
  if (!PyArg_ParseTuple(args, "sii:symbolic_measure", &what, &count, &rounds)) return nullptr;
  if (count < 2 || rounds < 1) {
    PyErr_SetString(PyExc_ValueError, "symbolic_measure: at least 2 steps and 1 round");
    return nullptr;
  }
  const auto nothing = [](Symbols&, int) {};
  const auto add_all = [](Symbols& symbols, int steps) {
    Builder& build = symbols.env->build();
    for (int i = 1; i < steps; ++i) build.add(symbols.all[static_cast<size_t>(i - 1)], symbols.all[static_cast<size_t>(i)]);
  };
  const auto guard_all = [](Symbols& symbols, int steps) {
    Builder& build = symbols.env->build();
    for (int i = 1; i < steps; ++i) {
      const Expr sum = build.add(symbols.all[static_cast<size_t>(i - 1)], symbols.all[static_cast<size_t>(i)]);
      symbols.env->evaluate(build.gt(sum, build.constant(i)), Site{});
    }
  };
  const auto print_all = [](Symbols& symbols, int) { symbolic::produce_guards(*symbols.env, true); };
  const std::string name = what;
  return no_throw([&]() -> PyObject* {
    if (name == "new operation") return PyFloat_FromDouble(best(count, rounds, nothing, add_all));
    if (name == "repeated operation") return PyFloat_FromDouble(best(count, rounds, add_all, add_all));
    if (name == "new guard") return PyFloat_FromDouble(best(count, rounds, nothing, guard_all));
    if (name == "repeated guard") return PyFloat_FromDouble(best(count, rounds, guard_all, guard_all));
    if (name == "printed guard") return PyFloat_FromDouble(best(count, rounds, guard_all, print_all));
    PyErr_Format(PyExc_ValueError, "symbolic_measure knows no %.100s", what);
    return nullptr;
  });
}

PyMethodDef functions[] = {
    {"symbolic_measure", measure, METH_VARARGS, "symbolic_measure(what, count, rounds)\n--\n\nNanoseconds a step, in C++ alone."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_symbolic_measure(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace pellucid::module
