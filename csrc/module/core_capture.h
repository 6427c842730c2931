// The cold side of the call path: what happens when no entry fits. Calls the translator, keeps its entries, counts against the limit
// and tells Python (pellucid._events) what people may want to know. Knows no frames.
#pragma once
#include "module/core_region.h"
#include "translate/translate.h"

namespace pellucid::module {

enum class Next : uint8_t {  // what to do with a call
  kRun,                      // run an entry's transformed code with the locals
  kAsWritten,                // run what the user wrote, frames below it looked at
  kRaise,                    // an exception is set
};

struct Miss {
  Next next = Next::kAsWritten;
  std::shared_ptr<cache::GuardedCode> entry;  // kRun: new, and its guards hold for the frame
};

// No entry of the function's code fits these arguments. `locals` has `count` values.
Miss capture_miss(RegionObject* region, PyObject* function, PyObject* const* locals, Py_ssize_t count);

// A user's function that torch.compiler.disable or torch._dynamo.disable marked not to be captured itself.
bool has_disable_mark(PyObject* function);

// A function that torch.compile or torch.compiler.disable returned: what runs below it is its business, not ours.
bool takes_over(PyObject* function);

// What capture_miss asks to capture a frame: translate::translate, unless a test puts another in its place. Null: translate again.
using Translator = translate::Result (*)(const guard::FrameView& frame, PyObject* code, cache::Region& region);
void set_translator(Translator translator);

// Told about every capture that ends, by its thread: observer(function, entry, reason). `entry`: what describe_region() has, with
// "values", the objects that its check_fn calls V; or None, and why there is none. None: nobody looks.
void set_capture_observer(PyObject* observer);

bool ready_capture();

}  // namespace pellucid::module
