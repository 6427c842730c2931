// Why a program missed: every guard on its own, by the slow reading of resolve.h. Independent of rows and tables on purpose: where the
// two disagree, a test fails.
#include <unordered_map>

#include "guard/program.h"
#include "guard/resolve.h"
#include "source/plain.h"

namespace pellucid::guard {
namespace {

std::string value_text(PyObject* object) {
  if (object == nullptr) return "nothing";
  std::string text = source::plain_text(object);
  if (text.size() > 120) text = text.substr(0, 117) + "...";
  return text;
}

std::string type_name(PyObject* type) { return reinterpret_cast<PyTypeObject*>(type)->tp_name; }

Py_ssize_t length_of(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return Py_SIZE(object);
  if (PyDict_Check(object)) return cpython::dict_used(object);
  return PyAnySet_Check(object) ? PySet_GET_SIZE(object) : -1;
}

bool empty(PyObject* container) {
  return container == nullptr || container == Py_None || (PyTuple_Check(container) && PyTuple_GET_SIZE(container) == 0) ||
         (PyDict_Check(container) && cpython::dict_used(container) == 0);
}

std::string keys_text(PyObject* dict) {
  std::string text;
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  while (text.size() < 200 && PyDict_Next(dict, &position, &key, nullptr)) text += (text.empty() ? "" : ", ") + source::plain_text(key);
  return "[" + text + "]";
}

// Whether `key` is in a dictionary or an instance's; unsure counts as neither.
cpython::Lookup find(PyObject* object, PyObject* key_object, bool instance) {
  cpython::Key key;
  PyObject* value = nullptr;
  if (!make_key(key_object, key)) {
    PyErr_Clear();
    return cpython::Lookup::kUnsure;
  }
  if (instance) return cpython::find_in_instance(object, key, key_equal, &value);
  return PyDict_Check(object) ? cpython::find_in_dict(object, key, key_equal, &value) : cpython::Lookup::kUnsure;
}

}  // namespace

Program::Answer Program::holds(const GuardInfo& guard, const FrameView& frame, std::string& why) const {
  auto answer = [&](bool yes, const std::string& text) {
    if (!yes) why = text;
    return yes ? Answer::kYes : Answer::kNo;
  };
  if (guard.kind == Kind::kGlobalLacks) {
    bool lacks = find(PyFunction_GET_GLOBALS(frame.func), guard.payload, false) == cpython::Lookup::kAbsent;
    return answer(lacks, "a global " + source::plain_text(guard.payload) + " hides the builtin");
  }
  if (guard.kind == Kind::kPrecision) {
    const uint32_t is = bridge::float32_precision(static_cast<uint32_t>(guard.number >> 32));
    return answer(is == static_cast<uint32_t>(guard.number), "the precision of float32 products is " + bridge::float32_precision_text(is) +
                                                                 " instead of " +
                                                                 bridge::float32_precision_text(static_cast<uint32_t>(guard.number)));
  }
  if (guard.kind == Kind::kDistinct && !guard.group.empty()) {
    std::unordered_map<PyObject*, const source::Source*> seen;
    std::vector<py::Ref> values;
    for (size_t i = 0; i < guard.group.size(); i++) {
      const source::Source* source = guard.group[i];
      py::Ref value = resolve(source, frame);
      if (!value) return PyErr_Occurred() != nullptr ? Answer::kRaised : answer(false, source->name + " is gone");
      if (auto other = seen.find(value.get()); other != seen.end()) return answer(false, other->second->name + " is " + source->name);
      if (guard.number < 0 || i < static_cast<size_t>(guard.number)) seen.emplace(value.get(), source);
      values.push_back(std::move(value));
    }
    return Answer::kYes;
  }
  const std::string& name = guard.source->name;
  py::Ref holder = resolve(guard.source, frame);
  if (!holder) return PyErr_Occurred() != nullptr ? Answer::kRaised : answer(false, name + " is gone");
  PyObject* value = holder.get();
  PyTypeObject* type = Py_TYPE(value);
  switch (guard.kind) {
    case Kind::kType:
      return answer(reinterpret_cast<PyObject*>(type) == guard.payload,
                    "type(" + name + ") is " + type->tp_name + " instead of " + type_name(guard.payload));
    case Kind::kId:
      return answer(value == guard.payload, name + " is another object: " + value_text(value));
    case Kind::kEquals:
      return answer(source::plain_equal(value, guard.payload),
                    name + " is " + value_text(value) + " instead of " + value_text(guard.payload));
    case Kind::kLength:
      return answer(length_of(value) == guard.number,
                    "len(" + name + ") is " + std::to_string(length_of(value)) + " instead of " + std::to_string(guard.number));
    case Kind::kDictKeys: {
      if (!PyDict_Check(value)) return answer(false, name + " is no dictionary but " + value_text(value));
      Py_ssize_t i = 0, count = PyTuple_GET_SIZE(guard.payload);
      bool same = cpython::dict_used(value) == count && cpython::visit_keys(value, [&](PyObject* key) {
                    return i < count && key_equal(key, PyTuple_GET_ITEM(guard.payload, i++)) == 1;
                  });
      return answer(same && i == count, "the keys of " + name + " are " + keys_text(value) + " instead of " + value_text(guard.payload));
    }
    case Kind::kDictHas:
      return answer(find(value, guard.payload, false) == cpython::Lookup::kFound, name + " has no key " + value_text(guard.payload));
    case Kind::kDictLacks:
      return answer(find(value, guard.payload, false) == cpython::Lookup::kAbsent, name + " has a key " + value_text(guard.payload));
    case Kind::kInstanceLacks:
      return answer(find(value, guard.payload, true) == cpython::Lookup::kAbsent,
                    name + " has an attribute " + value_text(guard.payload) + " of its own");
    case Kind::kClassAttr: {
      const bool itself = guard.number == 1;
      cpython::Key key;
      PyObject* found = nullptr;
      if (!make_key(guard.payload, key) || !find_in_class(itself ? reinterpret_cast<PyTypeObject*>(value) : type, key, &found))
        return answer(false, "only Python code could tell " + value_text(guard.payload) + " of the class of " + name);
      return answer(found == guard.expected, (itself ? name : "type(" + name + ")") + "." + value_text(guard.payload) + " is " +
                                                 value_text(found) +
                                                 (guard.expected == nullptr ? " instead of nothing" : ", another object"));
    }
    case Kind::kTensor: {
      PyObject* const object = value;
      return answer(bridge::tensors_match(&object, &guard.spec, 1), name + " has " + bridge::tensor_difference(value, *guard.spec));
    }
    case Kind::kSame:
    case Kind::kDistinct: {
      py::Ref other = resolve(guard.other, frame);
      if (!other) return PyErr_Occurred() != nullptr ? Answer::kRaised : answer(false, guard.other->name + " is gone");
      bool want = guard.kind == Kind::kSame;
      return answer((value == other.get()) == want, name + (want ? " is not " : " is ") + guard.other->name);
    }
    case Kind::kFunctionCode:
      return answer(PyFunction_Check(value) && PyFunction_GET_CODE(value) == guard.payload, name + " has another __code__");
    case Kind::kNoDefaults: {
      if (!PyFunction_Check(value)) return answer(false, name + " is no function");
      bool keywords = guard.number == 1;
      return answer(empty(keywords ? PyFunction_GET_KW_DEFAULTS(value) : PyFunction_GET_DEFAULTS(value)),
                    name + (keywords ? " has __kwdefaults__" : " has __defaults__"));
    }
    case Kind::kCellEmpty:
      return answer(PyCell_Check(value) && PyCell_GET(value) == nullptr, "the cell " + name + " has contents");
    case Kind::kEmptyDict:
      return answer(PyDict_Check(value) && cpython::dict_used(value) == 0,
                    name + (PyDict_Check(value) ? " is not empty: " + keys_text(value) : " is no dictionary"));
    case Kind::kMro:
      return answer(has_mro(guard.number == 1 ? reinterpret_cast<PyTypeObject*>(value) : type, guard.classes),
                    (guard.number == 1 ? name : "type(" + name + ")") + " has other bases");
    case Kind::kSubclassOf:
      return answer(PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(guard.payload)) != 0,
                    "type(" + name + ") is " + type->tp_name + ", no subclass of " + type_name(guard.payload));
    case Kind::kPrecision:
    case Kind::kGlobalLacks:
      break;
  }
  return Answer::kYes;
}

std::vector<std::string> Program::failures(const FrameView& frame) {
  if (!valid()) return {"a guarded object was freed"};
  std::vector<std::string> texts;
  std::string state = bridge::global_state_difference(state_);
  if (!state.empty()) texts.push_back("global state: " + state);
  auto* function = reinterpret_cast<PyFunctionObject*>(frame.func);
  if (globals_ != nullptr && (function->func_globals != globals_ || function->func_builtins != builtins_)) {
    texts.push_back("the function has other globals or builtins");
  }
  for (const GuardInfo& guard : guards_) {
    std::string why;
    switch (holds(guard, frame, why)) {
      case Answer::kYes:
        break;
      case Answer::kNo:
        texts.push_back(why);
        break;
      case Answer::kRaised: {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        texts.push_back("reading " + guard.source->name + " raised " + type_name(type));
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        break;
      }
    }
  }
  return texts;
}

}  // namespace pellucid::guard
