// The walk up the frames. Only looks at modules that are loaded: asking where the program is imports nothing.
#include "symbolic_python/user_site.h"

#include <string_view>

#include "py/ref.h"

#include <frameobject.h>  // behind Python.h

namespace pellucid::symbolic_python {

namespace {

using py::Ref;

class Folder {
 public:
  explicit Folder(const char* module) : module_(module) {}

  bool holds(std::string_view path) {
    if (path_.empty()) look_up();
    return !path_.empty() && path.substr(0, path_.size()) == path_;
  }

 private:
  // The folder of the module's file, with a slash behind it; it may be loaded later.
  void look_up() {
    PyObject* modules = PyImport_GetModuleDict();
    PyObject* module = modules != nullptr ? PyDict_GetItemString(modules, module_) : nullptr;
    const Ref file = Ref::steal(module != nullptr ? PyObject_GetAttrString(module, "__file__") : nullptr);
    const char* path = file && PyUnicode_Check(file.get()) ? PyUnicode_AsUTF8(file.get()) : nullptr;
    if (path == nullptr) {
      PyErr_Clear();
      return;
    }
    path_ = path;
    path_.resize(path_.rfind('/') + 1);
  }

  const char* module_;
  std::string path_;
};

bool is_library(std::string_view path) {
  static Folder ours("pellucid");
  static Folder torch("torch");
  return ours.holds(path) || torch.holds(path);
}

symbolic::Location location_of(PyObject* frame, PyObject* file) {
  symbolic::Location location;
  const char* name = PyUnicode_AsUTF8(file);
  if (name != nullptr) location.file = name;
  location.line = PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame));
  return location;
}

symbolic::Location find(const void*) {
  symbolic::Location location;
  // Only what runs is looked at; an exception that is set already stays.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref frame = Ref::share(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && frame.get() != Py_None) {
    const Ref code = Ref::steal(PyObject_GetAttrString(frame.get(), "f_code"));
    const Ref file = Ref::steal(code ? PyObject_GetAttrString(code.get(), "co_filename") : nullptr);
    const char* path = file && PyUnicode_Check(file.get()) ? PyUnicode_AsUTF8(file.get()) : nullptr;
    if (path == nullptr) break;
    if (!is_library(path)) {
      location = location_of(frame.get(), file.get());
      break;
    }
    frame = Ref::steal(PyObject_GetAttrString(frame.get(), "f_back"));
  }
  PyErr_Restore(type, value, traceback);
  return location;
}

}  // namespace

symbolic::Site user_site() { return {find, nullptr}; }

}  // namespace pellucid::symbolic_python
