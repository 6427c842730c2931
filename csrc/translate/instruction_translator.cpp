// The main loop: fetch, execute, roll back on failure, unwind on exceptions of the traced program; calls and returns.
#include "translate/instruction_translator.h"

#include <algorithm>

#include "base/check.h"
#include "torch_bridge/fake_tensor.h"
#include "translate/handlers/handlers.h"
#include "translate/resume.h"
#include "variables/function.h"
#include "variables/torch_types.h"

namespace pellucid::translate {

using namespace variables;

namespace {

constexpr int kGenerator = 0x20, kCoroutine = 0x80, kAsyncGenerator = 0x200;  // co_flags
constexpr size_t kMaxInlineDepth = 400;

struct Decoded final : bytecode::Code {
  mutable std::vector<std::vector<bool>> live;  // by instruction; empty: nobody asked yet
};

std::unordered_map<PyObject*, std::pair<py::Ref, std::shared_ptr<const Decoded>>>& decoded_cache() {
  static auto& cache = *new std::unordered_map<PyObject*, std::pair<py::Ref, std::shared_ptr<const Decoded>>>;  // outlives Python
  return cache;
}

// The row that covers an instruction, or null. Rows of live code are sorted and do not overlap.
const bytecode::ExceptionRow* row_at(const bytecode::Code& code, int pc) {
  auto after =
      std::upper_bound(code.rows.begin(), code.rows.end(), pc, [](int at, const bytecode::ExceptionRow& row) { return at < row.start; });
  return after != code.rows.begin() && pc < std::prev(after)->end ? &*std::prev(after) : nullptr;
}

bool is_module_call(FunctionVariable* function) { return function->real && function->real == torch_types()->module_call; }

}  // namespace

std::shared_ptr<const bytecode::Code> decoded(PyObject* code, Profile& profile) {
  auto& cache = decoded_cache();
  auto found = cache.find(code);
  if (found != cache.end()) return found->second.second;
  Profile::Scope decoding(profile, Phase::kDecode);
  auto result = std::make_shared<Decoded>();
  if (!bytecode::decode(code, *result)) return nullptr;
  cache.emplace(code, std::make_pair(py::Ref::share(code), result));
  return result;
}

const std::vector<std::vector<bool>>& liveness(const std::shared_ptr<const bytecode::Code>& code) {
  const auto& all = static_cast<const Decoded&>(*code);
  if (all.live.empty()) all.live = bytecode::live_locals(all);
  return all.live;
}

void forget_decoded(bool unused_only) {
  std::vector<std::pair<py::Ref, std::shared_ptr<const Decoded>>> dropped;  // freeing code may run any code: after the cache is whole
  std::erase_if(decoded_cache(), [&](auto& item) {
    auto& [code, decoded] = item.second;
    const Py_ssize_t ours = resume_of(code.get()) != nullptr ? 2 : 1;
    if (decoded.use_count() > 1 || (unused_only && Py_REFCNT(code.get()) > ours)) return false;  // a capture has it; calls may come
    dropped.push_back(std::move(item.second));
    return true;
  });
}

void forget_unused() {
  static size_t limit = 512;
  if (decoded_cache().size() + resume_count() < limit) return;
  forget_decoded(true);
  forget_resume_functions();
  limit = 2 * (decoded_cache().size() + resume_count()) + 512;
}

InstructionTranslator::InstructionTranslator(const RootFrame& root, const ForcedBreaks& forced, Profile& profile)
    : profile(profile), root_(root), forced_(forced), fake_calls_before_(bridge::fake_calls()) {}

void InstructionTranslator::count_attempt() {
  Counts& counts = profile.counts;
  counts.attempts++;
  counts.instructions += count_;
  counts.inlined_calls += inlined_calls_;
  counts.fake_calls += bridge::fake_calls() - fake_calls_before_;
  counts.operators = operators_;
  counts.inputs = inputs_.size();
  counts.variables = variables_.size();
  counts.sources = arena_->all().size();
  counts.guards = guards_.guards().size();
  counts.comparisons += arena_->comparisons() + guards_.comparisons();
}

InstructionTranslator::~InstructionTranslator() {
  // A capture that ended inside of an inference mode block leaves it here.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  while (!entered_.empty()) {
    py::Ref left = py::Ref::steal(PyObject_CallOneArg(torch_types()->exit_inference_mode, entered_.back().get()));
    if (!left) PyErr_WriteUnraisable(entered_.back().get());
    entered_.pop_back();
  }
  PyErr_Restore(type, value, traceback);
}

