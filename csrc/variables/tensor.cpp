// Tensors: attributes that the fake answers, methods as nodes of the graph, Python attributes set on tensors.
#include <unordered_set>

#include "torch_bridge/tensor_guard.h"
#include "variables/descriptor.h"
#include "variables/torch.h"
#include "variables/torch_types.h"
#include "variables/tracer.h"

namespace pellucid::variables {

namespace {

bool is_one_of(std::string_view name, const std::unordered_set<std::string_view>& names) { return names.count(name) != 0; }

// Answered by the fake: metadata that the guard on the input, or the operator that made it, fixes.
const std::unordered_set<std::string_view> kMetadata = {
    "shape",  "dtype",     "device",        "ndim",      "layout",    "requires_grad", "is_leaf", "is_cuda",  "is_meta",
    "is_cpu", "is_sparse", "is_quantized",  "is_mkldnn", "is_nested", "is_xpu",        "is_mps",  "itemsize", "nbytes",
    "names",  "output_nr", "is_sparse_csr", "is_vulkan", "is_ipu",    "is_maia",       "is_mtia", "is_ort",   "is_hpu"};
// Views and parts: a node getattr(x, name).
const std::unordered_set<std::string_view> kNodes = {"T", "mT", "H", "mH", "real", "imag", "data"};

const std::unordered_set<std::string_view> kValueMethods = {"item",      "tolist",    "numpy",       "__bool__",  "__int__",
                                                            "__float__", "__index__", "__complex__", "__array__", "__contains__"};

// A Python attribute that the program gave an input outside; null, and guarded not to be there, without one.
Variable* own_attribute(Tracer& t, TensorVariable* self, PyObject* name) {
  PyObject** dict = _PyObject_GetDictPtr(self->real);
  if (PyObject* value = dict && *dict ? PyDict_GetItemWithError(*dict, name) : nullptr)
    return t.lazy_present(value, t.sources().keyed(source::Kind::kInstanceItem, self->source, name));
  t.guard(guard::Kind::kInstanceLacks, self->source, name);
  return nullptr;
}

}  // namespace

Answer get_tensor_attribute(Tracer& t, TensorVariable* self, PyObject* name) {
  const char* raw = PyUnicode_AsUTF8(name);
  if (!raw) return t.raise_python_error();
  const std::string_view text = raw;
  for (auto& [key, value] : self->attributes)
    if (PyUnicode_Compare(key, name) == 0) {
      if (!value) return t.raise_new(PyExc_AttributeError, "'%.50s' object has no attribute '%U'", self->type->tp_name, name);
      return value;
    }
  // The fake of an input is a leaf that no operator made. Of the tensor itself that is read, and read again by the guard.
  if (self->source && self->real && (text == "is_leaf" || text == "output_nr" || text == "grad_fn")) {
    if (bridge::getters_may_run_python(self->real))
      return t.fail(Reason::unsupported_attribute, std::string(text) + " of a tensor, where a subclass or a mode answers");
    py::Ref value = py::Ref::steal(PyObject_GetAttr(self->real, name));
    if (!value) return t.raise_python_error();
    if (text == "grad_fn" ? value.get() != Py_None : text == "output_nr")
      return t.fail(Reason::unsupported_attribute, std::string(text) + " of a tensor");
    t.guard(guard::Kind::kEquals, t.sources().keyed(source::Kind::kAttr, self->source, name), value.get());
    if (value.get() == Py_False) return t.constant(Py_False);
  }
  if (is_one_of(text, kMetadata)) {
    py::Ref value = py::Ref::steal(PyObject_GetAttr(self->fake, name));
    if (!value) return t.raise_python_error();
    if (Py_IS_TYPE(value.get(), torch_types()->size)) {
      std::vector<Variable*> items;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value.get()); i++) items.push_back(t.constant(PyTuple_GET_ITEM(value.get(), i)));
      TupleVariable* shape = t.tuple(std::move(items), torch_types()->size);
      shape->real = t.keep(value.get());
      return shape;
    }
    return t.constant(value.get());
  }
  if (is_one_of(text, kNodes)) {
    Arguments arguments{{self, t.constant(name)}, {}};
    return t.torch_operator(torch_types()->getattr, nullptr, arguments);
  }
  if (text == "__class__") return t.known_object(reinterpret_cast<PyObject*>(self->type));
  if (text == "grad" || text == "_grad") {
    if (!self->source) return t.fail(Reason::unsupported_attribute, "grad of a tensor made in the graph");
    if (bridge::getters_may_run_python(self->real))
      return t.fail(Reason::unsupported_attribute, "grad of a tensor, where a subclass or a mode answers");
    py::Ref value = py::Ref::steal(PyObject_GetAttr(self->real, name));
    if (!value) return t.raise_python_error();
    return t.lazy(value.get(), t.sources().keyed(source::Kind::kAttr, self->source, name));
  }
  if (text == "grad_fn") {
    py::Ref value = py::Ref::steal(PyObject_GetAttr(self->fake, name));
    if (value.get() == Py_None) return t.none();
    return t.fail(Reason::unsupported_attribute, "grad_fn of a tensor");
  }
  PyObject* from_class = _PyType_Lookup(self->type, name);
  t.guard_class_attribute(nullptr, self->type, name, from_class);
  if (from_class) {
    if (self->source && self->real && Py_TYPE(from_class)->tp_descr_set == nullptr) {  // the tensor's own attributes come first
      if (Variable* own = own_attribute(t, self, name)) return own;
    }
    if (PyFunction_Check(from_class) || Py_TYPE(from_class) == &PyMethodDescr_Type || Py_TYPE(from_class) == &PyWrapperDescr_Type) {
      auto* method = t.make<BuiltinMethodVariable>();
      method->self = self;
      method->name = t.keep(name);
      return method;
    }
    return t.fail(Reason::unsupported_attribute, "Tensor." + std::string(text));
  }
  if (self->source && self->real) {  // a Python attribute that the program set outside
    if (Variable* own = own_attribute(t, self, name)) return own;
  }
  return t.raise_new(PyExc_AttributeError, "'%.50s' object has no attribute '%U'", self->type->tp_name, name);
}

