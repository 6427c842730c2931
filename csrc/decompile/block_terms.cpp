// Terms: each value once, constants as the compiler tells them apart.
#include "decompile/block_terms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bytecode/neutral_code.h"
#include "decompile/constants.h"

namespace pellucid::decompile::block {
namespace {

// The same for what same_constant says is the same. From Python 3.10 on a NaN's own is its address.
Py_hash_t hash_of(PyObject* object) {
  if (bytecode::is_code(object)) return 0;
  if (PyFloat_CheckExact(object) && std::isnan(PyFloat_AS_DOUBLE(object))) return 0;
  if (PyComplex_CheckExact(object)) {
    const Py_complex value = PyComplex_AsCComplex(object);
    if (std::isnan(value.real) || std::isnan(value.imag)) return 0;
  }
  if (PyFrozenSet_CheckExact(object)) return static_cast<Py_hash_t>(PySet_GET_SIZE(object));
  if (PyTuple_CheckExact(object)) {
    Py_uhash_t hash = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      hash = hash * 1000003 + static_cast<Py_uhash_t>(hash_of(PyTuple_GET_ITEM(object, i)));
    }
    return static_cast<Py_hash_t>(hash);
  }
  const Py_hash_t hash = PyObject_Hash(object);
  if (hash != -1) return hash;
  PyErr_Clear();
  return 0;
}

}  // namespace

int Terms::add(Term term) {
  Key key{term.kind, term.number, term.truth, term.object, term.text, term.parts};
  const auto [place, made] = known_.emplace(std::move(key), static_cast<int>(terms_.size()));
  if (made) terms_.push_back(std::move(term));
  return place->second;
}

int Terms::constant(PyObject* object) {
  std::vector<int>& bucket = constants_[{Py_TYPE(object), hash_of(object)}];
  for (const int known : bucket) {
    if (same_constant(terms_[static_cast<size_t>(known)].object, object)) return known;
  }
  kept_.push_back(py::Ref::share(object));
  const int made = add({TermKind::kConst, 0, PyBool_Check(object) != 0, object, {}, {}});
  bucket.push_back(made);
  return made;
}

int Terms::own_constant(py::Ref object) {
  const int made = constant(object.get());
  kept_.push_back(std::move(object));
  return made;
}

int Terms::tuple(std::vector<int> parts) {
  const auto is_const = [&](int part) { return kind(part) == TermKind::kConst && !bytecode::is_code((*this)[part].object); };
  if (!std::all_of(parts.begin(), parts.end(), is_const)) return of(TermKind::kTuple, std::move(parts));
  py::Ref made = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
  if (!made) throw std::bad_alloc();
  for (size_t i = 0; i < parts.size(); ++i) {
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), py::Ref::share((*this)[parts[i]].object).release());
  }
  return own_constant(std::move(made));
}

int Terms::negated(int term) {
  const Term& value = (*this)[term];
  if (value.kind == TermKind::kConst) return constant(value.object == Py_True ? Py_False : Py_True);
  if (value.kind == TermKind::kNot) return value.parts[0];
  return add({TermKind::kNot, 0, true, nullptr, {}, {term}});
}

int Terms::is(int left, int right) {
  const Term &a = (*this)[left], &b = (*this)[right];
  const auto single = [](const Term& term) {
    return term.kind == TermKind::kConst &&
           (term.object == Py_None || term.object == Py_True || term.object == Py_False || term.object == Py_Ellipsis);
  };
  const auto known = [](const Term& term) { return term.kind == TermKind::kConst || term.kind == TermKind::kTuple; };
  if (single(a) && left == right) return constant(Py_True);
  if (left != right && ((single(a) && known(b)) || (single(b) && known(a)))) return constant(Py_False);
  return add({TermKind::kIs, 0, true, nullptr, {}, {left, right}});
}

int Terms::truth(int term) const {
  const Term& value = (*this)[term];
  if (value.kind == TermKind::kTuple) return value.parts.empty() ? 0 : 1;
  if (value.kind != TermKind::kConst) return -1;
  PyObject* object = value.object;
  const bool plain = object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
                     PyComplex_CheckExact(object) || PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) ||
                     PyTuple_CheckExact(object) || PyFrozenSet_CheckExact(object) || object == Py_Ellipsis;
  return plain ? PyObject_IsTrue(object) : -1;
}

bool Terms::is_bool(int term) const { return (*this)[term].truth; }

bool Terms::is_cells(int term) const {
  const Term& value = (*this)[term];
  return value.kind == TermKind::kTuple && !value.parts.empty() &&
         std::all_of(value.parts.begin(), value.parts.end(), [&](int part) { return kind(part) == TermKind::kCell; });
}

bool Terms::parts_of(int term, std::vector<int>* parts) {
  const Term value = (*this)[term];
  if (value.kind == TermKind::kTuple) {
    *parts = value.parts;
    return true;
  }
  if (value.kind != TermKind::kConst || !PyTuple_CheckExact(value.object)) return false;
  parts->clear();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value.object); ++i) parts->push_back(constant(PyTuple_GET_ITEM(value.object, i)));
  return true;
}

}  // namespace pellucid::decompile::block
