// node.meta: example_value, stack_trace (the text traceback.format_list gives, source lines from linecache), nn_module_stack,
// source_name and tensor_dict.
#include "torch_bridge/fx_meta.h"

#include "base/check.h"
#include "torch_bridge/interned.h"

namespace pellucid::bridge {

using translate::GraphNode;
using translate::GraphRecord;
using translate::ModuleEntry;
using translate::StackEntry;

FxMeta::FxMeta(const GraphRecord& record) : record_(record), traces_(record.stacks.size()), modules_(record.modules.size()) {}

PyObject* FxMeta::lines_of(PyObject* filename) {
  py::Ref& lines = lines_[filename];
  if (lines) return lines.get();
  py::Ref linecache = py::Ref::steal(PyImport_ImportModule("linecache"));
  if (!linecache) return nullptr;
  py::Ref result = py::Ref::steal(PyObject_CallMethodOneArg(linecache.get(), INTERNED("getlines"), filename));
  if (!result) return nullptr;
  if (!PyList_Check(result.get())) {
    PyErr_SetString(PyExc_TypeError, "linecache.getlines did not return a list");
    return nullptr;
  }
  lines = std::move(result);
  return lines.get();
}

bool FxMeta::extend_trace(const StackEntry& entry, const py::Ref& outer, py::Ref* out) {
  CHECK(entry.code && PyCode_Check(entry.code.get())) << "a stack entry without code";
  auto* code = reinterpret_cast<PyCodeObject*>(entry.code.get());
  PyObject* lines = lines_of(code->co_filename);
  if (lines == nullptr) return false;
  py::Ref line;
  if (entry.line > 0 && entry.line <= PyList_GET_SIZE(lines)) {
    line = py::Ref::steal(PyObject_CallMethodNoArgs(PyList_GET_ITEM(lines, entry.line - 1), INTERNED("strip")));
    if (!line) return false;
  }
  py::Ref before = outer ? outer : py::Ref::steal(PyUnicode_New(0, 0));
  if (!before) return false;
  if (line && PyUnicode_GET_LENGTH(line.get()) > 0) {
    *out = py::Ref::steal(PyUnicode_FromFormat("%U  File \"%U\", line %d, in %U\n    %U\n", before.get(), code->co_filename, entry.line,
                                               code->co_name, line.get()));
  } else {
    *out = py::Ref::steal(
        PyUnicode_FromFormat("%U  File \"%U\", line %d, in %U\n", before.get(), code->co_filename, entry.line, code->co_name));
  }
  return static_cast<bool>(*out);
}

PyObject* FxMeta::stack_trace(int32_t index) {
  // From the innermost entry outwards to one that is known, and back: a loop, because the user's stack may be deep.
  std::vector<int32_t> pending;
  int32_t at = index;
  for (; at >= 0; at = record_.stacks[at].parent) {
    CHECK(static_cast<size_t>(at) < traces_.size()) << "stack " << at;
    if (traces_[at]) break;
    CHECK(pending.size() <= traces_.size()) << "a cycle of stack entries";
    pending.push_back(at);
  }
  py::Ref outer = at >= 0 ? traces_[at] : py::Ref();
  while (!pending.empty()) {
    const int32_t entry = pending.back();
    pending.pop_back();
    if (!extend_trace(record_.stacks[entry], outer, &traces_[entry])) return nullptr;
    outer = traces_[entry];
  }
  return traces_[index].get();
}

PyObject* FxMeta::nn_module_stack(int32_t index) {
  CHECK(static_cast<size_t>(index) < modules_.size()) << "module " << index;
  if (modules_[index]) return modules_[index].get();
  std::vector<const ModuleEntry*> chain;
  for (int32_t at = index; at >= 0; at = record_.modules[at].parent) {
    CHECK(static_cast<size_t>(at) < modules_.size() && chain.size() <= modules_.size()) << "module " << at;
    chain.push_back(&record_.modules[at]);
  }
  py::Ref stack = py::Ref::steal(PyDict_New());
  if (!stack) return nullptr;
  for (auto entry = chain.rbegin(); entry != chain.rend(); ++entry) {  // fx's order: outermost first
    py::Ref key = py::Ref::steal(PyUnicode_FromString((*entry)->key.c_str()));
    py::Ref value = py::Ref::steal(Py_BuildValue("(sO)", (*entry)->path.c_str(), (*entry)->type.get()));
    if (!key || !value || PyDict_SetItem(stack.get(), key.get(), value.get()) < 0) return nullptr;
  }
  modules_[index] = std::move(stack);
  return modules_[index].get();
}

bool FxMeta::fill(const GraphNode& node, PyObject* meta) {
  if (node.stack >= 0) {
    PyObject* trace = stack_trace(node.stack);
    if (trace == nullptr || PyDict_SetItem(meta, INTERNED("stack_trace"), trace) < 0) return false;
  }
  if (node.module >= 0) {
    PyObject* stack = nn_module_stack(node.module);
    if (stack == nullptr || PyDict_SetItem(meta, INTERNED("nn_module_stack"), stack) < 0) return false;
  }
  if (node.example_value && PyDict_SetItem(meta, INTERNED("example_value"), node.example_value.get()) < 0) return false;
  if (!node.source_name.empty()) {
    py::Ref name = py::Ref::steal(PyUnicode_FromStringAndSize(node.source_name.data(), static_cast<Py_ssize_t>(node.source_name.size())));
    if (!name || PyDict_SetItem(meta, INTERNED("source_name"), name.get()) < 0) return false;
  }
  if (node.parameter) {
    // A dict for each: passes write into it. "unguarded": the address may change between calls, a backend has to look.
    py::Ref tensor_dict = py::Ref::steal(Py_BuildValue("{ss}", "_dynamo_static_input_type", "unguarded"));
    if (!tensor_dict || PyDict_SetItem(meta, INTERNED("tensor_dict"), tensor_dict.get()) < 0) return false;
  }
  return true;
}

}  // namespace pellucid::bridge
