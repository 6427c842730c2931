// Composite operators that PyTorch splits up above the Fake key and whose code there reads data or makes tensors in its own ways: met one
// level higher.
#pragma once
#include <string>

namespace pellucid::bridge {

// Once per process, together with the fallback. False with `error` set when someone else uses the key.
bool register_fake_composites(std::string& error);

// The key is on while a FakeScope lives.
void set_composites_included(bool included);

}  // namespace pellucid::bridge
