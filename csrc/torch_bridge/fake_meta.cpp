// Redispatch to the Meta key inside torch._dispatch.python.enable_python_dispatcher(), whose C++ is these two lines of thread state.
#include "torch_bridge/fake_meta.h"

#include <c10/core/impl/PythonDispatcherTLS.h>
#include <torch/csrc/PyInterpreter.h>

namespace pellucid::bridge {

namespace {

class EnablePythonDispatcher {
 public:
  EnablePythonDispatcher() : previous_(c10::impl::PythonDispatcherTLS::get_state()) {
    c10::impl::PythonDispatcherTLS::set_state(getPyInterpreter());
  }
  ~EnablePythonDispatcher() { c10::impl::PythonDispatcherTLS::set_state(previous_); }
  EnablePythonDispatcher(const EnablePythonDispatcher&) = delete;
  EnablePythonDispatcher& operator=(const EnablePythonDispatcher&) = delete;

 private:
  c10::impl::PyInterpreter* previous_;
};

}  // namespace

void run_registered_meta(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const EnablePythonDispatcher enabled;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
}

}  // namespace pellucid::bridge
