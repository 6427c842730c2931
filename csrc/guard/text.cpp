// Texts of a program: every guard as a line of Python that pellucid.guard_text can run, the rows as they are, and the list that
// cache_entries() shows. Texts hold no addresses: objects appear as V[i], with their names in comments.
#include <cinttypes>
#include <cstdio>

#include "guard/program.h"
#include "guard/resolve.h"
#include "source/plain.h"

namespace pellucid::guard {
namespace {

constexpr const char* kKindNames[] = {"TYPE",       "ID",         "EQUALS",         "LENGTH",        "DICT_KEYS",
                                      "DICT_HAS",   "DICT_LACKS", "INSTANCE_LACKS", "CLASS_ATTR",    "GLOBAL_LACKS",
                                      "TENSOR",     "SAME",       "DISTINCT",       "FUNCTION_CODE", "NO_DEFAULTS",
                                      "CELL_EMPTY", "EMPTY_DICT", "PRECISION",      "MRO",           "SUBCLASS_OF"};
static_assert(sizeof kKindNames / sizeof *kKindNames == static_cast<size_t>(Kind::kSubclassOf) + 1);

constexpr const char* kOpNames[] = {"load_free_cell",
                                    "load_instance_item",
                                    "load_attr",
                                    "load_class_attr",
                                    "load_item",
                                    "load_items",
                                    "load_dict_item",
                                    "load_cell_contents",
                                    "load_type_of",
                                    "load_dict_of",
                                    "load_default",
                                    "load_kwdefault",
                                    "load_closure_cell",
                                    "load_bound_self",
                                    "load_bound_func",
                                    "load_referent",
                                    "load_function_field",
                                    "is",
                                    "type",
                                    "int",
                                    "str",
                                    "equals",
                                    "length",
                                    "dict_keys",
                                    "dict_has",
                                    "dict_lacks",
                                    "instance_lacks",
                                    "class_attr_is",
                                    "tensors",
                                    "same",
                                    "not_same",
                                    "distinct",
                                    "code",
                                    "codes",
                                    "no_defaults",
                                    "no_kwdefaults",
                                    "cell_empty",
                                    "empty_dict",
                                    "subclass_of",
                                    "globals",
                                    "state",
                                    "precision",
                                    "tables",
                                    "skip_unless_moved",
                                    "settled",
                                    "end"};
static_assert(sizeof kOpNames / sizeof *kOpNames == static_cast<size_t>(Op::kEnd) + 1);

// Whether repr of the value is an expression that gives it again.
bool has_literal(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (object == Py_None || type == &PyLong_Type || type == &PyBool_Type || type == &PyUnicode_Type || type == &PyBytes_Type) return true;
  if (type == &PyFloat_Type) return PyFloat_AS_DOUBLE(object) - PyFloat_AS_DOUBLE(object) == 0;  // finite
  if (type != &PyTuple_Type) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) {
    if (!has_literal(PyTuple_GET_ITEM(object, i))) return false;
  }
  return true;
}

std::string named_value(const TextValue& value, TextValues& values) {
  size_t i = 0;
  while (i < values.size() && values[i].object != value.object) i++;
  if (i == values.size()) values.push_back(value);
  return "V[" + std::to_string(i) + "]";
}

std::string value_of(PyObject* object, TextValues& values) {
  if (has_literal(object)) return source::plain_text(object);
  return named_value({object, nullptr, nullptr}, values);
}

// For the right side of `is`, where a literal would be another object.
std::string object_of(PyObject* object, TextValues& values) {
  if (object == Py_None || PyBool_Check(object)) return value_of(object, values);
  return named_value({object, nullptr, nullptr}, values);
}

std::string comment_of(const TextValue& value) {
  if (value.type != nullptr) return std::string("a ") + value.type->tp_name;
  PyObject* object = value.object;
  if (object == nullptr) return "";
  if (has_literal(object)) return source::plain_text(object);
  if (PyType_Check(object)) return reinterpret_cast<PyTypeObject*>(object)->tp_name;
  if (PyFunction_Check(object)) {
    const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(object)->func_qualname);
    if (name == nullptr) PyErr_Clear();
    return name != nullptr ? name : "a function";
  }
  if (PyModule_Check(object)) {
    const char* name = PyModule_GetName(object);
    if (name == nullptr) PyErr_Clear();
    return name != nullptr ? name : "a module";
  }
  return source::is_plain(object) ? source::plain_text(object) : std::string("a ") + Py_TYPE(object)->tp_name;
}

