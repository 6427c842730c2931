// Keeping PyTorch's own compiler, which hooks frames as we do, away from what runs below our wrappers. Knows neither regions nor captures.
#pragma once
#include "py/python.h"

namespace pellucid::module {

// Reads torch._C._dynamo.eval_frame, which is there without torch._dynamo. False with an exception set.
bool ready_torch_compiler();

// torch._dynamo never looks at frames of this code, nor at those below them. False with an exception set.
bool keep_from_torch_compiler(PyObject* code);

// While one lives, torch._dynamo looks at no frame of this thread. Does nothing unless it was about to. Keeps a pending exception.
class TorchCompilerPause {
 public:
  TorchCompilerPause();
  ~TorchCompilerPause();
  TorchCompilerPause(const TorchCompilerPause&) = delete;
  TorchCompilerPause& operator=(const TorchCompilerPause&) = delete;

 private:
  PyObject* prior_ = nullptr;  // its callback, owned; null: there was none
};

}  // namespace pellucid::module