// Cell variables get their cells here and not at MAKE_CELL: an argument's value moves into the cell.
Status InstructionTranslator::make_cells(Frame& frame) {
  const bytecode::Code& code = *frame.code;
  for (size_t i = 0; i < code.localsplus_kinds.size(); i++) {
    const auto kind = code.localsplus_kinds[i];
    if (kind != bytecode::LocalKind::kCell && kind != bytecode::LocalKind::kLocalCell) continue;
    auto* cell = make<CellVariable>();
    cell->name = code.localsplus_names[i].get();
    cell->contents = frame.locals[i];
    frame.locals[i] = cell;
  }
  return Unit{};
}

Status InstructionTranslator::start() {
  py::Ref config = py::Ref::steal(PyImport_ImportModule("pellucid.config"));
  py::Ref limit = py::Ref::steal(config ? PyObject_GetAttrString(config.get(), "instruction_limit") : nullptr);
  instruction_limit_ = limit ? PyLong_AsUnsignedLongLong(limit.get()) : 0;
  if (PyErr_Occurred()) return fatal();
  PyObject* code_object = root_.code;
  const Resume* resume = resume_of(code_object);
  if (resume) code_object = resume->key.code;
  auto frame = std::make_unique<Frame>();
  frame->code = decoded(code_object, profile);
  if (!frame->code) return fatal();
  frame->code_object = keep(code_object);
  auto* function = reinterpret_cast<PyFunctionObject*>(root_.view.func);
  frame->globals = keep(function->func_globals);
  const bytecode::Code& code = *frame->code;
  frame->locals.assign(code.localsplus_names.size(), nullptr);

  size_t n_free = 0;
  for (auto kind : code.localsplus_kinds) n_free += kind == bytecode::LocalKind::kFree;
  const size_t n_locals = code.localsplus_names.size() - n_free;
  for (size_t i = 0; i < n_free; i++) {
    PyObject* name = code.localsplus_names[n_locals + i].get();
    PyObject* object = PyTuple_GET_ITEM(function->func_closure, static_cast<Py_ssize_t>(i));
    auto* cell = outside_cell(object, sources().free_cell(static_cast<Py_ssize_t>(i), name));
    cell->name = name;
    frame->locals[n_locals + i] = cell;
  }
  if (!resume) {
    const size_t n_arguments = static_cast<size_t>(code.n_arguments());
    for (size_t i = 0; i < n_arguments; i++) {
      CHECK(root_.view.locals[i]) << "argument " << i << " is not bound";
      frame->locals[i] = lazy(root_.view.locals[i], sources().local(static_cast<Py_ssize_t>(i), code.localsplus_names[i].get()));
    }
    frame->next = 0;
    TRY(make_cells(*frame));
  } else {
    for (size_t i = 0; i < n_locals; i++) {
      if (!resume->key.bound[i]) continue;
      PyObject* value = root_.view.locals[i];
      const auto* source = sources().local(static_cast<Py_ssize_t>(i), code.localsplus_names[i].get());
      if (code.localsplus_kinds[i] == bytecode::LocalKind::kLocal) {
        frame->locals[i] = lazy(value, source);
      } else {
        auto* known_cell = as<CellVariable>(outside(value), Kind::kCell);
        auto* cell = known_cell ? known_cell : outside_cell(value, source);
        cell->name = code.localsplus_names[i].get();
        frame->locals[i] = cell;
      }
    }
    size_t argument = n_locals;
    for (bool null : resume->key.stack_null) {
      if (null) {
        frame->push(make<NullVariable>());
        continue;
      }
      py::Ref name = py::Ref::steal(PyUnicode_FromFormat("__stack%zu", argument - n_locals));
      frame->push(lazy(root_.view.locals[argument], sources().local(static_cast<Py_ssize_t>(argument), name.get())));
      argument++;
    }
    frame->next = resume->key.index;
  }
  frames_.push_back(std::move(frame));
  return Unit{};
}

