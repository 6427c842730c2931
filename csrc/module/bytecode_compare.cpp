// `pellucid._bytecode`: the block form of a code object, and the grade of anything decompiled.
#include <exception>
#include <new>

#include "decompile/block_check.h"
#include "decompile/block_form.h"
#include "decompile/compare.h"
#include "module/bindings.h"

namespace pellucid::module {
namespace {

PyObject* py_compare(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"original", "again", "standalone", "bindings", nullptr};
  PyObject *original, *again, *bindings = nullptr;
  int standalone = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|pO!", const_cast<char**>(keywords), &original, &again, &standalone, &PyDict_Type,
                                   &bindings))
    return nullptr;
  try {
    decompile::Comparison result;
    const decompile::CompareOptions options{standalone != 0, bindings};
    if (!decompile::compare(original, again, options, &result)) return nullptr;
    return Py_BuildValue("(iN)", static_cast<int>(result.grade),
                         PyUnicode_DecodeUTF8(result.difference.data(), static_cast<Py_ssize_t>(result.difference.size()), "replace"));
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* bindings_list(const std::vector<decompile::Binding>& bindings) {
  py::Ref list = py::Ref::steal(PyList_New(0));
  for (const decompile::Binding& binding : bindings) {
    if (!list) return nullptr;
    const py::Ref item =
        py::Ref::steal(Py_BuildValue("(sOO)", binding.name.c_str(), binding.value.get(), binding.renamed ? Py_True : Py_False));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* py_decompile_blocks(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"code", "function", nullptr};
  PyObject *code, *function = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", const_cast<char**>(keywords), &code, &function)) return nullptr;
  try {
    decompile::Decompiled result;
    decompile::Options options;
    options.function = function != Py_None ? function : nullptr;
    if (!decompile::block_form(code, options, &result)) return nullptr;
    if (!result.reason.empty()) return Py_BuildValue("(OsN)", Py_None, result.reason.c_str(), PyList_New(0));
    PyObject* source = PyUnicode_DecodeUTF8(result.source.data(), static_cast<Py_ssize_t>(result.source.size()), "surrogatepass");
    return Py_BuildValue("(NON)", source, Py_None, bindings_list(result.bindings));
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* py_check_blocks(PyObject*, PyObject* args) {
  PyObject *original, *again, *bindings;
  if (!PyArg_ParseTuple(args, "OOO!", &original, &again, &PyDict_Type, &bindings)) return nullptr;
  try {
    std::string reason;
    if (!decompile::check_block_form(original, again, bindings, &reason)) return nullptr;
    return PyUnicode_DecodeUTF8(reason.data(), static_cast<Py_ssize_t>(reason.size()), "replace");
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyMethodDef functions[] = {
    {"check_blocks", py_check_blocks, METH_VARARGS,
     "check_blocks(original, again, bindings, /)\n--\n\nWhy `again`, compiled from the block form of `original`, is not proven to do the "
     "same; empty where it is. `bindings`: what globals of the block form stand for."},
    {"decompile_blocks", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_decompile_blocks)), METH_VARARGS | METH_KEYWORDS,
     "decompile_blocks(code, function=None)\n--\n\n(source, None, bindings) of the block form, or (None, reason, []) where even that is "
     "not "
     "possible. `function`: whose defaults are printed."},
    {"compare", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_compare)), METH_VARARGS | METH_KEYWORDS,
     "compare(original, again, standalone=False, bindings={})\n--\n\n(grade, first difference): 2 identical, 1 equal flow, 0 different. "
     "`standalone`: "
     "the second was compiled on its own, so prefixes of qualified names do not count. `bindings`: which globals of the second stand for "
     "constants of the first."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_compare(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace pellucid::module
