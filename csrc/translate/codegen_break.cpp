// Codegen of a graph break: the graph so far is called, its values are rebuilt, the instruction that breaks runs as written (or the
// callee it lies in does), and a resume function goes on behind it. The resume function is called by whoever runs the transformed
// function, after its frame is gone (tail_call), so loops that break on every turn do not nest.
#include <algorithm>
#include <optional>

#include "base/check.h"
#include "translate/codegen.h"

namespace pellucid::translate {

using namespace variables;
using bytecode::Instruction;
using bytecode::Op;

namespace {

struct Effect {  // of a straight-line instruction on the stack
  int pops, pushes;
};

std::optional<Effect> stack_effect(const Instruction& instruction) {
  const int arg = static_cast<int>(instruction.arg);
  switch (instruction.op) {
    case Op::CALL:
      return Effect{arg + 2, 1};
    case Op::CALL_FUNCTION_EX:
      return Effect{3 + (arg & 1), 1};
    case Op::LOAD_ATTR:
    case Op::UNARY_POSITIVE:
    case Op::UNARY_NEGATIVE:
    case Op::UNARY_INVERT:
    case Op::UNARY_NOT:
    case Op::GET_ITER:
    case Op::GET_YIELD_FROM_ITER:
      return Effect{1, 1};
    case Op::STORE_ATTR:
    case Op::DELETE_SUBSCR:
      return Effect{2, 0};
    case Op::DELETE_ATTR:
    case Op::POP_TOP:
      return Effect{1, 0};
    case Op::BINARY_OP:
    case Op::BINARY_SUBSCR:
    case Op::COMPARE_OP:
    case Op::IS_OP:
    case Op::CONTAINS_OP:
    case Op::IMPORT_NAME:
      return Effect{2, 1};
    case Op::STORE_SUBSCR:
      return Effect{3, 0};
    case Op::GET_LEN:
    case Op::IMPORT_FROM:
    case Op::MATCH_MAPPING:
    case Op::MATCH_SEQUENCE:
    case Op::BEFORE_WITH:
      return Effect{1, 2};
    case Op::MATCH_KEYS:
      return Effect{2, 3};
    case Op::MATCH_CLASS:
      return Effect{3, 1};
    case Op::UNPACK_SEQUENCE:
      return Effect{1, arg};
    case Op::UNPACK_EX:
      return Effect{1, (arg & 0xFF) + (arg >> 8) + 1};
    case Op::BUILD_TUPLE:
    case Op::BUILD_LIST:
    case Op::BUILD_SET:
    case Op::BUILD_STRING:
      return Effect{arg, 1};
    case Op::BUILD_SLICE:
      return Effect{arg, 1};
    case Op::BUILD_MAP:
      return Effect{2 * arg, 1};
    case Op::BUILD_CONST_KEY_MAP:
      return Effect{arg + 1, 1};
    case Op::FORMAT_VALUE:
      return Effect{1 + ((arg & 4) != 0), 1};
    case Op::LIST_TO_TUPLE:
      return Effect{1, 1};
    case Op::LIST_EXTEND:
    case Op::SET_UPDATE:
    case Op::SET_ADD:
    case Op::LIST_APPEND:
    case Op::DICT_UPDATE:
      return Effect{arg + 1, arg};
    case Op::DICT_MERGE:
      return Effect{arg + 3, arg + 2};  // the callable's name is in the error message
    case Op::MAP_ADD:
      return Effect{arg + 2, arg};
    case Op::RAISE_VARARGS:
      return Effect{arg, 0};
    case Op::LOAD_BUILD_CLASS:
      return Effect{0, 1};
    case Op::DELETE_GLOBAL:
      return Effect{0, 0};
    case Op::LOAD_GLOBAL:
    case Op::LOAD_FAST:
      return Effect{0, 1};
    default:
      return std::nullopt;
  }
}

bool names_index(Op op) {
  switch (op) {
    case Op::LOAD_ATTR:
    case Op::STORE_ATTR:
    case Op::DELETE_ATTR:
    case Op::IMPORT_NAME:
    case Op::IMPORT_FROM:
    case Op::DELETE_GLOBAL:
      return true;
    default:
      return false;
  }
}

const bytecode::ExceptionRow* covering_row(const Frame& frame, int index) {
  const bytecode::ExceptionRow* found = nullptr;
  for (const auto& row : frame.code->rows)
    if (index >= row.start && index < row.end) found = &row;
  return found;
}

// Functions that look at their own frame keep all their locals.
bool keeps_locals(const bytecode::Code& code) {
  for (auto& name : code.names)
    for (const char* user : {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "breakpoint", "set_trace"})
      if (PyUnicode_CompareWithASCIIString(name.get(), user) == 0) return true;
  return false;
}

bool uses_super(const bytecode::Code& code) {
  for (auto& name : code.names)
    if (PyUnicode_CompareWithASCIIString(name.get(), "super") == 0) return true;
  return false;
}

size_t local_count(const bytecode::Code& code) {
  size_t count = 0;
  for (auto kind : code.localsplus_kinds) count += kind != bytecode::LocalKind::kFree;
  return count;
}

bool is_branch(Op op) {
  switch (op) {
    case Op::POP_JUMP_FORWARD_IF_FALSE:
    case Op::POP_JUMP_FORWARD_IF_TRUE:
    case Op::POP_JUMP_BACKWARD_IF_FALSE:
    case Op::POP_JUMP_BACKWARD_IF_TRUE:
    case Op::JUMP_IF_FALSE_OR_POP:
    case Op::JUMP_IF_TRUE_OR_POP:
      return true;
    default:
      return false;
  }
}

// Whether code runs when the last reference to what came from outside goes: a generator's handlers, a __del__. Such a local stays bound to
// the end of its function, though nothing reads it any more; one that is written to before goes at once, since only the frame that would
// write it could drop it then.
bool dropping_runs_code(const Variable* variable) {
  PyObject* real = variable->source == nullptr ? nullptr : variable->real;
  if (real == nullptr) return false;
  if (PyGen_CheckExact(real) || PyCoro_CheckExact(real) || PyAsyncGen_CheckExact(real)) return true;
  PyTypeObject* type = Py_TYPE(real);
  return Py_TYPE(type) == &PyType_Type && PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "__del__") != 0;
}

bool is_written_behind(const bytecode::Code& code, int index, size_t slot) {
  return std::any_of(code.instructions.begin() + index, code.instructions.end(), [slot](const Instruction& instruction) {
    return (instruction.op == Op::STORE_FAST || instruction.op == Op::DELETE_FAST) && instruction.arg == slot;
  });
}

}  // namespace

