// The sharing of a list of arguments is a list of numbers: empty when no two tensors use one storage, which is found without sorting.
#include "torch_bridge/storage_dispatch.h"

#include <structmember.h>
#include <torch/csrc/autograd/python_variable.h>

#include <bit>
#include <vector>

namespace pellucid::bridge {
namespace {

using py::Ref;
using Sharing = std::vector<int64_t>;

const void* storage_of(PyObject* object) {
  if (!THPVariable_Check(object)) return nullptr;
  const at::Tensor& tensor = THPVariable_Unpack(object);
  return tensor.has_storage() ? tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() : nullptr;
}

// A set of pointers for one call, open addressing, in memory of the thread.
class SeenStorages {
 public:
  explicit SeenStorages(size_t count) : mask_(std::bit_ceil(count * 2 + 2) - 1) {
    static thread_local std::vector<const void*> table;
    table.assign(mask_ + 1, nullptr);
    table_ = table.data();
  }
  bool insert(const void* pointer) {  // false: it was there
    size_t at = (reinterpret_cast<uintptr_t>(pointer) >> 4) * 0x9E3779B97F4A7C15ull >> 20 & mask_;
    for (; table_[at] != nullptr; at = (at + 1) & mask_) {
      if (table_[at] == pointer) return false;
    }
    table_[at] = pointer;
    return true;
  }

 private:
  size_t mask_;
  const void** table_;
};

bool any_shared(PyObject* const* args, Py_ssize_t count) {
  SeenStorages seen(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; i++) {
    const void* storage = storage_of(args[i]);
    if (storage != nullptr && !seen.insert(storage)) return true;
  }
  return false;
}

// For each argument that shares: the first argument with its storage, its offset into it, the first argument that is the same object.
Sharing sharing_of(PyObject* const* args, Py_ssize_t count) {
  Sharing sharing;
  if (!any_shared(args, count)) return sharing;
  std::unordered_map<const void*, Py_ssize_t> first_storage, first_object;
  for (Py_ssize_t i = 0; i < count; i++) {
    const void* storage = storage_of(args[i]);
    if (storage == nullptr) {
      sharing.insert(sharing.end(), {-1, 0, -1});
      continue;
    }
    const Py_ssize_t object = first_object.try_emplace(args[i], i).first->second;
    sharing.insert(sharing.end(),
                   {first_storage.try_emplace(storage, i).first->second, THPVariable_Unpack(args[i]).storage_offset(), object});
  }
  return sharing;
}

struct Variant {
  Sharing sharing;
  Ref compiled;
};

struct DispatchObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* compile;
  std::vector<Variant>* variants;
};

PyObject* dispatch_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* dispatch = reinterpret_cast<DispatchObject*>(self);
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) {
    PyErr_SetString(PyExc_TypeError, "the graph takes no keyword arguments");
    return nullptr;
  }
  if (dispatch->variants == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the graph was cleared by the garbage collector");
    return nullptr;
  }
  try {
    Sharing sharing = sharing_of(args, count);
    for (const Variant& variant : *dispatch->variants) {
      if (variant.sharing != sharing) continue;
      Ref compiled = variant.compiled;  // the list may grow while it runs
      return PyObject_Vectorcall(compiled.get(), args, nargsf, nullptr);
    }
    Ref compiled = Ref::steal(PyObject_Vectorcall(dispatch->compile, args, static_cast<size_t>(count), nullptr));
    if (!compiled) return nullptr;
    if (dispatch->variants != nullptr) dispatch->variants->push_back({std::move(sharing), compiled});
    return PyObject_Vectorcall(compiled.get(), args, nargsf, nullptr);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

int dispatch_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* dispatch = reinterpret_cast<DispatchObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(dispatch->compile);
  if (dispatch->variants == nullptr) return 0;
  for (const Variant& variant : *dispatch->variants) Py_VISIT(variant.compiled.get());
  return 0;
}

int dispatch_clear(PyObject* self) {
  auto* dispatch = reinterpret_cast<DispatchObject*>(self);
  Py_CLEAR(dispatch->compile);
  delete std::exchange(dispatch->variants, nullptr);
  return 0;
}

void dispatch_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  dispatch_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* dispatch_type() {
  static PyTypeObject* type = nullptr;
  if (type != nullptr) return type;
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(DispatchObject, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("Compiled variants of a graph, chosen by which inputs share memory.")},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dispatch_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(dispatch_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(dispatch_clear)},
      {Py_tp_members, members},
      {0, nullptr},
  };
  static PyType_Spec spec = {"pellucid._core.StorageDispatch", sizeof(DispatchObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

}  // namespace

Ref make_storage_dispatch(PyObject* compile, PyObject* example, PyObject* compiled) {
  PyTypeObject* type = dispatch_type();
  if (type == nullptr) return Ref();
  auto* dispatch = reinterpret_cast<DispatchObject*>(type->tp_alloc(type, 0));
  if (dispatch == nullptr) return Ref();
  Ref result = Ref::steal(reinterpret_cast<PyObject*>(dispatch));
  dispatch->vectorcall = dispatch_call;
  Py_INCREF(compile);
  dispatch->compile = compile;
  dispatch->variants = new std::vector<Variant>;
  PyObject* const* items = reinterpret_cast<PyTupleObject*>(example)->ob_item;
  dispatch->variants->push_back({sharing_of(items, PyTuple_GET_SIZE(example)), Ref::share(compiled)});
  return result;
}

}  // namespace pellucid::bridge
