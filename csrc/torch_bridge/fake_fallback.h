// The boxed fallback at DispatchKey::Fake: every operator on a fake tensor, or under a FakeScope, ends here.
#pragma once
#include <string>

namespace pellucid::bridge {

// Once per process. False with `error` set when someone else already answers at that key.
bool register_fake_fallback(std::string& error);

}  // namespace pellucid::bridge
