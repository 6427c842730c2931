// Ref: an owned reference whose ownership is in the type. A Ref is only made by `steal` (the caller's reference becomes ours) or
// `share` (a new reference is taken). Borrowed pointers stay plain PyObject*.
#pragma once
#include <utility>

#include "py/python.h"

namespace pellucid::py {

class Ref {
 public:
  Ref() = default;
  static Ref steal(PyObject* object) { return Ref(object); }
  static Ref share(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  PyObject* new_ref() const {
    Py_XINCREF(object_);
    return object_;
  }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

}  // namespace pellucid::py
