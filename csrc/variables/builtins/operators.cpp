// The operator module: its functions are the interpreter's operators; its getters (itemgetter, attrgetter, methodcaller) are immutable
// objects that are known by what they were made from.
#include <opcode.h>

#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

template <int kOperation>
Answer call_binary(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  return binary(t, kOperation, arguments.positional[0], arguments.positional[1]);
}

template <int kOperation>
Answer call_compare(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  return compare(t, kOperation, arguments.positional[0], arguments.positional[1]);
}

enum class UnaryName : uint8_t { kNeg, kPos, kInvert };

template <UnaryName kName>
Answer call_unary(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  constexpr const char* kNames[] = {"neg", "pos", "invert"};
  return unary(t, kNames[static_cast<int>(kName)], arguments.positional[0]);
}

template <bool kNegate>
Answer call_truth(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  if (as_tensor(arguments.positional[0])) return data_dependent(t, callable, arguments);
  return t.boolean(TRY(truth(t, arguments.positional[0])) != kNegate);
}

template <bool kNegate>
Answer call_identity(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  return t.boolean(TRY(identical(t, arguments.positional[0], arguments.positional[1])) != kNegate);
}

Answer call_getitem(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  return get_item(t, arguments.positional[0], arguments.positional[1]);
}

Answer call_setitem(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(3, 3)) return unsupported(t, callable, arguments);
  TRY(set_item(t, arguments.positional[0], arguments.positional[1], arguments.positional[2]));
  return t.none();
}

Answer call_delitem(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  TRY(delete_item(t, arguments.positional[0], arguments.positional[1]));
  return t.none();
}

Answer call_contains(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  return contains(t, arguments.positional[0], arguments.positional[1]);
}

Answer call_index(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  Variable* v = arguments.positional[0];
  Variable* method = as_object(v) ? TRY(class_lookup(t, v, t.intern("__index__"))) : nullptr;
  if (method != nullptr && as_function(t.force(method))) return call_special(t, v, "__index__", {});
  return fold(t, callable, arguments);
}

// operator.concat is + of sequences only; of other values it is a TypeError, which the instruction as written raises.
template <int kOperation>
Answer call_concat(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  for (Variable* v : arguments.positional) {
    PyTypeObject* type = type_of(v);
    if (type != &PyList_Type && type != &PyTuple_Type && type != &PyUnicode_Type && type != &PyBytes_Type)
      return unsupported(t, callable, arguments);
  }
  return binary(t, kOperation, arguments.positional[0], arguments.positional[1]);
}

// operator.call(f, ...) is f(...).
Answer call_call(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (arguments.positional.empty()) return unsupported(t, callable, arguments);
  Variable* callee = arguments.positional[0];
  Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.keywords};
  return call(t, callee, std::move(rest));
}

// itemgetter(...), attrgetter(...), methodcaller(...) of plain values: the object itself is made, it is immutable.
Answer make_getter(Tracer& t, PyObject* callable, Arguments& arguments) {
  py::Ref positional = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional.size())));
  for (size_t i = 0; i < arguments.positional.size(); i++) {
    PyObject* value = plain(t, arguments.positional[i]);
    if (value == nullptr) return unsupported(t, callable, arguments);
    PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i), Py_NewRef(value));
  }
  py::Ref keywords = py::Ref::steal(PyDict_New());
  for (auto& [name, v] : arguments.keywords) {
    PyObject* value = plain(t, v);
    if (value == nullptr) return unsupported(t, callable, arguments);
    if (PyDict_SetItem(keywords.get(), name, value) < 0) return t.fatal();
  }
  PyObject* getter = PyObject_Call(callable, positional.get(), keywords.get());
  if (getter == nullptr) return t.raise_python_error();
  return t.known_object(t.keep_new(getter));
}

