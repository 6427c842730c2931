// Whether a block form is its original: the code object that compiling it gave is executed with symbols beside the original, and every
// path must do the same operations on the same values in the same order, be guarded alike, and end alike. Code objects of one version,
// live or neutral. Trusts that what pellucid.block_support does is what its functions say.
#pragma once
#include <string>

#include "py/ref.h"

namespace pellucid::decompile {

// `bindings`: dict, what globals of the block form stand for. `reason` stays empty where the block form is proven, else it says why it is
// not. False with an exception set only where a code object cannot be decoded or memory runs out.
bool check_block_form(PyObject* original, PyObject* again, PyObject* bindings, std::string* reason);

}  // namespace pellucid::decompile
