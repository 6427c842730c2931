// What transformed functions call besides the graph, and the translator's caches.
#include "module/bindings.h"
#include "py/ref.h"
#include "translate/frame.h"
#include "translate/resume.h"

namespace pellucid::module {

namespace {

// type(object)'s MRO entry, unbound: _PyType_Lookup.
PyObject* class_attribute(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "class_attribute(object, name)");
    return nullptr;
  }
  PyObject* value = _PyType_Lookup(Py_TYPE(arguments[0]), arguments[1]);
  if (value) return Py_NewRef(value);
  return PyErr_Format(PyExc_AttributeError, "type '%.100s' has no attribute '%U'", Py_TYPE(arguments[0])->tp_name, arguments[1]);
}

PyObject* advanced_iterator(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "advanced_iterator(iterator, steps)");
    return nullptr;
  }
  const Py_ssize_t steps = PyLong_AsSsize_t(arguments[1]);
  if (steps == -1 && PyErr_Occurred()) return nullptr;
  for (Py_ssize_t i = 0; i < steps; i++) {
    py::Ref item = py::Ref::steal(PyIter_Next(arguments[0]));
    if (item) continue;
    if (PyErr_Occurred()) return nullptr;
    break;
  }
  return Py_NewRef(arguments[0]);
}

PyObject* forget_translations(PyObject*, PyObject*) {
  translate::forget_decoded();
  translate::forget_resume_functions();
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"class_attribute", reinterpret_cast<PyCFunction>(class_attribute), METH_FASTCALL,
     "class_attribute(object, name, /)\n--\n\nWhat the MRO of type(object) holds under name, unbound."},
    {"advanced_iterator", reinterpret_cast<PyCFunction>(advanced_iterator), METH_FASTCALL,
     "advanced_iterator(iterator, steps, /)\n--\n\nThe iterator after `steps` items."},
    {"forget_translations", forget_translations, METH_NOARGS,
     "forget_translations()\n--\n\nDrops decoded code and resume functions that nobody uses any more."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_translate(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace pellucid::module
