// Fake tensors: torch.Tensor objects with shape, stride, dtype, device and autograd state but no data. This header is what the
// translator sees: Python objects only, no torch.
#pragma once
#include <cstdint>

#include "py/ref.h"

namespace pellucid::bridge {

// A fake of a real tensor: class (torch.Tensor or torch.nn.Parameter), sizes, strides, offset, dtype, device, requires_grad, is_leaf.
// Null with a Python exception set when it can't be had (sparse, nested, subclass, symbolic ...).
py::Ref fake_from_real(PyObject* tensor);

bool is_fake(PyObject* object);  // a fake tensor made here

// Attributes that reach around the dispatcher (`.data`, also after being assigned) give fakes that say they are on "meta": this puts the
// device back. For anything else it does nothing. The next operator that sees such a fake does it by itself.
void mend_fake(PyObject* tensor);

// While one lives, every torch operator called on this thread, factories too, runs on fakes: shapes are computed, no kernel runs.
class FakeScope {
 public:
  FakeScope();
  ~FakeScope();
  FakeScope(const FakeScope&) = delete;
  FakeScope& operator=(const FakeScope&) = delete;

 private:
  bool was_included_;
  bool hooks_were_off_ = false;
};

// The classes of float32_precision (global_state.h) that operators on this thread's fakes belonged to since this was last asked.
unsigned take_precision_seen();

// Operators that PyTorch's dispatcher has brought here on this thread, nested ones too.
uint64_t fake_calls();

// True when the exception that is set says "this operator's result depends on values" (item, nonzero, equal ...): a graph break.
bool is_data_dependent_error();

}  // namespace pellucid::bridge
