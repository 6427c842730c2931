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

py::Ref helper(const char* name) {
  py::Ref module = py::Ref::steal(PyImport_ImportModule("pellucid._capture"));
  return module ? py::Ref::steal(PyObject_GetAttrString(module.get(), name)) : py::Ref();
}

// The log records on guards, sources and time; their texts are made only where somebody reads them. False: an exception is set.
bool write_details(InstructionTranslator& t, const cache::GuardedCode& entry, const Phases& phases) {
  py::Ref wanted = helper("details_wanted");
  if (wanted) wanted = py::Ref::steal(PyObject_CallNoArgs(wanted.get()));
  if (!wanted || wanted.get() != Py_True) return wanted && wanted.get() == Py_False;
  py::Ref guards = py::Ref::steal(entry.guards->describe()), sources = py::Ref::steal(PyList_New(0));
  py::Ref times = py::Ref::steal(PyList_New(0)), write = helper("write_details");
  if (!guards || !sources || !times || !write) return false;
  for (const source::Source& source : t.arena()->all()) {
    py::Ref name =
        py::Ref::steal(PyUnicode_DecodeUTF8(source.name.data(), static_cast<Py_ssize_t>(source.name.size()), "backslashreplace"));
    if (!name || PyList_Append(sources.get(), name.get()) < 0) return false;
  }
  for (const auto& [phase, seconds] : phases.rows()) {
    py::Ref row = py::Ref::steal(Py_BuildValue("(sd)", phase, seconds));
    if (!row || PyList_Append(times.get(), row.get()) < 0) return false;
  }
  std::string program = entry.guards->program_text();
  return static_cast<bool>(py::Ref::steal(PyObject_CallFunction(write.get(), "OOs#OO", t.root_code(), guards.get(), program.data(),
                                                                static_cast<Py_ssize_t>(program.size()), sources.get(), times.get())));
}

}  // namespace

void raise_unsupported(InstructionTranslator& t, const Failure& failure) {
  py::Ref row = break_row(t, failure);
  py::Ref raise = row ? helper("raise_unsupported") : py::Ref();
  if (raise) py::Ref::steal(PyObject_CallOneArg(raise.get(), row.get()));
  CHECK(PyErr_Occurred()) << "raise_unsupported raises";
}

py::Ref make_report(InstructionTranslator& t, const Failure* broke, const cache::GuardedCode& entry, const Phases& phases) {
  py::Ref breaks = py::Ref::steal(PyList_New(0));
  if (broke) {
    py::Ref row = break_row(t, *broke);
    if (!row || PyList_Append(breaks.get(), row.get()) < 0) return {};
  }
  if (!write_details(t, entry, phases)) return {};
  py::Ref make = helper("report");
  if (!make) return {};
  return py::Ref::steal(
      PyObject_CallFunction(make.get(), "OOOOnK", t.root_code(), entry.code.get(), entry.graph ? entry.graph.get() : Py_None, breaks.get(),
                            static_cast<Py_ssize_t>(t.operators()), static_cast<unsigned long long>(t.handled_instructions())));
}

}  // namespace pellucid::translate