std::string expression(const source::Source* source, TextValues& values) {
  using source::Kind;
  std::string base = source->base != nullptr ? expression(source->base, values) : "";
  auto call = [&](const char* helper, const std::string& argument = "") {
    return std::string(helper) + "(" + base + (argument.empty() ? "" : ", " + argument) + ")";
  };
  std::string index = std::to_string(source->index);
  switch (source->kind) {
    case Kind::kLocal:
      return "L[" + value_of(source->key, values) + "]";
    case Kind::kFreeCell:
      return "F.__closure__[" + index + "]";
    case Kind::kGlobal:
      return "G[" + value_of(source->key, values) + "]";
    case Kind::kConst:
      return value_of(source->key, values);
    case Kind::kInstanceItem:
      return call("instance_item", value_of(source->key, values));
    case Kind::kAttr:
      return call("attribute", value_of(source->key, values));
    case Kind::kClassAttr:
      return call("class_attribute", value_of(source->key, values));
    case Kind::kItem:
      return call("item", index);
    case Kind::kDictItem:
      return call("dict_item", value_of(source->key, values));
    case Kind::kCellContents:
      return call("cell_contents");
    case Kind::kTypeOf:
      return call("type");
    case Kind::kDictOf:
      return call("instance_dict");
    case Kind::kDefault:
      return call("default", index);
    case Kind::kKwDefault:
      return call("kwdefault", value_of(source->key, values));
    case Kind::kClosureCell:
      return call("closure_cell", index);
    case Kind::kBoundSelf:
      return call("bound_self");
    case Kind::kReferent:
      return call("referent");
    case Kind::kBoundFunc:
      return call("bound_function");
  }
  return "";
}

std::string location(const UserLocation& where) {
  if (!where.filename) return "";
  const char* name = PyUnicode_AsUTF8(where.filename.get());
  if (name == nullptr) PyErr_Clear();
  return name != nullptr ? std::string(name) + ":" + std::to_string(where.line) : "";
}

bool set_item(PyObject* dict, const char* key, PyObject* value) {  // takes the value over
  int result = value != nullptr ? PyDict_SetItemString(dict, key, value) : -1;
  Py_XDECREF(value);
  return result == 0;
}

}  // namespace

// The guard as an expression; `values` collects the objects it names.
std::string Program::guard_text(const GuardInfo& guard, TextValues& values) const {
  if (guard.kind == Kind::kGlobalLacks) return value_of(guard.payload, values) + " not in G";
  if (guard.kind == Kind::kPrecision) {
    return "float32_precision(" + std::to_string(guard.number >> 32) +
           ") == " + bridge::float32_precision_text(static_cast<uint32_t>(guard.number));
  }
  if (guard.kind == Kind::kDistinct && !guard.group.empty()) {
    std::string text;
    for (const source::Source* source : guard.group) text += (text.empty() ? "" : ", ") + expression(source, values);
    if (guard.number >= 0) text += ", first=" + std::to_string(guard.number);
    return "distinct(" + text + ")";
  }
  std::string value = expression(guard.source, values);
  auto payload = [&] { return value_of(guard.payload, values); };
  switch (guard.kind) {
    case Kind::kType:
      return "type(" + value + ") is " + payload();
    case Kind::kId:
      // A container that only its verified place keeps alive may be gone: it is named, never touched.
      if (guard.type != nullptr) return value + " is " + named_value({guard.payload, guard.type, guard.source}, values);
      return value + " is " + object_of(guard.payload, values);
    case Kind::kEquals:
      return "equals(" + value + ", " + payload() + ")";
    case Kind::kLength:
      return "length(" + value + ") == " + std::to_string(guard.number);
    case Kind::kDictKeys:
      return "dict_keys(" + value + ", " + payload() + ")";
    case Kind::kDictHas:
      return "dict_has(" + value + ", " + payload() + ")";
    case Kind::kDictLacks:
      return "dict_lacks(" + value + ", " + payload() + ")";
    case Kind::kInstanceLacks:
      return "instance_lacks(" + value + ", " + payload() + ")";
    case Kind::kClassAttr: {
      const std::string given = value + ", " + payload();
      const std::string helper = guard.number == 1 ? "mro_" : "class_";
      if (guard.expected == nullptr) return helper + "lacks(" + given + ")";
      return helper + "attribute(" + given + ") is " + object_of(guard.expected, values);
    }
    case Kind::kTensor:
      return "tensor_matches(" + value + ", " + value_of(reinterpret_cast<PyObject*>(guard.spec->type), values) + ", " +
             bridge::tensor_spec_text(*guard.spec) + ")";
    case Kind::kSame:
      return value + " is " + expression(guard.other, values);
    case Kind::kDistinct:
      return value + " is not " + expression(guard.other, values);
    case Kind::kFunctionCode:
      return "code(" + value + ") is " + payload();
    case Kind::kNoDefaults:
      return std::string(guard.number == 1 ? "no_kwdefaults(" : "no_defaults(") + value + ")";
    case Kind::kCellEmpty:
      return "cell_empty(" + value + ")";
    case Kind::kEmptyDict:
      return "empty_dict(" + value + ")";
    case Kind::kMro: {
      std::string text = "mro(" + (guard.number == 1 ? value : "type(" + value + ")") + ") == (";
      for (PyObject* each : guard.classes) text += object_of(each, values) + ", ";
      return text + ")";
    }
    case Kind::kSubclassOf:
      return "issubclass(type(" + value + "), " + payload() + ")";
    case Kind::kPrecision:
    case Kind::kGlobalLacks:
      break;
  }
  return "";
}

