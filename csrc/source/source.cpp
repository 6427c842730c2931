// Interning and naming of sources. Names are what logs, guards and graph placeholders show; they must be stable between runs, so no
// address ever appears in one.
#include "source/source.h"

#include "base/check.h"
#include "source/plain.h"

namespace pellucid::source {
namespace {

std::string quoted(PyObject* text) { return plain_text(text); }

// The text of an attribute step: ".name", or a subscript where name is no text that could follow a dot.
std::string attribute(PyObject* key) {
  if (PyUnicode_CheckExact(key) && PyUnicode_IsIdentifier(key) == 1) {
    const char* text = PyUnicode_AsUTF8(key);
    if (text != nullptr) return std::string(".") + text;
    PyErr_Clear();
  }
  return ".__dict__[" + quoted(key) + "]";
}

// Text of an attribute of a type, function or module that only C code serves; empty if there is none.
std::string text_attribute(PyObject* object, const char* name) {
  py::Ref value = py::Ref::steal(PyObject_GetAttrString(object, name));
  const char* text = value && PyUnicode_CheckExact(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  if (text != nullptr) return text;
  PyErr_Clear();
  return "";
}

std::string describe_constant(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyType_Type || type == &PyFunction_Type || type == &PyCFunction_Type) {
    std::string module = text_attribute(object, "__module__"), name = text_attribute(object, "__qualname__");
    if (!name.empty()) return module.empty() || module == "builtins" ? name : module + "." + name;
  }
  if (type == &PyModule_Type) {
    const char* name = PyModule_GetName(object);
    if (name != nullptr) return name;
    PyErr_Clear();
  }
  if (type == &PyDict_Type) {  // most often a module's globals
    PyObject* name = PyDict_GetItemString(object, "__name__");
    const char* text = name != nullptr && PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (text != nullptr) return std::string(text) + ".__dict__";
    PyErr_Clear();
  }
  return type->tp_name;
}

size_t combine(size_t hash, size_t value) { return (hash ^ value) * 0x9E3779B97F4A7C15ull; }

}  // namespace

// `name` makes the text; it is called for a new source only.
template <class Name>
const Source* Arena::intern(Kind kind, const Source* base, PyObject* key, Py_ssize_t index, Name name) {
  // A constant is its object: two equal lists are two sources. Every other key is compared by value.
  bool by_identity = kind == Kind::kConst;
  size_t key_hash = key == nullptr ? 0 : by_identity ? reinterpret_cast<size_t>(key) : plain_hash(key);
  size_t hash =
      combine(combine(combine(static_cast<size_t>(kind) + 1, reinterpret_cast<size_t>(base)), key_hash), static_cast<size_t>(index));
  auto [first, last] = table_.equal_range(hash);
  for (; first != last; ++first) {
    const Source* found = first->second;
    comparisons_++;
    if (found->kind != kind || found->base != base || found->index != index) continue;
    if (found->key == key || (!by_identity && found->key != nullptr && key != nullptr && plain_equal(found->key, key))) return found;
  }
  std::string text = name();
  if (kind == Kind::kConst && !constant_names_.insert(text).second)  // names tell constants apart
    text.insert(text.size() - 2, "#" + std::to_string(sources_.size()));
  if (key != nullptr) keys_.push_back(py::Ref::share(key));
  sources_.push_back(Source{kind, base, key, index, std::move(text)});
  table_.emplace(hash, &sources_.back());
  return &sources_.back();
}

const Source* Arena::local(Py_ssize_t index, PyObject* name) {
  return intern(Kind::kLocal, nullptr, name, index, [&] { return "L[" + quoted(name) + "]"; });
}

const Source* Arena::free_cell(Py_ssize_t index, PyObject* name) {
  return intern(Kind::kFreeCell, nullptr, name, index, [&] { return "F.__closure__[" + std::to_string(index) + "]"; });
}

const Source* Arena::global(PyObject* name) {
  return intern(Kind::kGlobal, nullptr, name, -1, [&] { return "G[" + quoted(name) + "]"; });
}

const Source* Arena::constant(PyObject* object) {
  return intern(Kind::kConst, nullptr, object, -1, [&] { return "K['" + describe_constant(object) + "']"; });
}

const Source* Arena::keyed(Kind kind, const Source* base, PyObject* key) {
  CHECK(base != nullptr);
  return intern(kind, base, key, -1, [&] {
    switch (kind) {
      case Kind::kInstanceItem:
      case Kind::kAttr:
        return base->name + attribute(key);
      case Kind::kClassAttr:
        return "type(" + base->name + ")" + attribute(key);
      case Kind::kDictItem:
        return base->name + "[" + plain_text(key) + "]";
      case Kind::kKwDefault:
        return base->name + ".__kwdefaults__[" + plain_text(key) + "]";
      default:
        CHECK(false) << "this kind of source has no key";
    }
  });
}

const Source* Arena::indexed(Kind kind, const Source* base, Py_ssize_t index) {
  CHECK(base != nullptr);
  return intern(kind, base, nullptr, index, [&] {
    const std::string subscript = "[" + std::to_string(index) + "]";
    switch (kind) {
      case Kind::kItem:
        return base->name + subscript;
      case Kind::kDefault:
        return base->name + ".__defaults__" + subscript;
      case Kind::kClosureCell:
        return base->name + ".__closure__" + subscript;
      default:
        CHECK(false) << "this kind of source has no index";
    }
  });
}

const Source* Arena::derived(Kind kind, const Source* base) {
  CHECK(base != nullptr);
  return intern(kind, base, nullptr, -1, [&]() -> std::string {
    switch (kind) {
      case Kind::kCellContents:
        return base->name + ".cell_contents";
      case Kind::kTypeOf:
        return "type(" + base->name + ")";
      case Kind::kDictOf:
        return base->name + ".__dict__";
      case Kind::kBoundSelf:
        return base->name + ".__self__";
      case Kind::kBoundFunc:
        return base->name + ".__func__";
      case Kind::kReferent:
        return base->name + "()";
      default:
        CHECK(false) << "this kind of source is not derived";
    }
  });
}

int Arena::traverse(visitproc visit, void* arg) const {
  for (const py::Ref& key : keys_) Py_VISIT(key.get());
  return 0;
}

size_t Arena::bytes() const {
  size_t total = sources_.size() * (sizeof(Source) + 4 * sizeof(void*)) + keys_.size() * sizeof(py::Ref);
  for (const Source& source : sources_) total += source.name.capacity() > 15 ? source.name.capacity() : 0;
  return total;
}

}  // namespace pellucid::source