// What a getter was made from: (positional, keywords) of its constructor.
bool constructor_arguments(PyObject* getter, py::Ref* positional, py::Ref* keywords) {
  py::Ref reduced = py::Ref::steal(PyObject_CallMethod(getter, "__reduce__", nullptr));
  if (!reduced || !PyTuple_Check(reduced.get()) || PyTuple_GET_SIZE(reduced.get()) != 2) return PyErr_Clear(), false;
  PyObject* maker = PyTuple_GET_ITEM(reduced.get(), 0);
  *positional = py::Ref::share(PyTuple_GET_ITEM(reduced.get(), 1));
  if (PyType_Check(maker)) return true;
  // methodcaller with keywords: (partial(methodcaller, name, **keywords), args)
  py::Ref first = py::Ref::steal(PyObject_GetAttrString(maker, "args"));
  *keywords = py::Ref::steal(PyObject_GetAttrString(maker, "keywords"));
  if (!first || !*keywords) return PyErr_Clear(), false;
  *positional = py::Ref::steal(PySequence_Concat(first.get(), positional->get()));
  return static_cast<bool>(*positional);
}

Answer call_itemgetter(Tracer& t, PyObject* callable, Arguments& arguments) {
  py::Ref items, keywords;
  if (!arguments.only_positional(1, 1) || !constructor_arguments(callable, &items, &keywords)) return unsupported(t, callable, arguments);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); i++) {
    if (!is_data(PyTuple_GET_ITEM(items.get(), i))) return unsupported(t, callable, arguments);
  }
  Variable* object = arguments.positional[0];
  if (PyTuple_GET_SIZE(items.get()) == 1) return get_item(t, object, t.constant(PyTuple_GET_ITEM(items.get(), 0)));
  std::vector<Variable*> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); i++)
    values.push_back(TRY(t.wait(get_item(t, object, t.constant(PyTuple_GET_ITEM(items.get(), i))))));
  return t.tuple(std::move(values));
}

Result<Variable*> dotted_attribute(Tracer& t, Variable* object, PyObject* path) {
  py::Ref dot = py::Ref::steal(PyUnicode_FromString("."));
  py::Ref parts = py::Ref::steal(PyUnicode_Split(path, dot.get(), -1));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts.get()); i++) {
    PyObject* name = Py_NewRef(PyList_GET_ITEM(parts.get(), i));
    PyUnicode_InternInPlace(&name);
    object = TRY(t.wait(get_attribute(t, object, t.keep_new(name))));
  }
  return object;
}

Answer call_attrgetter(Tracer& t, PyObject* callable, Arguments& arguments) {
  py::Ref paths, keywords;
  if (!arguments.only_positional(1, 1) || !constructor_arguments(callable, &paths, &keywords)) return unsupported(t, callable, arguments);
  std::vector<Variable*> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(paths.get()); i++)
    values.push_back(TRY(dotted_attribute(t, arguments.positional[0], PyTuple_GET_ITEM(paths.get(), i))));
  return values.size() == 1 ? values[0] : t.tuple(std::move(values));
}

Answer call_methodcaller(Tracer& t, PyObject* callable, Arguments& arguments) {
  py::Ref given, keywords;
  if (!arguments.only_positional(1, 1) || !constructor_arguments(callable, &given, &keywords)) return unsupported(t, callable, arguments);
  Arguments passed;
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(given.get()); i++) {
    if (!is_data(PyTuple_GET_ITEM(given.get(), i))) return unsupported(t, callable, arguments);
    passed.positional.push_back(t.constant(PyTuple_GET_ITEM(given.get(), i)));
  }
  PyObject *name, *value;
  for (Py_ssize_t position = 0; keywords && PyDict_Next(keywords.get(), &position, &name, &value);) {
    if (!is_data(value)) return unsupported(t, callable, arguments);
    passed.keywords.emplace_back(t.keep(name), t.constant(value));
  }
  Variable* method = TRY(t.wait(get_attribute(t, arguments.positional[0], t.keep(PyTuple_GET_ITEM(given.get(), 0)))));
  return call(t, method, std::move(passed));
}

}  // namespace

