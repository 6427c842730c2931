// Constructors of builtin types: numbers, sequences, sets, dicts, range and slice, called as functions.
#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

Answer call_bool(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(0, 1)) return unsupported(t, callable, arguments);
  if (arguments.positional.empty()) return t.boolean(false);
  return t.boolean(TRY(truth(t, arguments.positional[0])));
}

// int(), float(), complex(): of known values by the real constructor; of objects by the special method that it would call.
Answer call_number(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (has_tensor(t, arguments)) return data_dependent(t, callable, arguments);
  if (arguments.only_positional(1, 1)) {
    Variable* v = arguments.positional[0];
    auto* object = as_object(v);
    if (object != nullptr && !(object->existed && object->real != nullptr && PyType_Check(object->real))) {
      PyTypeObject* type = object->type;
      // Subclasses of the numbers that keep the builtin conversion (IntEnum members): their value is known.
      auto* numbers = type->tp_as_number;
      auto* real = object->existed ? object->real : nullptr;
      if (callable == reinterpret_cast<PyObject*>(&PyLong_Type) && real && PyLong_Check(real) && numbers && object->by_identity &&
          numbers->nb_int == PyLong_Type.tp_as_number->nb_int)
        return t.constant_new(PyLong_Type.tp_as_number->nb_int(real));
      if (callable == reinterpret_cast<PyObject*>(&PyFloat_Type) && real && PyFloat_Check(real) && numbers && object->by_identity &&
          numbers->nb_float == PyFloat_Type.tp_as_number->nb_float)
        return t.constant_new(PyFloat_FromDouble(PyFloat_AS_DOUBLE(real)));
      const char* first = callable == reinterpret_cast<PyObject*>(&PyLong_Type)    ? "__int__"
                          : callable == reinterpret_cast<PyObject*>(&PyFloat_Type) ? "__float__"
                                                                                   : "__complex__";
      for (const char* name : {first, "__index__"}) {
        Variable* method = TRY(class_lookup(t, v, t.intern(name)));
        if (method == nullptr) continue;
        if (!as_function(t.force(method))) break;
        Variable* value = t.force(TRY(t.wait(call_special(t, v, name, {}))));
        PyObject* number = plain(t, value);
        if (number == nullptr) return unsupported(t, callable, arguments);
        PyTypeObject* wanted = reinterpret_cast<PyTypeObject*>(callable);
        if (Py_TYPE(number) == wanted) return value;
        if (name != first && PyLong_CheckExact(number)) return t.constant_new(PyObject_CallOneArg(callable, number));
        return unsupported(t, callable, arguments);  // a TypeError or a deprecated subclass result
      }
    }
  }
  return fold(t, callable, arguments);
}

Answer call_list(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(0, 1)) return unsupported(t, callable, arguments);
  if (arguments.positional.empty()) return t.list({});
  return t.list(TRY(unpack(t, arguments.positional[0])));
}

Answer call_tuple(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(0, 1)) return unsupported(t, callable, arguments);
  if (arguments.positional.empty()) return t.tuple({});
  if (auto* tuple = as_tuple(arguments.positional[0]); tuple && tuple->type == &PyTuple_Type) return tuple;  // tuple(t) is t
  return t.tuple(TRY(unpack(t, arguments.positional[0])));
}

Answer call_set(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(0, 1)) return unsupported(t, callable, arguments);
  bool frozen = callable == reinterpret_cast<PyObject*>(&PyFrozenSet_Type);
  if (arguments.positional.empty()) return make_set(t, frozen ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
  if (auto* set = as_set(arguments.positional[0]); set && set->frozen && frozen) return set;  // frozenset(f) is f
  return make_set(t, TRY(key_set(t, arguments.positional[0], frozen)).release());
}