std::string Program::whole_text(TextValues& values) const {
  std::string text = "def check(L, G, F):\n    if not global_state_is(" + bridge::global_state_text(state_) + "):\n        return False\n";
  if (globals_ != nullptr)
    text +=
        "    if G is not " + named_value({globals_, &PyDict_Type, nullptr}, values) + ":  # the module's globals\n        return False\n";
  for (const GuardInfo& guard : guards_) {
    size_t known = values.size();
    text += "    if not (" + guard_text(guard, values) + "):";
    std::string comment;
    for (; known < values.size(); known++)
      comment += (comment.empty() ? "" : "; ") + ("V[" + std::to_string(known) + "]: " + comment_of(values[known]));
    std::string where = location(guard.where);
    if (!where.empty()) comment += (comment.empty() ? "" : "; ") + where;
    for (char& c : comment) c = c == '\n' || c == '\r' ? ' ' : c;
    text += (comment.empty() ? "" : "  # " + comment) + "\n        return False\n";
  }
  return text + "    return True\n";
}

std::string Program::check_fn_text() const {
  if (!valid()) return "def check(L, G, F):\n    return False  # a guarded object was freed\n";
  TextValues values;
  return whole_text(values);
}

py::Ref Program::tuple_of(const TextValues& values, const FrameView& frame) const {
  py::Ref held = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  if (!held) return {};
  for (size_t i = 0; i < values.size(); i++) {
    py::Ref value;
    if (values[i].type == nullptr) {
      value = py::Ref::share(values[i].object);
    } else {  // alive if it is still there, and otherwise anything else will do
      value = values[i].place != nullptr ? resolve(values[i].place, frame) : py::Ref::share(PyFunction_GET_GLOBALS(frame.func));
      if (value.get() != values[i].object) value = py::Ref::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
      if (!value) return {};
    }
    PyTuple_SET_ITEM(held.get(), static_cast<Py_ssize_t>(i), value.release());
  }
  return held;
}

PyObject* Program::text_values(const FrameView& frame) const {
  TextValues values;
  if (valid()) whole_text(values);
  return tuple_of(values, frame).release();
}

int Program::evaluate_text(const FrameView& frame) const {
  if (!valid()) return 0;
  TextValues values;
  std::string text = whole_text(values);
  py::Ref held = tuple_of(values, frame);
  if (!held) return -1;
  py::Ref locals = py::Ref::steal(PyDict_New());
  if (!locals) return -1;
  for (const source::Source& source : arena_->all()) {
    if (source.kind != source::Kind::kLocal || frame.locals[source.index] == nullptr) continue;
    if (PyDict_SetItem(locals.get(), source.key, frame.locals[source.index]) < 0) return -1;
  }
  py::Ref helpers = py::Ref::steal(PyImport_ImportModule("pellucid.guard_text"));
  if (!helpers) return -1;
  py::Ref result =
      py::Ref::steal(PyObject_CallMethod(helpers.get(), "evaluate", "sOOO", text.c_str(), locals.get(), frame.func, held.get()));
  return result ? PyObject_IsTrue(result.get()) : -1;
}

