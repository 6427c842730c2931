// Guards by hand: sources, guard programs and the reference evaluation for tests and benchmarks. Capture itself uses none of this.
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "guard/guard.h"
#include "module/bindings.h"
#include "torch_bridge/global_state.h"
#include "torch_bridge/tensor_guard.h"

namespace pellucid::module {

namespace {

struct SourceObject {
  PyObject_HEAD const source::Source* source;
  std::shared_ptr<source::Arena>* arena;
};

struct SourcesObject {
  PyObject_HEAD std::shared_ptr<source::Arena>* arena;
};

struct ProgramObject {
  PyObject_HEAD guard::GuardProgram* program;
};

PyTypeObject source_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.Source"};
PyTypeObject sources_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.Sources"};
PyTypeObject program_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.GuardProgram"};

struct SourceKind {
  const char* name;
  source::Kind kind;
  char takes;  // k: a key, i: an index, d: nothing
};
constexpr SourceKind kSourceKinds[] = {
    {"instance_item", source::Kind::kInstanceItem, 'k'},
    {"attr", source::Kind::kAttr, 'k'},
    {"class_attr", source::Kind::kClassAttr, 'k'},
    {"item", source::Kind::kItem, 'i'},
    {"dict_item", source::Kind::kDictItem, 'k'},
    {"cell_contents", source::Kind::kCellContents, 'd'},
    {"type_of", source::Kind::kTypeOf, 'd'},
    {"dict_of", source::Kind::kDictOf, 'd'},
    {"default", source::Kind::kDefault, 'i'},
    {"kwdefault", source::Kind::kKwDefault, 'k'},
    {"closure_cell", source::Kind::kClosureCell, 'i'},
    {"bound_self", source::Kind::kBoundSelf, 'd'},
    {"referent", source::Kind::kReferent, 'd'},
    {"bound_func", source::Kind::kBoundFunc, 'd'},
};

struct GuardKind {
  const char* name;
  guard::Kind kind;
};
constexpr GuardKind kGuardKinds[] = {
    {"type", guard::Kind::kType},
    {"id", guard::Kind::kId},
    {"equals", guard::Kind::kEquals},
    {"length", guard::Kind::kLength},
    {"dict_keys", guard::Kind::kDictKeys},
    {"dict_has", guard::Kind::kDictHas},
    {"dict_lacks", guard::Kind::kDictLacks},
    {"instance_lacks", guard::Kind::kInstanceLacks},
    {"class_attr", guard::Kind::kClassAttr},
    {"global_lacks", guard::Kind::kGlobalLacks},
    {"tensor", guard::Kind::kTensor},
    {"same", guard::Kind::kSame},
    {"distinct", guard::Kind::kDistinct},
    {"function_code", guard::Kind::kFunctionCode},
    {"no_defaults", guard::Kind::kNoDefaults},
    {"cell_empty", guard::Kind::kCellEmpty},
    {"empty_dict", guard::Kind::kEmptyDict},
    {"mro", guard::Kind::kMro},
    {"subclass_of", guard::Kind::kSubclassOf},
};

PyObject* wrap(const std::shared_ptr<source::Arena>& arena, const source::Source* source) {
  auto* object = PyObject_New(SourceObject, &source_type);
  if (object == nullptr) return nullptr;
  object->source = source;
  object->arena = new std::shared_ptr<source::Arena>(arena);
  return reinterpret_cast<PyObject*>(object);
}

void source_dealloc(PyObject* self) {
  delete reinterpret_cast<SourceObject*>(self)->arena;
  PyObject_Free(self);
}

PyObject* source_name(PyObject* self, void*) { return PyUnicode_FromString(reinterpret_cast<SourceObject*>(self)->source->name.c_str()); }

PyObject* source_is(PyObject* self, PyObject* other) {
  bool same =
      Py_TYPE(other) == &source_type && reinterpret_cast<SourceObject*>(self)->source == reinterpret_cast<SourceObject*>(other)->source;
  return PyBool_FromLong(same);
}

PyGetSetDef source_getset[] = {{"name", source_name, nullptr, nullptr, nullptr}, {}};
PyMethodDef source_methods[] = {{"is_", source_is, METH_O, "Whether both are the same interned source."}, {}};

PyObject* sources_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* self = reinterpret_cast<SourcesObject*>(type->tp_alloc(type, 0));
  if (self != nullptr) self->arena = new std::shared_ptr<source::Arena>(std::make_shared<source::Arena>());
  return reinterpret_cast<PyObject*>(self);
}

void sources_dealloc(PyObject* self) {
  delete reinterpret_cast<SourcesObject*>(self)->arena;
  Py_TYPE(self)->tp_free(self);
}

const std::shared_ptr<source::Arena>& arena_of(PyObject* self) { return *reinterpret_cast<SourcesObject*>(self)->arena; }

PyObject* sources_local(PyObject* self, PyObject* args) {
  Py_ssize_t index;
  PyObject* name;
  if (!PyArg_ParseTuple(args, "nU", &index, &name)) return nullptr;
  return wrap(arena_of(self), arena_of(self)->local(index, name));
}

PyObject* sources_free_cell(PyObject* self, PyObject* args) {
  Py_ssize_t index;
  PyObject* name;
  if (!PyArg_ParseTuple(args, "nU", &index, &name)) return nullptr;
  return wrap(arena_of(self), arena_of(self)->free_cell(index, name));
}

PyObject* sources_global(PyObject* self, PyObject* name) { return wrap(arena_of(self), arena_of(self)->global(name)); }
PyObject* sources_constant(PyObject* self, PyObject* object) { return wrap(arena_of(self), arena_of(self)->constant(object)); }

PyObject* sources_step(PyObject* self, PyObject* args) {
  const char* name;
  PyObject *base_object, *argument = nullptr;
  if (!PyArg_ParseTuple(args, "sO!|O", &name, &source_type, &base_object, &argument)) return nullptr;
  const source::Source* base = reinterpret_cast<SourceObject*>(base_object)->source;
  auto& arena = *arena_of(self);
  for (const SourceKind& kind : kSourceKinds) {
    if (std::strcmp(kind.name, name) != 0) continue;
    if ((kind.takes == 'd') != (argument == nullptr)) break;
    if (kind.takes == 'k') return wrap(arena_of(self), arena.keyed(kind.kind, base, argument));
    if (kind.takes == 'd') return wrap(arena_of(self), arena.derived(kind.kind, base));
    Py_ssize_t index = PyLong_AsSsize_t(argument);
    if (index == -1 && PyErr_Occurred() != nullptr) return nullptr;
    return wrap(arena_of(self), arena.indexed(kind.kind, base, index));
  }
  return PyErr_Format(PyExc_ValueError, "no such step of a source, or wrong arguments: %s", name);
}

PyMethodDef sources_methods[] = {
    {"local", sources_local, METH_VARARGS, "local(index, name)"},
    {"free_cell", sources_free_cell, METH_VARARGS, "free_cell(index, name)"},
    {"global_", sources_global, METH_O, "global_(name)"},
    {"constant", sources_constant, METH_O, "constant(object)"},
    {"step", sources_step, METH_VARARGS, "step(kind, base[, key or index])"},
    {},
};

bool get_source(PyObject* object, const source::Source** out) {
  *out = nullptr;
  if (object == nullptr || object == Py_None) return true;
  if (Py_TYPE(object) != &source_type) {
    PyErr_SetString(PyExc_TypeError, "a Source is needed");
    return false;
  }
  *out = reinterpret_cast<SourceObject*>(object)->source;
  return true;
}

bool get_sources(PyObject* sequence, std::vector<const source::Source*>& out) {
  if (sequence == nullptr) return true;
  py::Ref fast = py::Ref::steal(PySequence_Fast(sequence, "a sequence of sources is needed"));
  if (!fast) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); i++) {
    const source::Source* source;
    if (!get_source(PySequence_Fast_GET_ITEM(fast.get(), i), &source)) return false;
    out.push_back(source);
  }
  return true;
}

