// The Region type: garbage collection through its caches, reset, and the description that cache_entries() is made of.
#include "module/core_region.h"

#include <unordered_set>

#include "cache/lookup.h"
#include "cache/skip_rules.h"
#include "py/ref.h"
#include "torch_bridge/graph_call.h"
#include "torch_bridge/lazy_graph.h"

namespace pellucid::module {

namespace {

std::unordered_set<RegionObject*>& live_regions() {
  static auto* regions = new std::unordered_set<RegionObject*>;  // never freed: code objects outlive static destruction
  return *regions;
}

// CPython does not look into code objects for cycles. The code of an entry belongs to it alone, unless it is running or somebody took it
// out of a report: then all that its constants hold (the graph's call, functions that go on after breaks) is reachable through the entry.
int visit_code(const cache::GuardedCode& entry, visitproc visit, void* arg) {
  PyObject *code = entry.code.get(), *function = entry.function.get();
  if (code == nullptr) return 0;
  const bool own_function = function != nullptr && PyFunction_GET_CODE(function) == code;
  if (own_function && Py_REFCNT(function) != 1) return 0;
  if (Py_REFCNT(code) != 1 + own_function) return 0;
  Py_VISIT(reinterpret_cast<PyCodeObject*>(code)->co_consts);
  return 0;
}

int region_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* object = reinterpret_cast<RegionObject*>(self);
  if (object->region != nullptr) {
    Py_VISIT(object->region->backend.get());
    Py_VISIT(object->region->backend_name.get());
    Py_VISIT(object->region->options.get());
    Py_VISIT(object->region->settings.get());
  }
  if (object->caches == nullptr) return 0;
  for (const auto& [code, cache] : *object->caches) {
    if (cache.use_count() > 1) continue;  // a capture is using it: what it holds is reachable from the C stack
    Py_VISIT(cache->code.get());
    for (const auto& entry : cache->entries) {
      if (entry.use_count() > 1 || entry->running > 0) continue;
      Py_VISIT(entry->code.get());
      Py_VISIT(entry->function.get());
      Py_VISIT(entry->graph.get());
      Py_VISIT(entry->direct.graph.get());
      Py_VISIT(entry->report.get());
      if (int stop = visit_code(*entry, visit, arg)) return stop;
      if (int stop = entry->guards->traverse(visit, arg)) return stop;
    }
  }
  return 0;
}

// The backend stays: a wrapper can still be called while the cycle it is in is being taken apart.
int region_clear(PyObject* self) {
  reset_region(reinterpret_cast<RegionObject*>(self));
  return 0;
}

void region_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<RegionObject*>(self);
  PyObject_GC_UnTrack(self);
  if (object->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  live_regions().erase(object);
  region_clear(self);
  delete object->region;
  delete object->caches;
  Py_TYPE(self)->tp_free(self);
}

PyObject* region_repr(PyObject* self) {
  auto* object = reinterpret_cast<RegionObject*>(self);
  return PyUnicode_FromFormat("<pellucid region %llu, backend %R>", static_cast<unsigned long long>(object->region->id),
                              object->region->backend_name ? object->region->backend_name.get() : Py_None);
}

PyObject* get_backend(PyObject* self, void*) { return reinterpret_cast<RegionObject*>(self)->region->backend.new_ref(); }
PyObject* get_backend_name(PyObject* self, void*) { return reinterpret_cast<RegionObject*>(self)->region->backend_name.new_ref(); }
PyObject* get_options(PyObject* self, void*) { return reinterpret_cast<RegionObject*>(self)->region->options.new_ref(); }
PyObject* get_fullgraph(PyObject* self, void*) { return PyBool_FromLong(reinterpret_cast<RegionObject*>(self)->region->fullgraph); }
PyObject* get_dynamic(PyObject* self, void*) {
  int dynamic = reinterpret_cast<RegionObject*>(self)->region->dynamic;
  if (dynamic < 0) Py_RETURN_NONE;
  return PyBool_FromLong(dynamic);
}
PyObject* get_settings(PyObject* self, void*) { return reinterpret_cast<RegionObject*>(self)->region->settings.new_ref(); }
PyObject* get_id(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(reinterpret_cast<RegionObject*>(self)->region->id); }

PyGetSetDef region_getset[] = {
    {"backend", get_backend, nullptr, "The callable that graphs are given to.", nullptr},
    {"backend_name", get_backend_name, nullptr, "The backend as the user named it.", nullptr},
    {"options", get_options, nullptr, "The backend's options, or None.", nullptr},
    {"fullgraph", get_fullgraph, nullptr, "Whether a graph break is an error.", nullptr},
    {"dynamic", get_dynamic, nullptr, "True, False or None, as given to optimize.", nullptr},
    {"settings", get_settings, nullptr, "What was given for them, or None.", nullptr},
    {"id", get_id, nullptr, "Unique in this process.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

const char* state_name(cache::State state) {
  switch (state) {
    case cache::State::kCapture:
      return "capture";
    case cache::State::kSkip:
      return "skip";
    case cache::State::kLimit:
      return "limit";
  }
  return "?";
}

PyObject* or_none(const py::Ref& ref) {
  PyObject* object = ref ? ref.get() : Py_None;
  Py_INCREF(object);
  return object;
}

// What Pellucid itself keeps for an entry: guards, code, the record of the graph. What backends made of the graph is theirs to say.
// -1 with an exception set.
Py_ssize_t bytes_of(const cache::GuardedCode& entry) {
  size_t total = sizeof entry + entry.guards->bytes();
  if (entry.graph) total += bridge::lazy_graph_bytes(entry.graph.get());
  for (PyObject* object : {entry.code.get(), entry.function.get(), entry.report.get()}) {
    if (object == nullptr) continue;
    const size_t own = _PySys_GetSizeOf(object);
    if (own == static_cast<size_t>(-1)) return -1;
    total += own;
  }
  return static_cast<Py_ssize_t>(total);
}

}  // namespace

const cpython::HookApi* hook_table = nullptr;
PyTypeObject region_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.Region"};

bool ready_region_type() {
  region_type.tp_basicsize = sizeof(RegionObject);
  region_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  region_type.tp_doc = "What one optimize() call owns: backend, options and the cache entries made under it.";
  region_type.tp_traverse = region_traverse;
  region_type.tp_clear = region_clear;
  region_type.tp_dealloc = region_dealloc;
  region_type.tp_repr = region_repr;
  region_type.tp_getset = region_getset;
  region_type.tp_weaklistoffset = offsetof(RegionObject, weakrefs);
  return PyType_Ready(&region_type) == 0;
}

bool load_hook_api() {
  // Not PyCapsule_Import alone: it reads attributes and would not find a submodule that nobody has imported.
  py::Ref module = py::Ref::steal(PyImport_ImportModule("pellucid._bytecode"));
  if (!module) return false;
  auto* table = static_cast<const cpython::HookApi*>(PyCapsule_Import(cpython::kHookCapsule, 0));
  if (table == nullptr) return false;
  if (table->version != cpython::HookApi::kVersion) {
    PyErr_Format(PyExc_ImportError, "pellucid._core was built for version %u of the frame hook, pellucid._bytecode has version %u",
                 cpython::HookApi::kVersion, table->version);
    return false;
  }
  hook_table = table;
  bridge::set_graph_call_hook(table);
  return true;
}

PyObject* new_region(PyObject* backend, PyObject* backend_name, PyObject* options, bool fullgraph, int dynamic, PyObject* settings) {
  static uint64_t next_id = 1;
  auto* object = reinterpret_cast<RegionObject*>(region_type.tp_alloc(&region_type, 0));
  if (object == nullptr) return nullptr;
  object->region = new cache::Region;
  object->caches = new CacheMap;
  object->region->backend = py::Ref::share(backend);
  object->region->backend_name = py::Ref::share(backend_name);
  object->region->options = py::Ref::share(options);
  object->region->settings = py::Ref::share(settings);
  object->region->fullgraph = fullgraph;
  object->region->dynamic = dynamic;
  object->region->id = next_id++;
  live_regions().insert(object);
  return reinterpret_cast<PyObject*>(object);
}

CodeData* data_of(PyObject* code) {
  if (auto* known = static_cast<CodeData*>(hook().code_data(code))) return known;
  auto data = std::make_unique<CodeData>();
  data->reason = cache::skip_reason(code);
  if (data->reason != nullptr) data->kind = CodeData::Kind::kSkip;
  if (!hook().set_code_data(code, data.get())) return nullptr;
  return data.release();
}

bool mark_transformed(PyObject* code) {
  CodeData* data = data_of(code);
  if (data == nullptr) return false;
  data->kind = CodeData::Kind::kTransformed;
  return true;
}

std::shared_ptr<cache::CodeCache> cache_of(RegionObject* region, PyObject* code) {
  auto& slot = (*region->caches)[code];
  if (slot == nullptr) {
    CodeData* data = data_of(code);
    if (data == nullptr) {
      region->caches->erase(code);
      return nullptr;
    }
    slot = std::make_shared<cache::CodeCache>();
    slot->region = region->region;
    slot->code = py::Ref::share(code);
    data->rows.push_back({region, slot.get()});
  }
  return slot;
}

void reset_region(RegionObject* region) {
  region->generation++;
  if (region->caches == nullptr) return;
  CacheMap dropped;
  dropped.swap(*region->caches);  // freeing entries may run Python code, which may capture again
  for (const auto& [code, cache] : dropped) {
    for (const auto& entry : cache->entries) cache::retire(entry);
    auto* data = static_cast<CodeData*>(hook().code_data(code));
    if (data == nullptr) continue;
    std::erase_if(data->rows, [region](const CodeData::Row& row) { return row.region == region; });
  }
}

void reset_all_regions() {
  std::vector<py::Ref> regions;
  for (RegionObject* region : live_regions()) regions.push_back(py::Ref::share(reinterpret_cast<PyObject*>(region)));
  for (const py::Ref& region : regions) reset_region(reinterpret_cast<RegionObject*>(region.get()));
}

PyObject* describe_entry(const cache::GuardedCode& entry) {
  py::Ref guards = py::Ref::steal(entry.guards->describe());
  py::Ref module = entry.graph ? bridge::graph_module_of(entry.graph.get()) : py::Ref::share(Py_None);
  const Py_ssize_t bytes = bytes_of(entry);
  if (!guards || !module || bytes < 0) return nullptr;
  std::string check = entry.guards->check_fn_text(), program = entry.guards->program_text();
  return Py_BuildValue("{sOss#ss#sNsNsNsKsNsNsn}", "guards", guards.get(), "check_fn", check.data(), static_cast<Py_ssize_t>(check.size()),
                       "program", program.data(), static_cast<Py_ssize_t>(program.size()), "code", or_none(entry.code), "graph_module",
                       module.release(), "report", or_none(entry.report), "hits", static_cast<unsigned long long>(entry.hits),
                       "calls_python", PyBool_FromLong(entry.calls_python), "valid", PyBool_FromLong(entry.guards->valid()), "bytes",
                       bytes);
}

PyObject* describe_region(RegionObject* region) {
  py::Ref rows = py::Ref::steal(PyList_New(0));
  if (!rows) return nullptr;
  std::vector<std::shared_ptr<cache::CodeCache>> caches;  // describing runs Python code, which may change the map
  for (const auto& [code, cache] : *region->caches) caches.push_back(cache);
  for (const auto& cache : caches) {
    py::Ref entries = py::Ref::steal(PyList_New(0));
    if (!entries) return nullptr;
    cache::drop_invalid(*cache);
    auto snapshot = cache->entries;
    for (const auto& entry : snapshot) {
      py::Ref described = py::Ref::steal(describe_entry(*entry));
      if (!described || PyList_Append(entries.get(), described.get()) < 0) return nullptr;
    }
    py::Ref row = py::Ref::steal(Py_BuildValue("{sOsssssO}", "code", cache->code.get(), "state", state_name(cache->state), "reason",
                                               cache->skip_reason.c_str(), "entries", entries.get()));
    if (!row || PyList_Append(rows.get(), row.get()) < 0) return nullptr;
  }
  return rows.release();
}

}  // namespace pellucid::module
