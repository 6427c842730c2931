// The table of entries and the rules, told to Python.
#include "torch_bridge/fake_report.h"

#include <algorithm>

#include "torch_bridge/fake_table.h"
#include "torch_bridge/rules/rules.h"

namespace pellucid::bridge {

py::Ref fake_stats() {
  auto stats = py::Ref::steal(PyDict_New());
  if (!stats) return {};
  for (const auto& report : entry_reports()) {
    const auto value = py::Ref::steal(Py_BuildValue("(sK)", origin_name(report.origin), static_cast<unsigned long long>(report.calls)));
    if (!value || PyDict_SetItemString(stats.get(), report.name.c_str(), value.get()) < 0) return {};
  }
  return stats;
}

py::Ref symbolic_stats() {
  auto stats = py::Ref::steal(PyDict_New());
  if (!stats) return {};
  for (const auto& report : entry_reports()) {
    if (report.symbolic_calls == 0 && report.symbolic_python == 0) continue;
    const auto value = py::Ref::steal(Py_BuildValue("(KK)", static_cast<unsigned long long>(report.symbolic_calls),
                                                    static_cast<unsigned long long>(report.symbolic_python)));
    if (!value || PyDict_SetItemString(stats.get(), report.name.c_str(), value.get()) < 0) return {};
  }
  return stats;
}

void reset_fake_stats() { reset_entry_counts(); }

py::Ref rule_names() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : rules::table().all()) {
    names.push_back(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  }
  std::sort(names.begin(), names.end());
  auto list = py::Ref::steal(PyList_New(0));
  if (!list) return {};
  for (const auto& name : names) {
    const auto text = py::Ref::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    if (!text || PyList_Append(list.get(), text.get()) < 0) return {};
  }
  return list;
}

const char* origin_of(const char* name, const char* overload) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, overload});
  return op ? origin_name(entry_of(*op).origin) : nullptr;
}

}  // namespace pellucid::bridge