std::vector<bool> Codegen::live(const Frame& frame, int index) const {
  const bytecode::Code& code = *frame.code;
  const size_t n = local_count(code);
  std::vector<bool> mask(n, true);
  if (!keeps_locals(code)) {
    const auto& all = liveness(frame.code);
    for (size_t i = 0; i < n; i++) mask[i] = all[static_cast<size_t>(index)][i];
    if (n && uses_super(code)) mask[0] = true;
  }
  for (size_t i = 0; i < n; i++) {
    if (!frame.locals[i])
      mask[i] = false;
    else if (!mask[i])
      mask[i] = dropping_runs_code(frame.locals[i]) && !is_written_behind(code, index, i);
  }
  return mask;
}

Status Codegen::evaluate_frame(const Frame& frame, const std::vector<bool>& mask) {
  for (size_t i = 0; i < mask.size(); i++)
    if (mask[i]) TRY(evaluate(frame.locals[i]));
  for (Variable* variable : frame.stack) TRY(evaluate(variable));
  return Unit{};
}

Codegen::Result<const Resume*> Codegen::resume_for(const Frame& frame, ResumeKey key) {
  key.code = frame.code_object;
  const Resume* resume = resume_code(key, *frame.code);
  if (!resume) return t_.fatal();
  return resume;
}