Status set_tensor_attribute(Tracer& t, TensorVariable* self, PyObject* name, Variable* value) {
  if (_PyType_Lookup(self->type, name))
    return t.fail(Reason::unsupported_attribute, std::string("writing Tensor.") + PyUnicode_AsUTF8(name));
  for (auto& [key, old] : self->attributes)
    if (PyUnicode_Compare(key, name) == 0) {
      old = value;
      t.mark_changed(self);
      return Unit{};
    }
  self->attributes.emplace_back(t.keep(name), value);
  t.mark_changed(self);
  return Unit{};
}

Answer call_tensor_method(Tracer& t, TensorVariable* self, PyObject* name, Arguments& arguments) {
  const char* raw = PyUnicode_AsUTF8(name);
  if (!raw) return t.raise_python_error();
  const std::string_view text = raw;
  if (is_one_of(text, kValueMethods)) return t.fail(Reason::data_dependent_operator, "Tensor." + std::string(text) + "()");
  if (text == "__len__") {
    py::Ref dims = py::Ref::steal(PyObject_GetAttrString(self->fake, "shape"));
    if (!dims) return t.raise_python_error();
    if (PyTuple_GET_SIZE(dims.get()) == 0) return t.raise_new(PyExc_TypeError, "len() of a 0-d tensor");
    return t.constant(PyTuple_GET_ITEM(dims.get(), 0));
  }
  if (text == "__iter__") return get_iterator(t, self);
  if (text == "__hash__" || text == "__repr__" || text == "__str__" || text == "__format__")
    return t.fail(Reason::data_dependent_operator, "Tensor." + std::string(text) + "()");
  PyObject* from_class = _PyType_Lookup(self->type, name);
  t.guard_class_attribute(nullptr, self->type, name, from_class);
  if (!from_class) return t.raise_new(PyExc_AttributeError, "'%.50s' object has no attribute '%U'", self->type->tp_name, name);
  if (torch_role(from_class) == TorchRole::kBreak)
    return t.fail(text == "backward" ? Reason::backward_call : Reason::unsupported_method, "Tensor." + std::string(text) + "()");
  Arguments all = arguments;
  all.positional.insert(all.positional.begin(), self);
  return t.torch_operator(nullptr, name, all);
}

}  // namespace pellucid::variables