size_t Program::size() const {
  size_t size = rows_.size() + types_.size() + objects_.size() + other_objects_.size() + dicts_.size() + (empty_end_ - tensor_count_);
  for (auto [first, last] : table_runs_) size += last - first;
  for (const Expected& expected : dict_expected_) size += expected.entries.size();
  for (const Expected& expected : type_expected_) size += expected.entries.size();
  for (const Group& group : groups_) size += group.kept.size() + group.per_call.size();
  return size;
}

std::string Program::program_text() const {
  std::string text;
  char line[160];
  for (size_t i = 0; i < rows_.size(); i++) {
    const Row& row = rows_[i];
    std::snprintf(line, sizeof line, "%4zu %-18s", i, kOpNames[static_cast<size_t>(row.op)]);
    text += line;
    if (row.op < Op::kGlobals) text += (row.local & 1 ? " local " : " slot ") + std::to_string(row.source);
    if (row.op <= Op::kLoadFunctionField) text += " -> slot " + std::to_string(row.destination);
    if (row.op == Op::kLoadItems) text += " .. " + std::to_string(row.destination + row.count - 1);
    if (row.op == Op::kTensors || row.op == Op::kCodes) text += " .. " + std::to_string(row.source + row.count - 1);
    if (row.op == Op::kInt) text += " == " + std::to_string(static_cast<int64_t>(row.value));
    if (row_guards_[i] >= 0 && guards_[static_cast<size_t>(row_guards_[i])].source != nullptr) {
      text += "  ; " + guards_[static_cast<size_t>(row_guards_[i])].source->name;
    }
    text += "\n";
  }
  size_t empties = empty_end_ - tensor_count_, checked = 0, entries = 0;
  for (auto [first, last] : table_runs_) checked += last - first;
  for (const Expected& expected : dict_expected_) entries += expected.entries.size();
  for (const Expected& expected : type_expected_) entries += expected.entries.size();
  std::snprintf(line, sizeof line, "tables: %zu types, %zu objects, %zu dicts in %zu stages, %zu empty dicts, %zu tensors, %zu entries\n",
                types_.size(), objects_.size() + other_objects_.size(), dicts_.size(), stages_.size(), empties, checked, entries);
  text += line;
  std::snprintf(line, sizeof line, "slots: %zu, of them %zu in the block\n", slots_.size() - 1, block_size_);
  return text + line;
}

PyObject* Program::describe() const {
  py::Ref list = py::Ref::steal(PyList_New(0));
  if (!list) return nullptr;
  bool alive = valid();
  for (const GuardInfo& guard : guards_) {
    TextValues values;
    std::string text = alive ? guard_text(guard, values) : "(a guarded object was freed)";
    for (size_t i = 0; i < values.size(); i++) {  // V[i] says nothing outside the whole text
      std::string mark = "V[" + std::to_string(i) + "]", name = comment_of(values[i]);
      for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + name.size()))
        text.replace(at, mark.size(), name);
    }
    std::string name = guard.source != nullptr ? guard.source->name : !guard.group.empty() ? guard.group[0]->name : "G";
    py::Ref row = py::Ref::steal(PyDict_New());
    const char* kind = kKindNames[static_cast<size_t>(guard.kind)];
    bool ok = row && set_item(row.get(), "name", PyUnicode_FromFormat("%s %s", kind, name.c_str())) &&
              set_item(row.get(), "source", PyUnicode_FromString(name.c_str())) &&
              set_item(row.get(), "kind", PyUnicode_FromString(kind)) &&
              set_item(row.get(), "text", PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))) &&
              set_item(row.get(), "filename", Py_NewRef(guard.where.filename ? guard.where.filename.get() : Py_None)) &&
              set_item(row.get(), "line", PyLong_FromLong(guard.where.line)) && PyList_Append(list.get(), row.get()) == 0;
    if (!ok) return nullptr;
  }
  return list.release();
}

}  // namespace pellucid::guard
