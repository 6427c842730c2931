// One callback object per program serves all its weak references. It owns the flag together with the program, because a callback may
// already be on its way when the program dies.
#include "guard/hold.h"

namespace pellucid::guard {
namespace {

constexpr const char* kCapsuleName = "pellucid.guard.valid";
using Flag = std::shared_ptr<bool>;

PyObject* on_death(PyObject* capsule, PyObject*) {
  *static_cast<Flag*>(PyCapsule_GetPointer(capsule, kCapsuleName))->get() = false;
  Py_RETURN_NONE;
}

PyMethodDef on_death_method = {"guarded_object_died", on_death, METH_O, nullptr};

PyObject* make_callback(const Flag& flag) {
  auto* copy = new Flag(flag);
  PyObject* capsule =
      PyCapsule_New(copy, kCapsuleName, [](PyObject* self) { delete static_cast<Flag*>(PyCapsule_GetPointer(self, kCapsuleName)); });
  if (capsule == nullptr) {
    delete copy;
    return nullptr;
  }
  PyObject* callback = PyCFunction_New(&on_death_method, capsule);
  Py_DECREF(capsule);
  return callback;
}

bool is_immortal(PyObject* object) {
  if (object == Py_None || object == Py_True || object == Py_False || object == Py_Ellipsis || object == Py_NotImplemented) return true;
  return PyType_Check(object) && !(reinterpret_cast<PyTypeObject*>(object)->tp_flags & Py_TPFLAGS_HEAPTYPE);
}

bool is_plain_container(PyObject* object) {
  return PyDict_CheckExact(object) || PyList_CheckExact(object) || PySet_Check(object) || PyCell_Check(object);
}

}  // namespace

bool Holds::hold(PyObject* object, bool verified) {
  if (is_immortal(object) || held_.count(object) != 0) return true;
  if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) {
    // Not marked as held: the same container may be met again where nothing verifies it.
    return (verified && is_plain_container(object)) || keep(object);
  }
  if (!callback_) callback_ = py::Ref::steal(make_callback(valid_));
  if (!callback_) return false;
  py::Ref weak = py::Ref::steal(PyWeakref_NewRef(object, callback_.get()));
  if (!weak) return false;
  references_.push_back(std::move(weak));
  held_.insert(object);
  return true;
}

bool Holds::holds(PyObject* object) const { return is_immortal(object) || held_.count(object) != 0; }

int Holds::traverse(visitproc visit, void* arg) const {
  Py_VISIT(callback_.get());
  for (const py::Ref& reference : references_) Py_VISIT(reference.get());
  return 0;
}

bool Holds::keep(PyObject* object) {
  if (held_.insert(object).second) references_.push_back(py::Ref::share(object));
  return true;
}

}  // namespace pellucid::guard