Status Codegen::push_function(const Resume& resume, const Frame& frame, bool root) {
  std::vector<size_t> free;
  for (size_t i = 0; i < frame.code->localsplus_kinds.size(); i++)
    if (frame.code->localsplus_kinds[i] == bytecode::LocalKind::kFree) free.push_back(i);
  if (free.empty()) {
    PyObject* function = PyFunction_New(resume.code.get(), frame.globals);
    if (!function) return t_.fatal();
    load_constant(t_.keep_new(function));
    return Unit{};
  }
  emit(Op::PUSH_NULL);
  load_constant(reinterpret_cast<PyObject*>(&PyFunction_Type));
  load_constant(resume.code.get());
  load_constant(frame.globals);
  load_constant(frame.code->name.get());
  load_constant(Py_None);
  for (size_t i = 0; i < free.size(); i++) {
    if (root)
      emit(Op::LOAD_CLOSURE, static_cast<uint32_t>(i));
    else
      TRY(value(frame.locals[free[i]]));
  }
  emit(Op::BUILD_TUPLE, static_cast<uint32_t>(free.size()));
  load_call(5);
  return Unit{};
}

std::vector<Codegen::StackValue> Codegen::stack_values(const Frame& frame, size_t count) {
  std::vector<StackValue> values;
  for (size_t i = 0; i < count; i++) values.push_back({frame.stack[i], -1, frame.stack[i]->kind == variables::Kind::kNull});
  return values;
}

Codegen::Result<size_t> Codegen::push_arguments(const Frame& frame, const Resume& resume, const std::vector<StackValue>& stack) {
  size_t count = 0;
  for (size_t i = 0; i < resume.n_locals; i++, count++) {
    if (resume.key.bound[i])
      TRY(value(frame.locals[i]));
    else
      load_constant(Py_None);
  }
  for (const StackValue& item : stack) {
    if (item.null) continue;
    if (item.slot >= 0)
      emit(Op::LOAD_FAST, static_cast<uint32_t>(item.slot));
    else
      TRY(value(item.variable));
    count++;
  }
  return count;
}

// Ends the transformed function: the resume function of `key`, whose stack is `stack`, is called when its frame is gone.
Status Codegen::leave(Frame& frame, ResumeKey key, const std::vector<StackValue>& stack, bool with_exception) {
  key.bound = live(frame, key.index);
  for (auto& item : stack) key.stack_null.push_back(item.null);
  const Resume* resume = TRY(resume_for(frame, std::move(key)));
  emit(Op::PUSH_NULL);
  load_constant(helper("pellucid._core", "tail_call"));
  TRY(push_function(*resume, frame, true));
  const size_t count = TRY(push_arguments(frame, *resume, stack));
  load_call(count + 1);
  if (with_exception) {
    emit(Op::DELETE_FAST, static_cast<uint32_t>(stack.back().slot));
    forget_exceptions();
  }
  emit(Op::RETURN_VALUE);
  return Unit{};
}

Status Codegen::tail_call(Frame& frame, int index, const std::vector<StackValue>& stack) {
  ResumeKey key;
  key.index = index;
  return leave(frame, std::move(key), stack);
}

// The instruction that runs here may raise where the original has a handler: the handler is entered in a resume function of its own.
Status Codegen::tail_call_handler(Frame& frame, const bytecode::ExceptionRow& row) {
  const uint32_t exception = new_temporary();
  store_temporary(exception);
  ResumeKey key;
  key.entry = ResumeKey::Entry::kHandler;
  key.index = row.target;
  key.call_index = frame.pc;
  std::vector<StackValue> stack = stack_values(frame, static_cast<size_t>(row.depth));
  if (row.lasti) {
    key.lasti_slots.push_back(static_cast<int>(stack.size()));
    stack.push_back({nullptr, -1, true});  // pushed by the resume function as a constant
  }
  stack.push_back({nullptr, static_cast<int>(exception), false});
  return leave(frame, std::move(key), stack, true);
}