// (kind, source or None, {payload, expected, other, number, group, filename, line})
bool get_guard(PyObject* object, guard::Guard& out) {
  const char* name;
  PyObject *source, *fields;
  if (!PyArg_ParseTuple(object, "sOO!", &name, &source, &PyDict_Type, &fields)) return false;
  bool known = false;
  for (const GuardKind& kind : kGuardKinds) {
    if (std::strcmp(kind.name, name) != 0) continue;
    out.kind = kind.kind;
    known = true;
  }
  if (!known) {
    PyErr_Format(PyExc_ValueError, "no such guard kind: %s", name);
    return false;
  }
  auto field = [&](const char* key) { return PyDict_GetItemString(fields, key); };
  out.payload = py::Ref::share(field("payload"));
  out.expected = py::Ref::share(field("expected"));
  out.where.filename = py::Ref::share(field("filename"));
  if (PyObject* line = field("line")) out.where.line = static_cast<int>(PyLong_AsLong(line));
  if (PyObject* number = field("number")) out.number = PyLong_AsSsize_t(number);
  return get_source(source, &out.source) && get_source(field("other"), &out.other) && get_sources(field("group"), out.group) &&
         PyErr_Occurred() == nullptr;
}

bool get_frame(PyObject* function, PyObject* arguments, guard::FrameView& frame) {
  if (!PyFunction_Check(function) || !PyTuple_CheckExact(arguments)) {
    PyErr_SetString(PyExc_TypeError, "a function and a tuple of its arguments are needed");
    return false;
  }
  if (PyTuple_GET_SIZE(arguments) != reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))->co_argcount) {
    PyErr_SetString(PyExc_TypeError, "as many values as the function has positional arguments are needed");
    return false;
  }
  frame = {function, &PyTuple_GET_ITEM(arguments, 0)};
  return true;
}

