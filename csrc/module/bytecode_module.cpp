// PyInit__bytecode: the module that needs no torch. Knows only the list of areas.
#include "module/bindings.h"

namespace {

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "pellucid._bytecode",
    "Bytecode, symbolic shapes and the frame hook; needs no torch.",
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
  PELLUCID_BYTECODE_AREAS(PELLUCID_BIND_AREA)
#undef PELLUCID_BIND_AREA
  return PyModule_AddStringConstant(module, "version", PELLUCID_VERSION) == 0;
}

}  // namespace

// Not PyMODINIT_FUNC: on 3.8 that leaves the function hidden.
extern "C" __attribute__((visibility("default"))) PyObject* PyInit__bytecode() {
  PyObject* module = PyModule_Create(&definition);
  if (module != nullptr && !bind_all(module)) Py_CLEAR(module);
  return module;
}
