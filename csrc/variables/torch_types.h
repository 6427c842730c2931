// The classes of torch that variables must recognise, looked up once at the first capture. Python objects only.
#pragma once
#include "py/python.h"

namespace pellucid::variables {

struct TorchTypes {
  PyTypeObject *tensor_base, *tensor, *parameter, *buffer, *size, *dtype, *device, *layout, *memory_format, *module, *generator;
  PyTypeObject *op_overload, *op_overload_packet, *parameter_list;
  PyTypeObject* inference_mode_context;  // torch._C._InferenceMode
  PyObject *enter_inference_mode, *exit_inference_mode;
  PyTypeObject *enum_meta, *partial;
  PyTypeObject *ordered_dict, *default_dict;
  PyObject *module_getattr, *module_setattr, *module_call;  // functions of torch.nn.Module
  PyObject* getattr;                                        // the builtin: the target of x.T, x.data
  PyObject* torch;                                          // the module
};

// Null with a Python exception set when torch can't be imported.
const TorchTypes* torch_types();

}  // namespace pellucid::variables
