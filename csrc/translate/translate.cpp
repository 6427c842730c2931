// The capture boundary: runs the translator, again with a forced break where it has to, gives the graph to the backend, and puts the
// cache entry together. C++ exceptions stop at the caller, core_capture.
#include "translate/translate.h"

#include "base/check.h"
#include "py/collector.h"
#include "torch_bridge/fake_tensor.h"
#include "torch_bridge/global_state.h"
#include "torch_bridge/graph_call.h"
#include "torch_bridge/state_scope.h"
#include "translate/codegen.h"
#include "translate/finish_graph.h"
#include "translate/instruction_translator.h"
#include "translate/report.h"

namespace pellucid::translate {

using namespace variables;

namespace {

constexpr size_t kMaxRestarts = 256;

std::string python_error_text() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  py::Ref text = py::Ref::steal(value ? PyObject_Str(value) : nullptr);
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string result = utf8 ? utf8 : "no message";
  PyErr_Clear();
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return result;
}

struct Attempt {
  Result result;
  bool again = false;
};

Result from_failure(InstructionTranslator& t, const Failure& failure, cache::Region& region) {
  switch (failure.kind) {
    case Failure::Kind::kFatal:
      return {Outcome::kError, nullptr, {}};
    case Failure::Kind::kSkip:
      if (region.fullgraph) {
        raise_unsupported(t, failure);
        return {Outcome::kError, nullptr, {}};
      }
      return {Outcome::kSkip, nullptr, std::string(reason_text(failure.reason).title) + ": " + failure.detail};
    default:
      return {Outcome::kRunAsIs, nullptr, std::string(reason_text(failure.reason).title) + ": " + failure.detail};
  }
}

// Adds the forced break that a failure asks for; false when it was there already, or there are too many.
bool force(ForcedBreaks& forced, uint64_t number, Reason reason, const std::string& detail) {
  if (forced.size() >= kMaxRestarts) return false;
  return forced.try_emplace(number, reason, detail).second;
}

Attempt attempt(const RootFrame& root, cache::Region& region, ForcedBreaks& forced, py::PauseCollector& pause, Profile& profile) {
  const bridge::StateScope outside;
  bridge::hide_dispatch_modes();
  (void)bridge::take_precision_seen();
  InstructionTranslator t(root, forced, profile);
  const Resume* resume = resume_of(root.code);
  Status started = t.start();
  if (!started.ok()) return {from_failure(t, *started.failure(), region), false};

  Codegen codegen(t, root.code);
  Status generated = Unit{};
  const Failure* broke = nullptr;
  if (resume && resume->key.entry == ResumeKey::Entry::kByCall) {
    Profile::Scope generating(profile, Phase::kCodegen);
    generated = codegen.break_by_call(*resume);
  } else {
    Answer answer = t.run();
    if (answer.ok() || answer.failure()->kind == Failure::Kind::kBreak) {
      if (const Frame* left = t.with_code_to_run_when_dropped()) {  // a real generator runs it
        const Failed failed = t.fail(Reason::generator_boundary, "a generator that is left inside try or with");
        if (!force(forced, t.outermost(left->generator->born), failed.failure->reason, failed.failure->detail))
          return {from_failure(t, *failed.failure, region), false};
        t.count_attempt();
        return {{}, true};
      }
    }
    if (answer.ok()) {
      Profile::Scope generating(profile, Phase::kCodegen);
      generated = codegen.return_value(answer.value());
    } else {
      const Failure& failure = *answer.failure();
      uint64_t number = 0;
      if (t.restart) {
        number = t.restart->first;
      } else if (failure.kind == Failure::Kind::kSkip && t.frames().size() > 1) {
        number = t.frames()[t.frames().size() - 2]->number;  // the callee runs as a frame of its own
      } else if (failure.kind == Failure::Kind::kBreak &&
                 (t.handled_exception() || t.frames().back()->instruction().op == bytecode::Op::RERAISE)) {
        number = t.outermost(t.exception_origin());  // break where the exception came from: its handlers then run as written
      }
      if (number) {
        if (force(forced, number, failure.reason, failure.detail)) {
          t.count_attempt();
          return {{}, true};
        }
        return {from_failure(t, failure, region), false};
      }
      if (failure.kind != Failure::Kind::kBreak) return {from_failure(t, failure, region), false};
      if (failure.reason == Reason::uncaught_exception && region.fullgraph)
        return {{Outcome::kRunAsIs, nullptr, "the program raises " + failure.detail}, false};
      if (region.fullgraph) {
        raise_unsupported(t, failure);
        return {{Outcome::kError, nullptr, {}}, false};
      }
      const bool reported = resume && resume->key.repeats && t.frames().size() == 1 &&
                            call_start(*t.frames()[0]->code, t.frames()[0]->pc) == resume->key.index;
      if (!reported) broke = &failure;
      Profile::Scope generating(profile, Phase::kCodegen);
      codegen.attribute_to_break();
      generated = codegen.break_at(failure);
    }
  }
  if (!generated.ok()) {
    const Failure& failure = *generated.failure();
    if (t.restart && force(forced, t.restart->first, failure.reason, failure.detail)) {
      t.count_attempt();
      return {{}, true};
    }
    return {from_failure(t, failure, region), false};
  }

  outside.restore();  // the backend and the guards see torch's modes as the frame found them
  auto entry = std::make_shared<cache::GuardedCode>();
  entry->calls_python = codegen.calls_python();
  py::Ref graph_callable;
  std::vector<const source::Source*> block;
  if (t.operators() > 0) {
    FinishedGraph finished = finish_graph(t, codegen.outputs());
    codegen.set_arguments(finished.arguments);
    block = finished.block;
    if (!compile_graph(std::move(finished), region, pause, profile, *entry, graph_callable)) return {{Outcome::kError, nullptr, {}}, false};
    if (!graph_callable) return {{Outcome::kRunAsIs, nullptr, "the backend failed"}, false};
  }
  std::vector<const source::Source*> inputs;
  cache::DirectCall direct;
  const bool is_direct = graph_callable && codegen.is_direct(direct);
  for (size_t i = 0; is_direct && i < codegen.arguments().size(); i++) inputs.push_back(codegen.arguments()[i]->source);
  {
    Profile::Scope guarding(profile, Phase::kGuards);
    t.guard_presence();
    t.guard_distinctness();
    t.guard_distinct_inputs();
    if (const unsigned classes = bridge::take_precision_seen(); classes != 0) {
      const auto word = static_cast<uint64_t>(classes) << 32 | bridge::float32_precision(classes);
      t.guard_precision(static_cast<Py_ssize_t>(word));
    }
    entry->guards = guard::GuardProgram::compile(t.guard_set(), block, t.arena(), root.view, inputs);
  }
  CHECK(entry->guards) << "guards that can't be compiled: " << python_error_text();
  {
    Profile::Scope generating(profile, Phase::kCodegen);
    if (graph_callable) {
      graph_callable = bridge::make_graph_call(graph_callable.get(), entry->guards.get(), t.changes_state);
      if (!graph_callable) return {{Outcome::kError, nullptr, {}}, false};
      if (is_direct && entry->guards->input_runs() != nullptr) {
        entry->direct = std::move(direct);
        entry->direct.graph = graph_callable;
      }
    }
    entry->code = codegen.assemble(graph_callable.get());
    if (!entry->code) return {{Outcome::kError, nullptr, {}}, false};
  }
  t.count_attempt();
  profile.counts.guard_rows = entry->guards->size();
  entry->report = make_report(t, broke, *entry);
  if (!entry->report) return {{Outcome::kError, nullptr, {}}, false};
  Result result{Outcome::kCaptured, entry, {}};
  return {result, false};
}

}  // namespace

Result translate(const guard::FrameView& view, PyObject* code, cache::Region& region) {
  ForcedBreaks forced;
  Profile profile;
  RootFrame root{view, code};
  forget_unused();
  py::PauseCollector pause;
  for (;;) {
    bridge::RestoredState each;  // the traced program's changes of modes are made for real while it is traced
    Attempt one = attempt(root, region, forced, pause, profile);
    if (!one.again) return one.result;
  }
}

}  // namespace pellucid::translate
