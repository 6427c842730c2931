// What a guard program keeps of the objects it knows by identity: weak references where the object allows them, so that a guard never
// prolongs a life and a reused address never matches. Knows nothing of guards.
#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "py/ref.h"

namespace pellucid::guard {

class Holds {
 public:
  Holds() : valid_(std::make_shared<bool>(true)) {}

  // From now on the death of `object` makes valid() false; objects that cannot be referenced weakly are kept alive. `verified`: each
  // check finds the object anew in a verified dictionary before it is touched, so a plain container there needs no reference at all. (A new
  // container at the old one's address is then taken for it, which nobody can tell: what is guarded in it is checked like before.)
  // False with an exception set on failure.
  bool hold(PyObject* object, bool verified);

  bool keep(PyObject* object);         // a strong reference
  bool holds(PyObject* object) const;  // whether it is alive as long as valid() says so
  int traverse(visitproc visit, void* arg) const;
  size_t count() const { return references_.size(); }
  bool valid() const { return *valid_; }

 private:
  std::shared_ptr<bool> valid_;
  py::Ref callback_;
  std::vector<py::Ref> references_;
  std::unordered_set<PyObject*> held_;
};

}  // namespace pellucid::guard