const guard::UserLocation& InstructionTranslator::location() {
  if (frames_.empty()) return location_;
  const Frame* top = frames_.back().get();
  if (top == location_frame_ && top->pc == location_pc_) return location_;
  location_frame_ = top;
  location_pc_ = top->pc;
  location_.filename = top->code->filename;
  location_.line = top->pc >= 0 ? top->instruction().position.line : top->code->firstlineno;
  return location_;
}

void InstructionTranslator::save_stack(Frame& frame) {
  // An instruction takes at most its argument and a few more from the stack.
  const size_t wanted = static_cast<size_t>(frame.instruction().arg & 0xFFFFFF) + 8;
  const size_t count = std::min(wanted, frame.stack.size());
  frame.saved_below = frame.stack.size() - count;
  frame.saved.assign(frame.stack.end() - static_cast<std::ptrdiff_t>(count), frame.stack.end());
}

void InstructionTranslator::restore_stack(Frame& frame) {
  frame.stack.resize(frame.saved_below);
  frame.stack.insert(frame.stack.end(), frame.saved.begin(), frame.saved.end());
}

Status InstructionTranslator::step(Frame& frame) {
  frame.pc = frame.next++;
  frame.number = ++count_;
  const bytecode::Instruction& instruction = frame.instruction();
  save_stack(frame);
  if (!forced_.empty()) {
    auto forced = forced_.find(count_);
    if (forced != forced_.end()) return fail(forced->second.first, forced->second.second);
  }
  if (count_ > instruction_limit_) return fail(Reason::too_many_instructions, std::to_string(instruction_limit_) + " instructions");
  return handler_of(instruction.op)(*this, frame, instruction);
}

uint64_t InstructionTranslator::outermost(uint64_t number) const {
  auto after = inside_wait_.upper_bound(number);
  if (after == inside_wait_.begin()) return number;
  --after;
  return after->second >= after->first ? number : after->second;
}

Answer InstructionTranslator::run() { return run_until(0); }

// Runs until the frame at index `depth` has returned. The value comes back; a failure leaves the frames as they are for a break
// at depth 0, and popped to `depth` otherwise.
Answer InstructionTranslator::run_until(size_t depth) {
  for (;;) {
    Frame& current = frame();
    Status status = step(current);
    if (status.ok()) {
      if (frames_.size() <= depth) {
        Variable* value = returned_;
        returned_ = nullptr;
        return value;
      }
      continue;
    }
    const Failure* failure = status.failure();
    if (failure->kind == Failure::Kind::kRaise) {
      if (failure->exception->born_raise == 0) {
        failure->exception->born_raise = current.number;
      }
      if (caught(depth)) {
        exception_origin_ = failure->exception->born_raise;
        Status unwound = unwind(failure, depth);
        CHECK(unwound.ok()) << "unwinding to a handler";
        continue;
      }
      if (depth > 0) {  // leaves the waited-for frame: the C++ caller sees it
        while (frames_.size() > depth) {
          if (frames_.back()->generator) frames_.back()->generator->frame = nullptr;
          handled_ = frames_.back()->outer_exception;
          frames_.pop_back();
        }
        return Failed{failure};
      }
      restore_stack(current);
      failures_.push_back(std::make_unique<Failure>(
          Failure{Failure::Kind::kBreak, Reason::uncaught_exception, describe(failure->exception), failure->exception}));
      return Failed{failures_.back().get()};
    }
    restore_stack(current);
    if (failure->kind == Failure::Kind::kBreak && depth == 0 && current.number == waited_at_) {
      // Python code ran inside this instruction and may have changed something: it must not run again. Another run breaks before it.
      restart = {current.number, *failure};
      failures_.push_back(std::make_unique<Failure>(Failure{Failure::Kind::kRestart, failure->reason, failure->detail, nullptr}));
      return Failed{failures_.back().get()};
    }
    return Failed{failure};
  }
}