void add_operators(Table& table) {
  struct Row {
    std::initializer_list<const char*> names;
    Handler handler;
  };
  for (const Row& row : std::initializer_list<Row>{
           {{"add"}, call_binary<NB_ADD>},
           {{"and_"}, call_binary<NB_AND>},
           {{"floordiv"}, call_binary<NB_FLOOR_DIVIDE>},
           {{"lshift"}, call_binary<NB_LSHIFT>},
           {{"matmul"}, call_binary<NB_MATRIX_MULTIPLY>},
           {{"mod"}, call_binary<NB_REMAINDER>},
           {{"mul"}, call_binary<NB_MULTIPLY>},
           {{"or_"}, call_binary<NB_OR>},
           {{"pow"}, call_binary<NB_POWER>},
           {{"rshift"}, call_binary<NB_RSHIFT>},
           {{"sub"}, call_binary<NB_SUBTRACT>},
           {{"truediv"}, call_binary<NB_TRUE_DIVIDE>},
           {{"xor"}, call_binary<NB_XOR>},
           {{"iadd"}, call_binary<NB_INPLACE_ADD>},
           {{"iand"}, call_binary<NB_INPLACE_AND>},
           {{"ifloordiv"}, call_binary<NB_INPLACE_FLOOR_DIVIDE>},
           {{"ilshift"}, call_binary<NB_INPLACE_LSHIFT>},
           {{"imatmul"}, call_binary<NB_INPLACE_MATRIX_MULTIPLY>},
           {{"imod"}, call_binary<NB_INPLACE_REMAINDER>},
           {{"imul"}, call_binary<NB_INPLACE_MULTIPLY>},
           {{"ior"}, call_binary<NB_INPLACE_OR>},
           {{"ipow"}, call_binary<NB_INPLACE_POWER>},
           {{"irshift"}, call_binary<NB_INPLACE_RSHIFT>},
           {{"isub"}, call_binary<NB_INPLACE_SUBTRACT>},
           {{"itruediv"}, call_binary<NB_INPLACE_TRUE_DIVIDE>},
           {{"ixor"}, call_binary<NB_INPLACE_XOR>},
           {{"lt"}, call_compare<Py_LT>},
           {{"le"}, call_compare<Py_LE>},
           {{"eq"}, call_compare<Py_EQ>},
           {{"ne"}, call_compare<Py_NE>},
           {{"gt"}, call_compare<Py_GT>},
           {{"ge"}, call_compare<Py_GE>},
           {{"neg"}, call_unary<UnaryName::kNeg>},
           {{"pos"}, call_unary<UnaryName::kPos>},
           {{"inv", "invert"}, call_unary<UnaryName::kInvert>},
           {{"truth"}, call_truth<false>},
           {{"not_"}, call_truth<true>},
           {{"is_"}, call_identity<false>},
           {{"is_not"}, call_identity<true>},
           {{"getitem"}, call_getitem},
           {{"setitem"}, call_setitem},
           {{"delitem"}, call_delitem},
           {{"contains"}, call_contains},
           {{"index"}, call_index},
           {{"concat"}, call_concat<NB_ADD>},
           {{"iconcat"}, call_concat<NB_INPLACE_ADD>},
           {{"itemgetter", "attrgetter", "methodcaller"}, make_getter},
       })
    table.add("operator", row.names, row.handler);
  table.add("operator", {"call"}, call_call, 1);
  table.add_instances("operator", {"itemgetter"}, call_itemgetter);
  table.add_instances("operator", {"attrgetter"}, call_attrgetter);
  table.add_instances("operator", {"methodcaller"}, call_methodcaller);
  table.polyfill("operator", {"countOf", "indexOf"}, "operators");
}

}  // namespace pellucid::variables::builtins
