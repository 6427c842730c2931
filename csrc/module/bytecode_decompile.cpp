// `pellucid._bytecode.decompile_structured`: the structured form of a code object as a tuple, for the Python side that checks it.
#include <exception>
#include <new>

#include "decompile/decompile.h"
#include "module/bindings.h"

namespace pellucid::module {
namespace {

using decompile::Decompiled;

PyObject* text(const std::string& value) {
  return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "surrogatepass");
}

PyObject* numbers(const std::vector<int32_t>& values) {
  py::Ref made = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  if (!made) return nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* item = PyLong_FromLong(values[i]);
    if (item == nullptr) return nullptr;
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), item);
  }
  return made.release();
}

// Appends what `item` holds, which may be null with an exception set.
bool append(const py::Ref& list, PyObject* item) {
  const py::Ref owned = py::Ref::steal(item);
  return owned && PyList_Append(list.get(), owned.get()) == 0;
}

PyObject* to_tuple(const Decompiled& result) {
  if (!result.structured) return Py_BuildValue("(OsNN)", Py_None, result.reason.c_str(), PyList_New(0), PyList_New(0));
  const py::Ref lines = py::Ref::steal(PyList_New(0)), bindings = py::Ref::steal(PyList_New(0));
  if (!lines || !bindings) return nullptr;
  for (const decompile::LineEntry& entry : result.line_map) {
    if (!append(lines, Py_BuildValue("(iNNN)", entry.line, text(entry.qualname), numbers(entry.offsets), numbers(entry.lines))))
      return nullptr;
  }
  for (const decompile::Binding& binding : result.bindings) {
    if (!append(bindings, Py_BuildValue("(NOO)", text(binding.name), binding.value.get(), binding.renamed ? Py_True : Py_False))) {
      return nullptr;
    }
  }
  return Py_BuildValue("(NOOO)", text(result.source), Py_None, lines.get(), bindings.get());
}

// Choices as tuples: (name and first line of the code object, kind, instruction).
bool read_choices(PyObject* object, std::set<decompile::Choice>* out) {
  if (object == nullptr || object == Py_None) return true;
  const py::Ref items = py::Ref::steal(PySequence_Fast(object, "turned is a sequence of choices"));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    const char* code;
    int kind, instruction;
    if (!PyTuple_Check(item)) {
      PyErr_SetString(PyExc_TypeError, "a choice is a tuple");
      return false;
    }
    if (!PyArg_ParseTuple(item, "sii", &code, &kind, &instruction)) return false;
    out->insert({code, static_cast<decompile::ChoiceKind>(kind), instruction});
  }
  return true;
}

// What `action` returns; C++ exceptions become Python's.
template <class Action>
PyObject* guarded(Action action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* decompile_choices(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"code", "turned", "line_layout", "function", nullptr};
  PyObject *code, *turned = nullptr, *function = Py_None;
  int line_layout = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OpO", const_cast<char**>(keywords), &code, &turned, &line_layout, &function)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Decompiled result;
    decompile::Options options;
    options.line_layout = line_layout != 0;
    options.function = function != Py_None ? function : nullptr;
    if (!read_choices(turned, &options.turned) || !decompile::structured_source(code, options, &result)) return nullptr;
    const py::Ref choices = py::Ref::steal(PyList_New(0));
    if (!choices) return nullptr;
    for (const decompile::Choice& choice : result.choices) {
      if (!append(choices, Py_BuildValue("(Nii)", text(choice.code), static_cast<int>(choice.kind), choice.instruction))) return nullptr;
    }
    if (!result.structured) return Py_BuildValue("(OO)", Py_None, choices.get());
    return Py_BuildValue("(NO)", text(result.source), choices.get());
  });
}

PyObject* decompile_structured(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"code", "unit", "line_layout", "function", "turned", nullptr};
  PyObject *code, *function = Py_None, *turned = nullptr;
  int unit = 0, line_layout = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ipOO", const_cast<char**>(keywords), &code, &unit, &line_layout, &function, &turned)) {
    return nullptr;
  }
  if (unit < 0 || unit > static_cast<int>(decompile::Unit::kModule)) {
    PyErr_SetString(PyExc_ValueError, "unit is 0 (auto), 1 (function), 2 (class) or 3 (module)");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Decompiled result;
    decompile::Options options{static_cast<decompile::Unit>(unit), line_layout != 0, function != Py_None ? function : nullptr};
    if (!read_choices(turned, &options.turned)) return nullptr;
    return decompile::structured_source(code, options, &result) ? to_tuple(result) : nullptr;
  });
}

PyMethodDef functions[] = {
    {"decompile_structured", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(decompile_structured)),
     METH_VARARGS | METH_KEYWORDS,
     "decompile_structured(code, unit=0, line_layout=False, function=None, turned=())\n--\n\n(source, None, line_map, bindings), or (None, "
     "reason, "
     "[], "
     "[]) where there is no structured form. `function`: whose defaults and annotations are printed. `turned`: choices made the other "
     "way."},
    {"decompile_choices", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(decompile_choices)), METH_VARARGS | METH_KEYWORDS,
     "decompile_choices(code, turned=(), line_layout=False, function=None)\n--\n\n(source or None, choices): what was decided on the way "
     "that the bytecode leaves open, each as (code object, kind, instruction)."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_decompile(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace pellucid::module