bool InstructionTranslator::caught(size_t base) const {
  for (size_t i = frames_.size(); i-- > base;) {
    const Frame& frame = *frames_[i];
    if (row_at(*frame.code, frame.pc)) return true;
    if (frame.returns_to_wait && i > base) return false;
  }
  return false;
}

Status InstructionTranslator::unwind(const Failure* failure, size_t base) {
  for (;;) {
    CHECK(frames_.size() > base) << "no handler for an exception of the traced program";
    Frame& frame = *frames_.back();
    if (const bytecode::ExceptionRow* found = row_at(*frame.code, frame.pc)) {
      // An instruction that failed may have taken operands: the rows' depth counts from the bottom, so that does not matter.
      CHECK(frame.stack.size() >= static_cast<size_t>(found->depth)) << "stack below an exception handler";
      frame.stack.resize(static_cast<size_t>(found->depth));
      if (found->lasti) frame.push(integer(frame.pc));
      frame.push(failure->exception);
      frame.next = found->target;
      return Unit{};
    }
    if (frame.generator) frame.generator->frame = nullptr;
    handled_ = frame.outer_exception;
    frames_.pop_back();
  }
}

// A break in Python code that a C++ rule waits for can't be split there: the instruction that waits breaks instead, in another run.
Failed InstructionTranslator::break_inside_wait(const Failure* failure) {
  restart = {waiting_.front(), *failure};
  failures_.push_back(std::make_unique<Failure>(Failure{Failure::Kind::kRestart, failure->reason, failure->detail, nullptr}));
  return {failures_.back().get()};
}

Answer InstructionTranslator::wait(Answer answer) {
  if (!answer.ok() || answer.value()) return answer;
  const size_t depth = frames_.size() - 1;
  CHECK(depth > 0) << "nothing to wait for";
  if (waiting_.size() > 60) return break_inside_wait(fail(Reason::deep_inlining, "calls inside operators nested too deep").failure);
  frames_.back()->returns_to_wait = true;
  waiting_.push_back(frames_[depth - 1]->number);
  if (waiting_.size() == 1) inside_wait_[count_ + 1] = waiting_.front();
  Answer result = run_until(depth);
  if (!result.ok() && result.failure()->kind != Failure::Kind::kRaise) {
    const Failure* failure = result.failure();
    if (failure->kind == Failure::Kind::kBreak || failure->kind == Failure::Kind::kSkip) result = break_inside_wait(failure);
    while (frames_.size() > depth) frames_.pop_back();
  }
  if (waiting_.size() == 1) inside_wait_[count_ + 1] = count_ + 1;
  waiting_.pop_back();
  if (waiting_.empty()) waited_at_ = frames_[depth - 1]->number;
  location_frame_ = nullptr;
  last_stack_frame_ = nullptr;
  return result;
}

std::unique_ptr<Frame> InstructionTranslator::make_frame(FunctionVariable* function, std::shared_ptr<const bytecode::Code> code) {
  auto frame = std::make_unique<Frame>();
  frame->code = std::move(code);
  frame->code_object = function->code;
  frame->globals = function->globals;
  frame->function = function;
  frame->outer_exception = handled_;
  return frame;
}

