// Lookup of torch's classes by name, once per process.
#include "variables/torch_types.h"

#include "py/ref.h"

namespace pellucid::variables {

namespace {

PyObject* lookup(const char* module_name,
                 const char* path) {  // a new reference that is never given back: these live as long as the process
  py::Ref object = py::Ref::steal(PyImport_ImportModule(module_name));
  const char* start = path;
  while (object && *start) {
    const char* dot = start;
    while (*dot && *dot != '.') dot++;
    py::Ref name = py::Ref::steal(PyUnicode_FromStringAndSize(start, dot - start));
    if (!name) return nullptr;
    object = py::Ref::steal(PyObject_GetAttr(object.get(), name.get()));
    start = *dot ? dot + 1 : dot;
  }
  return object.release();
}

bool type(PyTypeObject*& slot, const char* module_name, const char* path) {
  PyObject* object = lookup(module_name, path);
  if (!object) return false;
  slot = reinterpret_cast<PyTypeObject*>(object);
  return true;
}

bool fill(TorchTypes& t) {
  return type(t.tensor_base, "torch._C", "TensorBase") && type(t.tensor, "torch", "Tensor") && type(t.parameter, "torch.nn", "Parameter") &&
         type(t.buffer, "torch.nn.parameter", "Buffer") && type(t.size, "torch", "Size") && type(t.dtype, "torch", "dtype") &&
         type(t.device, "torch", "device") && type(t.layout, "torch", "layout") && type(t.memory_format, "torch", "memory_format") &&
         type(t.module, "torch.nn", "Module") && type(t.generator, "torch", "Generator") &&
         type(t.op_overload, "torch._ops", "OpOverload") && type(t.op_overload_packet, "torch._ops", "OpOverloadPacket") &&
         type(t.parameter_list, "torch.nn", "ParameterList") && type(t.enum_meta, "enum", "EnumMeta") &&
         type(t.partial, "functools", "partial") && type(t.ordered_dict, "collections", "OrderedDict") &&
         type(t.default_dict, "collections", "defaultdict") && (t.module_getattr = lookup("torch.nn", "Module.__getattr__")) &&
         (t.module_setattr = lookup("torch.nn", "Module.__setattr__")) && (t.module_call = lookup("torch.nn", "Module.__call__")) &&
         (t.torch = lookup("torch", "")) && (t.getattr = lookup("builtins", "getattr")) &&
         type(t.inference_mode_context, "torch._C", "_InferenceMode") &&
         (t.enter_inference_mode = lookup("torch.autograd.grad_mode", "_enter_inference_mode")) &&
         (t.exit_inference_mode = lookup("torch.autograd.grad_mode", "_exit_inference_mode"));
}

}  // namespace

const TorchTypes* torch_types() {
  static TorchTypes types;
  static bool filled = false;
  if (!filled) {
    if (!fill(types)) return nullptr;
    filled = true;
  }
  return &types;
}

}  // namespace pellucid::variables
