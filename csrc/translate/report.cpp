// Reports of captures, made by pellucid._capture from what the translator knows.
#include "translate/report.h"

#include "base/check.h"

namespace pellucid::translate {

using namespace variables;

namespace {

// [(filename, function, line, end_line, column, end_column)], outermost first
py::Ref user_stack(const InstructionTranslator& t) {
  py::Ref list = py::Ref::steal(PyList_New(0));
  for (auto& frame : t.frames()) {
    const bytecode::Position at = frame->pc >= 0 ? frame->instruction().position : bytecode::Position{};
    py::Ref row = py::Ref::steal(
        Py_BuildValue("(OOiiii)", frame->code->filename.get(), frame->code->name.get(), at.line, at.end_line, at.column, at.end_column));
    if (!list || !row || PyList_Append(list.get(), row.get()) < 0) return {};
  }
  return list;
}

py::Ref break_row(const InstructionTranslator& t, const Failure& failure) {
  const ReasonText& text = reason_text(failure.reason);
  py::Ref stack = user_stack(t);
  if (!stack) return {};
  return py::Ref::steal(Py_BuildValue("{s:s,s:s,s:s,s:s,s:s#,s:O}", "reason", text.id, "title", text.title, "explanation", text.explanation,
                                      "hint", text.hint, "detail", failure.detail.data(), static_cast<Py_ssize_t>(failure.detail.size()),
                                      "user_stack", stack.get()));
}

// {"seconds": {phase: seconds}, "counts": {what: number}}
py::Ref profile_of(InstructionTranslator& t) {
  const std::array<double, kPhases> spent = t.profile.seconds();
  const Counts& counts = t.profile.counts;
  const std::pair<const char*, uint64_t> numbers[] = {
      {"attempts", counts.attempts},       {"instructions", counts.instructions}, {"inlined_calls", counts.inlined_calls},
      {"operators", counts.operators},     {"fake_calls", counts.fake_calls},     {"inputs", counts.inputs},
      {"variables", counts.variables},     {"sources", counts.sources},           {"guards", counts.guards},
      {"comparisons", counts.comparisons}, {"guard_rows", counts.guard_rows},     {"code_units", counts.code_units},
  };
  py::Ref seconds = py::Ref::steal(PyDict_New()), made = py::Ref::steal(PyDict_New());
  if (!seconds || !made) return {};
  auto store = [](const py::Ref& dict, const char* name, py::Ref value) {
    return value && PyDict_SetItemString(dict.get(), name, value.get()) == 0;
  };
  for (size_t i = 0; i < kPhases; i++)
    if (!store(seconds, kPhaseNames[i], py::Ref::steal(PyFloat_FromDouble(spent[i])))) return {};
  for (auto [name, number] : numbers)
    if (!store(made, name, py::Ref::steal(PyLong_FromUnsignedLongLong(number)))) return {};
  return py::Ref::steal(Py_BuildValue("{s:O,s:O}", "seconds", seconds.get(), "counts", made.get()));
}

// The log records on guards, sources and time; their texts are made only where somebody reads them. False: an exception is set.
bool write_details(InstructionTranslator& t, const cache::GuardedCode& entry, const py::Ref& profile) {
  constexpr long kGuards = 1, kSources = 2;  // pellucid._capture._DETAILS
  py::Ref answer = capture_helper("details_wanted");
  if (answer) answer = py::Ref::steal(PyObject_CallNoArgs(answer.get()));
  const long wanted = answer ? PyLong_AsLong(answer.get()) : -1;
  if (wanted <= 0) return wanted == 0;
  py::Ref guards = py::Ref::share(Py_None), sources = py::Ref::share(Py_None), write = capture_helper("write_details");
  if (wanted & kGuards) guards = py::Ref::steal(entry.guards->describe());
  if (wanted & kSources) {
    sources = py::Ref::steal(PyList_New(0));
    for (const source::Source& source : t.arena()->all()) {
      py::Ref name =
          py::Ref::steal(PyUnicode_DecodeUTF8(source.name.data(), static_cast<Py_ssize_t>(source.name.size()), "backslashreplace"));
      if (!sources || !name || PyList_Append(sources.get(), name.get()) < 0) return false;
    }
  }
  if (!guards || !sources || !write) return false;
  const std::string program = wanted & kGuards ? entry.guards->program_text() : std::string();
  return static_cast<bool>(py::Ref::steal(PyObject_CallFunction(write.get(), "OOs#OO", t.root_code(), guards.get(), program.data(),
                                                                static_cast<Py_ssize_t>(program.size()), sources.get(), profile.get())));
}

}  // namespace

py::Ref capture_helper(const char* name) {
  static PyObject* module = nullptr;  // for the life of the process; two threads may both import it
  if (module == nullptr) module = PyImport_ImportModule("pellucid._capture");
  return module ? py::Ref::steal(PyObject_GetAttrString(module, name)) : py::Ref();
}

void raise_unsupported(InstructionTranslator& t, const Failure& failure) {
  py::Ref row = break_row(t, failure);
  py::Ref raise = row ? capture_helper("raise_unsupported") : py::Ref();
  if (raise) py::Ref::steal(PyObject_CallOneArg(raise.get(), row.get()));
  CHECK(PyErr_Occurred()) << "raise_unsupported raises";
}

py::Ref make_report(InstructionTranslator& t, const Failure* broke, const cache::GuardedCode& entry) {
  py::Ref breaks = py::Ref::steal(PyList_New(0));
  if (broke) {
    py::Ref row = break_row(t, *broke);
    if (!row || PyList_Append(breaks.get(), row.get()) < 0) return {};
  }
  py::Ref profile = profile_of(t);
  if (!profile || !write_details(t, entry, profile)) return {};
  py::Ref make = capture_helper("report");
  if (!make) return {};
  return py::Ref::steal(PyObject_CallFunction(make.get(), "OOOOO", t.root_code(), entry.code.get(),
                                              entry.graph ? entry.graph.get() : Py_None, breaks.get(), profile.get()));
}

}  // namespace pellucid::translate