Answer InstructionTranslator::call_function(FunctionVariable* function, Arguments arguments) {
  if (frames_.size() > kMaxInlineDepth) return fail(Reason::deep_inlining, std::to_string(kMaxInlineDepth) + " calls");
  auto code = decoded(function->code, profile);
  if (!code) return fatal();
  if (code->flags & (kCoroutine | kAsyncGenerator))
    return fail(Reason::unsupported_callable, std::string("coroutine function ") + PyUnicode_AsUTF8(function->qualname));
  std::vector<Variable*> locals;
  TRY(bind_arguments(*this, function, *code, arguments, locals));
  inlined_calls_++;
  auto made = make_frame(function, code);
  made->locals = std::move(locals);
  made->stack_parent = stack_entry();
  made->module = frames_.back()->module;
  if (is_module_call(function) && !arguments.positional.empty()) {
    if (auto* module = as_object(force(arguments.positional[0])); module && module->real && module->source) {
      ModuleEntry entry;
      entry.parent = made->module;
      entry.path = module->source->name;
      for (char c : module->source->name) entry.key += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      entry.type = py::Ref::share(reinterpret_cast<PyObject*>(module->type));
      graph_.modules.push_back(std::move(entry));
      made->module = static_cast<int32_t>(graph_.modules.size()) - 1;
    }
  }
  size_t n_free = function->closure.size();
  const size_t n_locals = code->localsplus_names.size() - n_free;
  for (size_t i = 0; i < n_free; i++) made->locals[n_locals + i] = function->closure[i];
  TRY(make_cells(*made));
  if (code->flags & kGenerator) {
    auto* generator = make<GeneratorVariable>();
    generator->name = function->name;
    generator->frame = made.get();
    made->generator = generator;
    suspended_.push_back(std::move(made));
    return generator;
  }
  frames_.push_back(std::move(made));
  return nullptr;
}

Answer InstructionTranslator::finish(Answer answer) {
  Variable* value = TRY(answer);
  if (value) frame().push(value);
  return value;
}

Status InstructionTranslator::return_value(Variable* value) {
  std::unique_ptr<Frame> done = std::move(frames_.back());
  frames_.pop_back();
  location_frame_ = nullptr;
  last_stack_frame_ = nullptr;
  handled_ = done->outer_exception;
  if (done->generator) {
    done->generator->frame = nullptr;
    done->generator->running = false;
    auto* stop = make<ObjectVariable>();
    stop->existed = false;
    stop->type = reinterpret_cast<PyTypeObject*>(PyExc_StopIteration);
    stop->class_variable = known_object(PyExc_StopIteration);
    if (auto* constant = as_constant(value); !constant || constant->real != Py_None) stop->arguments.push_back(value);
    CHECK(done->returns_to_wait) << "a generator that nobody waits for";
    generator_end_ = raise(stop).failure;
    returned_ = nullptr;
    return Unit{};
  }
  if (frames_.empty() || done->returns_to_wait) {
    returned_ = value;
    return Unit{};
  }
  frames_.back()->push(value);
  return Unit{};
}

Status InstructionTranslator::yield_value(Variable* value) {
  std::unique_ptr<Frame> paused = std::move(frames_.back());
  CHECK(paused->generator && paused->returns_to_wait) << "yield outside of a generator";
  frames_.pop_back();
  location_frame_ = nullptr;
  last_stack_frame_ = nullptr;
  handled_ = paused->outer_exception;
  paused->generator->running = false;
  suspended_.push_back(std::move(paused));
  returned_ = value;
  return Unit{};
}

Frame& InstructionTranslator::wake(GeneratorVariable* generator) {
  for (auto& held : suspended_) {
    if (held.get() != generator->frame) continue;
    frames_.push_back(std::move(held));
    std::swap(held, suspended_.back());
    suspended_.pop_back();
    break;
  }
  Frame& frame = *frames_.back();
  CHECK(&frame == generator->frame) << "a suspended generator's frame";
  frame.outer_exception = handled_;
  generator->running = true;
  generator_end_ = nullptr;
  return frame;
}

