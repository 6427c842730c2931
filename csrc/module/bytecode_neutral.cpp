// `pellucid._bytecode`: code objects of any version as data, from files and from live ones.
#include <new>

#include "bytecode/marshal.h"
#include "bytecode/neutral_code.h"
#include "module/bindings.h"

namespace pellucid::module {
namespace {

// Reads a bytes-like object with `read(data, size)`; no C++ exception comes out.
template <class Read>
PyObject* from_buffer(PyObject* object, Read read) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(object, &buffer, PyBUF_SIMPLE) < 0) return nullptr;
  PyObject* result = nullptr;
  try {
    result = read(static_cast<const uint8_t*>(buffer.buf), static_cast<size_t>(buffer.len));
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  PyBuffer_Release(&buffer);
  return result;
}

PyObject* py_load_pyc(PyObject*, PyObject* object) { return from_buffer(object, bytecode::read_pyc); }

PyObject* py_load_marshal(PyObject*, PyObject* args) {
  PyObject* object;
  int version;
  if (!PyArg_ParseTuple(args, "Oi", &object, &version)) return nullptr;
  return from_buffer(object, [version](const uint8_t* bytes, size_t size) { return bytecode::read_marshal(bytes, size, version); });
}

PyObject* py_neutral(PyObject*, PyObject* code) { return bytecode::neutral_from(code); }

PyMethodDef functions[] = {
    {"load_pyc", py_load_pyc, METH_O,
     "load_pyc(data, /)\n--\n\nThe code object of a .pyc file of Python 3.8 to 3.13, as a NeutralCode; ValueError for anything else."},
    {"load_marshal", py_load_marshal, METH_VARARGS,
     "load_marshal(data, version, /)\n--\n\nThe value that marshal data holds; its code objects, of `version` (308 to 313), as "
     "NeutralCode."},
    {"neutral", py_neutral, METH_O, "neutral(code, /)\n--\n\nA live code object, with those among its constants, as a NeutralCode."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_neutral(PyObject* module) {
  PyTypeObject* type = bytecode::neutral_code_type();
  if (type == nullptr) return false;
  Py_INCREF(type);
  return add_object(module, "NeutralCode", reinterpret_cast<PyObject*>(type)) && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace pellucid::module
