// Where the user's program is, for the ShapeEnv's log: the innermost frame whose file lies neither in PyTorch nor in this package.
#include <string_view>

#include "torch_bridge/sym_node.h"

namespace pellucid::bridge {
namespace {

using py::Ref;

// The folder of a module's file with a slash behind it; empty when it has none.
std::string folder_of(const char* module_name) {
  const Ref module = Ref::steal(PyImport_ImportModule(module_name));
  const Ref file = module ? Ref::steal(PyObject_GetAttrString(module.get(), "__file__")) : Ref();
  const char* path = file && PyUnicode_Check(file.get()) ? PyUnicode_AsUTF8(file.get()) : nullptr;
  if (path == nullptr) {
    PyErr_Clear();
    return {};
  }
  const std::string_view text(path);
  return std::string(text.substr(0, text.rfind('/') + 1));
}

bool is_library(std::string_view path) {
  static const std::string folders[] = {folder_of("torch"), folder_of("pellucid")};
  for (const std::string& folder : folders) {
    if (!folder.empty() && path.starts_with(folder)) return true;
  }
  return false;
}

symbolic::Location find_location(const void* /*context*/) {
  Ref frame = Ref::share(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* object = reinterpret_cast<PyFrameObject*>(frame.get());
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(object)));
    const char* path = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(code.get())->co_filename);
    if (path == nullptr) PyErr_Clear();
    if (path != nullptr && !is_library(path)) return {path, PyFrame_GetLineNumber(object)};
    frame = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(object)));
  }
  return {};
}

}  // namespace

symbolic::Site user_site() { return {find_location, nullptr}; }

}  // namespace pellucid::bridge
