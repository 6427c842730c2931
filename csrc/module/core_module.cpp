// PyInit__core: the module that links to torch; torch must have been imported before. Knows only the list of areas.
#include "module/bindings.h"

namespace {

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "pellucid._core",
    "Capture: guards, cache, symbolic execution and the bridge to torch.",
    -1,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

bool bind_all([[maybe_unused]] PyObject* module) {
#define PELLUCID_BIND_AREA(name) \
  if (!pellucid::module::bind_##name(module)) return false;
  PELLUCID_CORE_AREAS(PELLUCID_BIND_AREA)
#undef PELLUCID_BIND_AREA
  return PyModule_AddStringConstant(module, "version", PELLUCID_VERSION) == 0 &&
         PyModule_AddStringConstant(module, "torch_version", PELLUCID_TORCH_VERSION) == 0;
}

}  // namespace

// Not PyMODINIT_FUNC: on 3.8 that leaves the function hidden.
extern "C" __attribute__((visibility("default"))) PyObject* PyInit__core() {
  PyObject* module = PyModule_Create(&definition);
  if (module != nullptr && !bind_all(module)) Py_CLEAR(module);
  return module;
}
