// The counter itself is not exported: a dictionary that is only ours is changed, and shows it as its tag. That moves the counter by one,
// which is taken off.
#include "guard/dict_clock.h"

#include "cpython/objects.h"
#include "py/ref.h"

namespace pellucid::guard {
namespace {

class Clock {
 public:
  Clock() : dict_(PyDict_New()), key_(PyUnicode_InternFromString("tick")) {
    works_ = dict_ != nullptr && key_ != nullptr && PyDict_SetItem(dict_, key_, Py_None) == 0 && counts();
    PyErr_Clear();
  }

  uint64_t events() {
    if (!works_) return kUnknownDictEvents;
    uint64_t now = tick();
    return now == kUnknownDictEvents ? now : now - ticks_;
  }

 private:
  uint64_t tick() {
    odd_ = !odd_;
    if (PyDict_SetItem(dict_, key_, odd_ ? Py_True : Py_False) < 0) {
      PyErr_Clear();
      return kUnknownDictEvents;
    }
    ticks_++;
    return cpython::dict_version(dict_);
  }

  // Whether the counter moves as expected: by one for a tick, and for each thing that can happen to another dictionary.
  bool counts() {
    uint64_t first = tick();
    if (tick() != first + 1) return false;
    auto moves = [&](auto&& change) {
      uint64_t before = tick();
      return change() && tick() > before + 1;
    };
    py::Ref other;
    return moves([&] { return static_cast<bool>(other = py::Ref::steal(PyDict_New())); }) &&
           moves([&] { return PyDict_SetItem(other.get(), key_, Py_True) == 0; }) &&
           moves([&] { return PyDict_SetItem(other.get(), key_, Py_None) == 0; }) &&
           moves([&] { return PyDict_DelItem(other.get(), key_) == 0; }) &&
           moves([&] { return PyDict_SetItem(other.get(), key_, Py_True) == 0; }) && moves([&] {
             PyDict_Clear(other.get());
             return true;
           });
  }

  PyObject *dict_, *key_;  // never freed: they live as long as the process
  uint64_t ticks_ = 0;
  bool odd_ = false, works_ = false;
};

}  // namespace

uint64_t dict_events() noexcept {
  static Clock clock;
  return clock.events();
}

}  // namespace pellucid::guard