// The pairs of dict(source); also for the subclasses with the same constructor.
Status fill_dict(Tracer& t, PyObject* callable, DictVariable* made, Variable* source, Arguments& arguments) {
  if (auto* dict = as_dict(source)) {
    for (auto& [key, value] : dict->entries) {
      if (value != nullptr) dict_store(t, made, key, value);
    }
    return Unit{};
  }
  if (auto* object = as_object(source)) {
    if (auto* inner = as_dict(object->inner)) return fill_dict(t, callable, made, inner, arguments);
    if (TRY(class_lookup(t, object, t.intern("keys"))) != nullptr || TRY(has_attribute(t, object, t.intern("keys")))) {
      Variable* keys = TRY(t.wait(call(t, TRY(t.wait(get_attribute(t, object, t.intern("keys")))), {})));
      for (Variable* key : TRY(unpack(t, keys))) {
        PyObject* real = TRY(dict_key(t, key));
        dict_store(t, made, t.keep(real), TRY(t.wait(get_item(t, object, key))));
      }
      return Unit{};
    }
  }
  Py_ssize_t position = 0;
  const bool ordered = PyType_IsSubtype(made->type, &PyODict_Type);  // its messages are others: left to eager execution
  for (Variable* pair : TRY(unpack(t, source))) {                    // PyDict_MergeFromSeq2
    Result<std::vector<Variable*>> unpacked = unpack(t, pair);
    if (ordered && unpacked.ok() && unpacked.value().size() != 2) return unsupported(t, callable, arguments);
    if (!ordered && !unpacked.ok() && raised(unpacked.failure(), PyExc_TypeError))
      return t.raise_new(PyExc_TypeError, "cannot convert dictionary update sequence element #%zd to a sequence", position);
    std::vector<Variable*> parts = TRY(std::move(unpacked));
    if (parts.size() != 2) {
      return t.raise_new(PyExc_ValueError, "dictionary update sequence element #%zd has length %zd; 2 is required", position,
                         static_cast<Py_ssize_t>(parts.size()));
    }
    position++;
    PyObject* key = TRY(dict_key(t, parts[0]));
    dict_store(t, made, t.keep(key), parts[1]);
  }
  return Unit{};
}

Answer call_dict(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (arguments.positional.size() > 1) return unsupported(t, callable, arguments);
  DictVariable* made = t.dict(reinterpret_cast<PyTypeObject*>(callable));
  if (!arguments.positional.empty()) TRY(fill_dict(t, callable, made, arguments.positional[0], arguments));
  for (auto& [name, value] : arguments.keywords) dict_store(t, made, name, value);
  return made;
}

Answer call_defaultdict(Tracer& t, PyObject* callable, Arguments& arguments) {
  Arguments rest = arguments;
  Variable* factory = t.none();
  if (!rest.positional.empty()) {
    factory = rest.positional[0];
    PyTypeObject* type = type_of(factory);
    if (plain(t, factory) != Py_None && (type == nullptr || type->tp_call == nullptr))
      return unsupported(t, callable, arguments);  // TypeError
    rest.positional.erase(rest.positional.begin());
  }
  Variable* made = TRY(call_dict(t, callable, rest));
  as_dict(made)->default_factory = factory;
  return made;
}

Answer call_range(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 3)) return unsupported(t, callable, arguments);
  Arguments known_arguments;
  for (Variable* v : arguments.positional) {
    if (as_tensor(v)) return data_dependent(t, callable, arguments);
    if (auto* object = as_object(v)) {  // a user's __index__
      Variable* method = TRY(class_lookup(t, object, t.intern("__index__")));
      if (method != nullptr && as_function(t.force(method))) v = t.force(TRY(t.wait(call_special(t, object, "__index__", {}))));
    }
    known_arguments.positional.push_back(v);
  }
  return fold(t, callable, known_arguments);
}

Answer call_slice(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 3)) return unsupported(t, callable, arguments);
  Variable* parts[3] = {t.none(), t.none(), t.none()};
  if (arguments.positional.size() == 1) {
    parts[1] = arguments.positional[0];
  } else {
    std::copy(arguments.positional.begin(), arguments.positional.end(), parts);
  }
  PyObject* values[3];
  bool all_known = true;
  for (int i = 0; i < 3; i++) {
    values[i] = plain(t, parts[i]);
    all_known = all_known && values[i] != nullptr;
  }
  if (all_known) return t.constant_new(PySlice_New(values[0], values[1], values[2]));
  auto* made = t.make<SliceVariable>();
  std::copy(parts, parts + 3, made->parts);
  return made;
}

}  // namespace

void add_conversion(Table& table) {
  table.add("builtins", {"bool"}, call_bool);
  table.add("builtins", {"int", "float", "complex"}, call_number);
  table.add("builtins", {"bytes", "ord", "chr", "hex", "bin", "oct"}, fold);
  table.add("builtins", {"list"}, call_list);
  table.add("builtins", {"tuple"}, call_tuple);
  table.add("builtins", {"set", "frozenset"}, call_set);
  table.add("builtins", {"dict"}, call_dict, 1);
  table.add("collections", {"OrderedDict"}, call_dict, 1);
  table.add("collections", {"defaultdict"}, call_defaultdict);
  table.add("builtins", {"range"}, call_range);
  table.add("builtins", {"slice"}, call_slice);
}

}  // namespace pellucid::variables::builtins
