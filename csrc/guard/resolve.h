// Reading a source and testing a guard the slow, obvious way: for compiling, for explaining a miss, and as the reference the flat
// program is tested against. Runs C code only, never a user's Python code.
#pragma once
#include "cpython/objects.h"
#include "guard/guard.h"
#include "source/source.h"

namespace pellucid::guard {

// 1: equal as dictionary keys, 0: not, -1: only Python code could tell. `left` null: a table of str keys is meant.
int key_equal(PyObject* left, PyObject* right) noexcept;

// A key whose hash is known. False with an exception set if hashing it would run Python code.
bool make_key(PyObject* object, cpython::Key& key);

// What the MRO has under a name (null: nothing), looked up without Python code. False: only Python code could tell.
bool find_in_class(PyTypeObject* type, cpython::Key& name, PyObject** value) noexcept;

bool has_mro(PyTypeObject* type, const std::vector<PyObject*>& classes) noexcept;

// getattr(base, name) where C code alone serves it: module attributes, type attributes, slots, getters in C, instance dictionaries of
// types that do not override attribute access. Nothing of a program's runs, finalizers neither. Null without an exception: no such
// attribute, or not served by C code alone.
py::Ref c_getattr(PyObject* base, PyObject* name);

// Where a function keeps what it shows under this name; 0: not in a field of its own.
Py_ssize_t function_field(PyObject* name);

// A member of a function, method, property or the like that is fixed when the object is made: __globals__, __self__, fget.
bool never_changes(PyObject* base, PyObject* name);

// The function or value behind what a class holds under a name, as `Class.name` gives it; null if that makes a new object.
PyObject* class_value(PyObject* raw);

// The function of a bound method, or of a classmethod as class_value gives it; borrowed, null for others.
PyObject* bound_function(PyObject* method);

// One step of a path: the value `source` names below `base` (its base's value; ignored for roots). Null without an exception: there is
// none, or only Python code could tell. Null with one: reading it raised.
py::Ref step(const source::Source* source, PyObject* base, const FrameView& frame);

// The whole path.
py::Ref resolve(const source::Source* source, const FrameView& frame);

}  // namespace pellucid::guard