// An exception's traceback has the frame it was raised in: what that frame leaves in a local would be a cycle, and keep all else in the
// frame alive.
void Codegen::forget_exceptions() {
  std::vector<uint32_t> slots;
  for (const auto& [variable, slot] : temporaries_) {
    if (variable->kind != Kind::kObject) continue;
    const auto* object = static_cast<const ObjectVariable*>(variable);
    if (PyType_IsSubtype(object->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end());
  for (const uint32_t slot : slots) emit(Op::DELETE_FAST, slot);
}

// What stands in [start, end) of the transformed code raises where the original instruction would.
Status Codegen::cover(Frame& frame, int32_t start, int32_t end) {
  const auto* row = covering_row(frame, frame.pc);
  if (!row) return Unit{};
  out_.rows.push_back({start, end, static_cast<int32_t>(out_.instructions.size()), 0, false});
  return tail_call_handler(frame, *row);
}

Status Codegen::break_branch(Frame& frame) {
  const Instruction& instruction = frame.instruction();
  const bool keeps = instruction.op == Op::JUMP_IF_FALSE_OR_POP || instruction.op == Op::JUMP_IF_TRUE_OR_POP;
  const bool when = instruction.op == Op::POP_JUMP_FORWARD_IF_TRUE || instruction.op == Op::POP_JUMP_BACKWARD_IF_TRUE ||
                    instruction.op == Op::JUMP_IF_TRUE_OR_POP;
  std::vector<StackValue> below = stack_values(frame, frame.stack.size() - 1);
  std::vector<StackValue> jumped = below;
  if (keeps) jumped.push_back({frame.peek(), -1, false});
  const int32_t start = static_cast<int32_t>(out_.instructions.size());
  TRY(value(frame.peek()));
  const size_t branch = out_.instructions.size();
  emit(when ? Op::POP_JUMP_FORWARD_IF_TRUE : Op::POP_JUMP_FORWARD_IF_FALSE);
  const int32_t end = static_cast<int32_t>(out_.instructions.size());
  TRY(tail_call(frame, frame.pc + 1, below));
  out_.instructions[branch].target = static_cast<int32_t>(out_.instructions.size());
  TRY(tail_call(frame, instruction.target, jumped));
  return cover(frame, start, end);
}

Status Codegen::break_for_iter(Frame& frame) {
  const Instruction& instruction = frame.instruction();
  std::vector<StackValue> stack = stack_values(frame, frame.stack.size());
  std::vector<StackValue> exhausted(stack.begin(), stack.end() - 1);
  const int32_t start = static_cast<int32_t>(out_.instructions.size());
  TRY(value(frame.peek()));
  const size_t loop = out_.instructions.size();
  emit(Op::FOR_ITER);
  const uint32_t item = new_temporary();
  store_temporary(item);
  emit(Op::POP_TOP);
  const int32_t end = static_cast<int32_t>(out_.instructions.size());
  stack.push_back({nullptr, static_cast<int>(item), false});
  TRY(tail_call(frame, frame.pc + 1, stack));
  out_.instructions[loop].target = static_cast<int32_t>(out_.instructions.size());
  TRY(tail_call(frame, instruction.target, exhausted));
  return cover(frame, start, end);
}

Status Codegen::break_instruction(Frame& frame) {
  const Instruction& instruction = frame.instruction();
  const bool loads_method = instruction.op == Op::LOAD_METHOD;
  const auto effect = loads_method ? std::optional<Effect>({1, 1}) : stack_effect(instruction);
  if (!effect || static_cast<size_t>(effect->pops) > frame.stack.size())
    return t_.skip_frame(Reason::unsupported_opcode,
                         std::string(bytecode::op_name(instruction.op)) + " can't run in front of a resume function");
  const size_t below = frame.stack.size() - static_cast<size_t>(effect->pops);
  std::vector<StackValue> stack = stack_values(frame, below);

  for (size_t i = below; i < frame.stack.size(); i++) TRY(value(frame.stack[i]));
  const int32_t start = static_cast<int32_t>(out_.instructions.size());
  if (instruction.op == Op::CALL) {
    if (const int names = call_start(*frame.code, frame.pc); names != frame.pc)
      emit(Op::KW_NAMES, constant_index(frame.code->consts[frame.code->instructions[static_cast<size_t>(names)].arg].get()));
    load_call(instruction.arg);
  } else if (loads_method) {
    load_name(Op::LOAD_ATTR, frame.code->names[instruction.arg].get());
  } else if (instruction.op == Op::LOAD_GLOBAL) {
    emit(Op::LOAD_GLOBAL, name_index(frame.code->names[instruction.arg >> 1].get()) << 1);
  } else if (instruction.op == Op::LOAD_FAST) {  // unbound: a local of that name which never gets a value
    out_.localsplus_names.push_back(frame.code->localsplus_names[instruction.arg]);
    out_.localsplus_kinds.push_back(bytecode::LocalKind::kLocal);
    const auto slot = static_cast<uint32_t>(out_.localsplus_names.size() - 1);
    load_constant(Py_None);
    emit(Op::STORE_FAST, slot);
    emit(Op::DELETE_FAST, slot);
    emit(Op::LOAD_FAST, slot);
  } else if (names_index(instruction.op)) {
    emit(instruction.op, name_index(frame.code->names[instruction.arg].get()));
  } else {
    if (instruction.op == Op::RAISE_VARARGS && !covering_row(frame, frame.pc)) forget_exceptions();
    emit(instruction.op, instruction.arg);
  }
  const int32_t end = static_cast<int32_t>(out_.instructions.size());
  if (instruction.op != Op::RAISE_VARARGS) {
    const size_t first = stack.size();
    if (loads_method || (instruction.op == Op::LOAD_GLOBAL && (instruction.arg & 1))) stack.push_back({nullptr, -1, true});
    for (int i = 0; i < effect->pushes; i++) stack.push_back({nullptr, static_cast<int>(new_temporary()), false});
    for (size_t i = stack.size(); i-- > first;)
      if (!stack[i].null) store_temporary(static_cast<uint32_t>(stack[i].slot));
    TRY(tail_call(frame, frame.pc + 1, stack));
  }
  return cover(frame, start, end);
}

// Pushes NULL, the resume function of frame `level` and its arguments, and calls it: the innermost frame goes on at the instruction
// that broke; a frame between calls the one below first.
Status Codegen::inner_call(size_t level) {
  const auto& frames = t_.frames();
  const Frame& frame = *frames[level];
  const bool innermost = level + 1 == frames.size();
  ResumeKey key;
  key.entry = innermost ? ResumeKey::Entry::kAt : ResumeKey::Entry::kByCall;
  key.repeats = innermost;
  key.index = innermost ? call_start(*frame.code, frame.pc) : frame.pc + 1;
  key.call_index = innermost ? -1 : frame.pc;
  key.bound = live(frame, key.index);
  if (!innermost) {  // a handler around the call reads locals too
    if (const auto* row = covering_row(frame, frame.pc)) {
      const auto in_handler = live(frame, row->target);
      for (size_t i = 0; i < in_handler.size(); i++) key.bound[i] = key.bound[i] || in_handler[i];
    }
  }
  std::vector<StackValue> stack;
  for (Variable* variable : frame.stack) {
    stack.push_back({variable, -1, variable->kind == variables::Kind::kNull});
    key.stack_null.push_back(stack.back().null);
  }
  const Resume* resume = TRY(resume_for(frame, std::move(key)));
  TRY(push_function(*resume, frame, false));
  size_t count = TRY(push_arguments(frame, *resume, stack));
  if (innermost) {
    pending_arguments_ = count;
    return Unit{};
  }
  TRY(inner_call(level + 1));                                        // callee and its arguments, flat on the stack
  emit(Op::BUILD_TUPLE, static_cast<uint32_t>(pending_arguments_));  // callee below the tuple: both are arguments of this frame's function
  pending_arguments_ = count + 2;
  return Unit{};
}

Status Codegen::break_below_calls() {
  Frame& root = *t_.frames().front();
  std::vector<StackValue> stack = stack_values(root, root.stack.size());
  emit(Op::PUSH_NULL);
  TRY(inner_call(1));
  const int32_t start = static_cast<int32_t>(out_.instructions.size());
  load_call(pending_arguments_);
  const int32_t end = static_cast<int32_t>(out_.instructions.size());
  const uint32_t result = new_temporary();
  store_temporary(result);
  stack.push_back({nullptr, static_cast<int>(result), false});
  TRY(tail_call(root, root.pc + 1, stack));
  return cover(root, start, end);
}

Status Codegen::break_at(const Failure&) {
  calls_python_ = true;
  Frame& root = *t_.frames().front();
  const bool nested = t_.frames().size() > 1;
  // 1. read everything
  for (auto& frame : t_.frames()) {
    std::vector<bool> mask = live(*frame, frame->pc);
    const auto after = live(*frame, std::min<int>(frame->pc + 1, static_cast<int>(frame->code->instructions.size()) - 1));
    for (size_t i = 0; i < mask.size(); i++) mask[i] = mask[i] || after[i];
    if (const auto* row = covering_row(*frame, frame->pc)) {
      const auto in_handler = live(*frame, row->target);
      for (size_t i = 0; i < mask.size(); i++) mask[i] = mask[i] || in_handler[i];
    }
    if (frame->instruction().target >= 0) {
      const auto jumped = live(*frame, frame->instruction().target);
      for (size_t i = 0; i < mask.size(); i++) mask[i] = mask[i] || jumped[i];
    }
    TRY(evaluate_frame(*frame, mask));
    if (frame != t_.frames().front())
      for (size_t i = mask.size(); i < frame->locals.size(); i++) TRY(evaluate(frame->locals[i]));  // closure cells
  }
  collect_effects();
  TRY(evaluate_effects());
  // 2. write
  TRY(write_effects());
  // 3. go on
  if (nested) return break_below_calls();
  if (is_branch(root.instruction().op)) return break_branch(root);
  if (root.instruction().op == Op::FOR_ITER) return break_for_iter(root);
  return break_instruction(root);
}

// The root is the rest of a frame that first calls the rest of its callee (ResumeKey::Entry::kByCall).
Status Codegen::break_by_call(const Resume& resume) {
  calls_python_ = true;
  Frame& root = *t_.frames().front();
  root.pc = resume.key.call_index;
  position_ = root.instruction().position;
  std::vector<StackValue> stack = stack_values(root, root.stack.size());
  const auto n = static_cast<uint32_t>(n_parameters_);
  const int32_t start = static_cast<int32_t>(out_.instructions.size());
  emit(Op::PUSH_NULL);
  emit(Op::LOAD_FAST, n - 2);
  emit(Op::LOAD_FAST, n - 1);
  emit(Op::CALL_FUNCTION_EX, 0);
  const int32_t end = static_cast<int32_t>(out_.instructions.size());
  const uint32_t result = new_temporary();
  store_temporary(result);
  stack.push_back({nullptr, static_cast<int>(result), false});
  TRY(tail_call(root, resume.key.index, stack));
  return cover(root, start, end);
}

}  // namespace pellucid::translate