PyObject* compile_guards(PyObject*, PyObject* args) {
  PyObject *function, *arguments, *sources, *guard_list, *block_list = nullptr;
  if (!PyArg_ParseTuple(args, "OOO!O!|O", &function, &arguments, &sources_type, &sources, &PyList_Type, &guard_list, &block_list))
    return nullptr;
  guard::FrameView frame;
  if (!get_frame(function, arguments, frame)) return nullptr;
  guard::GuardSet guards;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(guard_list); i++) {
    guard::Guard guard{};
    if (!get_guard(PyList_GET_ITEM(guard_list, i), guard)) return nullptr;
    guards.add(std::move(guard));
  }
  std::vector<const source::Source*> block;
  if (!get_sources(block_list, block)) return nullptr;
  try {
    std::unique_ptr<guard::GuardProgram> program = guard::GuardProgram::compile(guards, block, arena_of(sources), frame);
    if (program == nullptr) return nullptr;
    auto* self = PyObject_New(ProgramObject, &program_type);
    if (self != nullptr) self->program = program.release();
    return reinterpret_cast<PyObject*>(self);
  } catch (const base::InternalError& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
    return nullptr;
  }
}

guard::GuardProgram& program_of(PyObject* self) { return *reinterpret_cast<ProgramObject*>(self)->program; }

void program_dealloc(PyObject* self) {
  delete reinterpret_cast<ProgramObject*>(self)->program;
  PyObject_Free(self);
}

bool parse_frame(PyObject* args, guard::FrameView& frame) {
  PyObject *function, *arguments;
  return PyArg_ParseTuple(args, "OO", &function, &arguments) && get_frame(function, arguments, frame);
}

PyObject* program_check(PyObject* self, PyObject* args) {
  guard::FrameView frame;
  if (!parse_frame(args, frame)) return nullptr;
  guard::Verdict verdict = program_of(self).check(frame);
  if (verdict == guard::Verdict::kError) return nullptr;
  return PyBool_FromLong(verdict == guard::Verdict::kHit);
}

