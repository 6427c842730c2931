// `pellucid._bytecode.compare`: the grade of a decompiled code object.
#include <exception>
#include <new>

#include "decompile/compare.h"
#include "module/bindings.h"

namespace pellucid::module {
namespace {

PyObject* py_compare(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"original", "again", "standalone", nullptr};
  PyObject *original, *again;
  int standalone = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p", const_cast<char**>(keywords), &original, &again, &standalone)) return nullptr;
  try {
    decompile::Comparison result;
    const decompile::CompareOptions options{standalone != 0};
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

PyMethodDef functions[] = {
    {"compare", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_compare)), METH_VARARGS | METH_KEYWORDS,
     "compare(original, again, standalone=False)\n--\n\n(grade, first difference): 2 identical, 1 equal flow, 0 different. `standalone`: "
     "the "
     "second was compiled on its own, so prefixes of qualified names do not count."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_compare(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace pellucid::module
