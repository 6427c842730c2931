// The form that every code object has: a loop that dispatches over labelled blocks, with named temporaries for the stack. Meant to be
// right rather than pretty. Knows code objects only; what it cannot write as syntax it calls from pellucid.block_support, which the source
// imports.
#pragma once
#include "decompile/decompile.h"

namespace pellucid::decompile {

// As structured_source(), for any code object that an interpreter can run. `out->structured` stays false; an empty `out->reason` says
// that there is a source.
bool block_form(PyObject* code, const Options& options, Decompiled* out);

}  // namespace pellucid::decompile