const Frame* InstructionTranslator::with_code_to_run_when_dropped() const {
  for (const auto& frame : suspended_) {
    if (frame->generator->frame != frame.get() || !frame->generator->started) continue;
    for (const bytecode::ExceptionRow& row : frame->code->rows)
      if (frame->pc >= row.start && frame->pc < row.end) return frame.get();
  }
  return nullptr;
}

// To the next yield, whose value this is, or to the end, which is a StopIteration.
Answer InstructionTranslator::run_generator(GeneratorVariable* generator) {
  Answer answer = wait(nullptr_answer());
  generator->running = false;
  if (answer.ok()) {
    const Failure* end = std::exchange(generator_end_, nullptr);
    return end ? Answer(Failed{end}) : answer;
  }
  if (answer.failure()->kind == Failure::Kind::kRaise) {
    generator->frame = nullptr;
    if (exception_matches(answer.failure()->exception, PyExc_StopIteration))
      return raise_new(PyExc_RuntimeError, "generator raised StopIteration");
  }
  return answer;
}

Answer InstructionTranslator::resume_generator(GeneratorVariable* generator, Variable* sent) {
  if (generator->running) return raise_new(PyExc_ValueError, "generator already executing");
  if (!generator->frame) {
    auto* stop = make<ObjectVariable>();
    stop->existed = false;
    stop->type = reinterpret_cast<PyTypeObject*>(PyExc_StopIteration);
    stop->class_variable = known_object(PyExc_StopIteration);
    return raise(stop);
  }
  if (!generator->started && sent) {
    auto* constant = as_constant(force(sent));
    if (!constant || constant->real != Py_None) return raise_new(PyExc_TypeError, "can't send non-None value to a just-started generator");
  }
  Frame& frame = wake(generator);
  if (generator->started) frame.push(sent ? sent : none());
  generator->started = true;
  return run_generator(generator);
}

Answer InstructionTranslator::throw_into_generator(GeneratorVariable* generator, Variable* exception) {
  if (generator->running) return raise_new(PyExc_ValueError, "generator already executing");
  if (!generator->frame || !generator->started) {
    generator->frame = nullptr;
    return raise(exception);
  }
  wake(generator);
  const size_t base = frames_.size() - 1;
  Failed thrown = raise(exception);
  if (!caught(base)) {
    generator->frame = nullptr;
    generator->running = false;
    frames_.pop_back();
    return thrown;
  }
  CHECK(unwind(thrown.failure, base).ok()) << "throw into a generator";
  return run_generator(generator);
}

Variable* InstructionTranslator::builtin(PyObject* name) {
  PyObject* builtins = PyEval_GetBuiltins();
  PyObject* value = PyDict_GetItemWithError(builtins, name);
  if (!value) return nullptr;
  return lazy(value, sources().keyed(source::Kind::kDictItem, sources().constant(builtins), name));
}

Variable* InstructionTranslator::load_global(Frame& frame, PyObject* name) {
  if (auto* written = written_global(frame.globals, name)) return written->value ? written->value : builtin(name);
  const bool of_root = frame.globals == PyFunction_GET_GLOBALS(root_.view.func);
  if (PyObject* value = PyDict_GetItemWithError(frame.globals, name)) {
    const auto* source =
        of_root ? sources().global(name) : sources().keyed(source::Kind::kDictItem, sources().constant(frame.globals), name);
    Variable*& cached = globals_cache_[source];
    if (!cached) cached = lazy(value, source);
    return cached;
  }
  if (of_root)
    guard(guard::Kind::kGlobalLacks, sources().global(name), name);
  else
    guard(guard::Kind::kDictLacks, sources().constant(frame.globals), name);
  return builtin(name);
}

}  // namespace pellucid::translate