PyObject* program_failures(PyObject* self, PyObject* args) {
  guard::FrameView frame;
  if (!parse_frame(args, frame)) return nullptr;
  py::Ref list = py::Ref::steal(PyList_New(0));
  for (const std::string& text : program_of(self).failures(frame)) {
    py::Ref item = py::Ref::steal(PyUnicode_FromString(text.c_str()));
    if (!list || !item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* program_evaluate_text(PyObject* self, PyObject* args) {
  guard::FrameView frame;
  if (!parse_frame(args, frame)) return nullptr;
  int answer = program_of(self).evaluate_text(frame);
  return answer < 0 ? nullptr : PyBool_FromLong(answer);
}

PyObject* program_check_fn_text(PyObject* self, PyObject*) { return PyUnicode_FromString(program_of(self).check_fn_text().c_str()); }
PyObject* program_program_text(PyObject* self, PyObject*) { return PyUnicode_FromString(program_of(self).program_text().c_str()); }
PyObject* program_describe(PyObject* self, PyObject*) { return program_of(self).describe(); }

PyObject* program_block(PyObject* self, PyObject*) {  // right after a hit: the program does not own these
  guard::GuardProgram& program = program_of(self);
  py::Ref list = py::Ref::steal(PyList_New(0));
  for (size_t i = 0; i < program.block_size(); i++) {
    if (!list || PyList_Append(list.get(), program.block()[i]) < 0) return nullptr;
  }
  return list.release();
}

// measure(function, arguments, rounds): nanoseconds a check, without any Python call around it.
PyObject* program_measure(PyObject* self, PyObject* args) {
  PyObject *function, *arguments;
  long rounds;
  guard::FrameView frame;
  if (!PyArg_ParseTuple(args, "OOl", &function, &arguments, &rounds) || !get_frame(function, arguments, frame)) return nullptr;
  guard::GuardProgram& program = program_of(self);
  long hits = 0;
  auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < rounds; i++) hits += program.check(frame) == guard::Verdict::kHit;
  double nanoseconds = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  if (hits != rounds) return PyErr_Format(PyExc_RuntimeError, "%ld of %ld checks did not hit", rounds - hits, rounds);
  return PyFloat_FromDouble(nanoseconds / static_cast<double>(rounds));
}

PyObject* program_valid(PyObject* self, void*) { return PyBool_FromLong(program_of(self).valid()); }

PyGetSetDef program_getset[] = {{"valid", program_valid, nullptr, nullptr, nullptr}, {}};
PyMethodDef program_methods[] = {
    {"check", program_check, METH_VARARGS, "check(function, arguments): whether all guards hold."},
    {"failures", program_failures, METH_VARARGS, "failures(function, arguments): texts of the guards that do not hold."},
    {"evaluate_text", program_evaluate_text, METH_VARARGS, "evaluate_text(function, arguments): check_fn_text() run as Python."},
    {"check_fn_text", program_check_fn_text, METH_NOARGS, "The program as a Python function."},
    {"program_text", program_program_text, METH_NOARGS, "The rows and the sizes of the tables."},
    {"describe", program_describe, METH_NOARGS, "The guards as a list of dicts."},
    {"block", program_block, METH_NOARGS, "The inputs that the last hit verified."},
    {"measure", program_measure, METH_VARARGS, "measure(function, arguments, rounds): nanoseconds a check."},
    {},
};

PyObject* global_state(PyObject*, PyObject*) {  // (text, whether it matches itself now)
  bridge::GlobalState state;
  if (!bridge::capture_global_state(state)) return nullptr;
  return PyUnicode_FromString(bridge::global_state_text(state).c_str());
}

PyObject* force_accessors(PyObject*, PyObject* on) {
  int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  bridge::force_tensor_accessors(truth != 0);
  bridge::force_state_accessors(truth != 0);
  return Py_BuildValue("(OO)", bridge::reads_raw_tensors() ? Py_True : Py_False, bridge::reads_raw_state() ? Py_True : Py_False);
}

PyObject* tensor_word_widths(PyObject*, PyObject*) {
  py::Ref names = py::Ref::steal(PyList_New(0));
  for (const std::string& name : bridge::tensor_word_widths()) {
    py::Ref text = py::Ref::steal(PyUnicode_FromString(name.c_str()));
    if (!names || !text || PyList_Append(names.get(), text.get()) < 0) return nullptr;
  }
  return names.release();
}

PyObject* force_tensor_word_width(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  if (!bridge::force_tensor_word_width(text)) return PyErr_Format(PyExc_ValueError, "not one of tensor_word_widths(): %s", text);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"compile_guards", compile_guards, METH_VARARGS, "compile_guards(function, arguments, sources, guards[, block]): a GuardProgram."},
    {"global_state_text", global_state, METH_NOARGS, "The global state that a guard program made now would demand."},
    {"force_accessors", force_accessors, METH_O,
     "Read torch through its public accessors (tests); returns what is read raw: (tensors, state)."},
    {"tensor_word_widths", tensor_word_widths, METH_NOARGS, "Names of the vectors that tensors can be compared with here, widest first."},
    {"force_tensor_word_width", force_tensor_word_width, METH_O, "Compare tensors with one of tensor_word_widths() (tests)."},
    {},
};

}  // namespace

bool bind_guards(PyObject* module) {
  source_type.tp_basicsize = sizeof(SourceObject);
  source_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  source_type.tp_doc = "Where a value comes from, as a path from the frame.";
  source_type.tp_dealloc = source_dealloc;
  source_type.tp_getset = source_getset;
  source_type.tp_methods = source_methods;
  sources_type.tp_basicsize = sizeof(SourcesObject);
  sources_type.tp_flags = Py_TPFLAGS_DEFAULT;
  sources_type.tp_doc = "Makes interned sources.";
  sources_type.tp_new = sources_new;
  sources_type.tp_dealloc = sources_dealloc;
  sources_type.tp_methods = sources_methods;
  program_type.tp_basicsize = sizeof(ProgramObject);
  program_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  program_type.tp_doc = "A compiled set of guards.";
  program_type.tp_dealloc = program_dealloc;
  program_type.tp_getset = program_getset;
  program_type.tp_methods = program_methods;
  if (PyType_Ready(&source_type) < 0 || PyType_Ready(&sources_type) < 0 || PyType_Ready(&program_type) < 0) return false;
  return add_object(module, "Sources", Py_NewRef(reinterpret_cast<PyObject*>(&sources_type))) &&
         PyModule_AddFunctions(module, methods) == 0;
}

}  // namespace pellucid::module
