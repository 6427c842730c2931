// Two passes. The first walks the code with the stack of blocks that the interpreter would have: bodies being guarded and handlers being
// run. The second writes each instruction anew, knowing what is around it. See old_handlers.h.
#include "decompile/old_handlers.h"

#include <algorithm>
#include <utility>

#include "bytecode/effects.h"
#include "bytecode/tables.h"
#include "decompile/ast.h"

namespace pellucid::decompile {
namespace {

using bytecode::Code;
using bytecode::ExceptionRow;
using bytecode::Instruction;
using bytecode::Op;

size_t at(int32_t index) { return static_cast<size_t>(index); }

enum class Kind : uint8_t { kExcept, kFinally, kWith, kName, kAsyncFor };

struct Guard {  // what one SETUP_... sets up
  Kind kind = Kind::kFinally;
  int32_t setup = 0, handler = 0;
  int32_t end = -1;          // 3.8: the END_FINALLY of the handler
  bool placeholder = false;  // 3.8: None lies on the stack for what a `return` in the finally block replaces
  int32_t new_handler = -1, cleanup = -1;
};

struct Frame {  // an entry of the block stack
  int32_t outer = -1;
  int32_t guard = 0;
  bool handles = false;  // the handler is being run, not the body
};

bool is_store(Op op) { return op == Op::STORE_FAST || op == Op::STORE_NAME || op == Op::STORE_GLOBAL || op == Op::STORE_DEREF; }
bool is_delete(Op op) { return op == Op::DELETE_FAST || op == Op::DELETE_NAME || op == Op::DELETE_GLOBAL || op == Op::DELETE_DEREF; }

constexpr int32_t kUnseen = -2;

class Raiser {
 public:
  explicit Raiser(Code& code) : code_(code), n_(static_cast<int32_t>(code.instructions.size())) {}

  void run() {
    guard_of_setup_.assign(at(n_), -1);
    guard_of_handler_.assign(at(n_) + 1, -1);
    handler_of_setup_.assign(at(n_), -1);
    for (const auto& [setup, handler] : code_.set_ups) handler_of_setup_[at(setup)] = handler;
    clause_.assign(at(n_), 0);
    exit_call_.assign(at(n_), 0);
    state_.assign(at(n_), kUnseen);
    reach(0, -1);
    while (!work_.empty()) {
      const int32_t index = work_.back();
      work_.pop_back();
      walk(index);
    }
    write();
  }

 private:
  const Instruction& in(int32_t i) const { return code_.instructions[at(i)]; }
  bool is(int32_t i, Op op) const { return i >= 0 && i < n_ && in(i).op == op; }
  bool three_pops(int32_t i) const { return is(i, Op::POP_TOP) && is(i + 1, Op::POP_TOP) && is(i + 2, Op::POP_TOP); }
  bool is_none(int32_t i) const {
    return is(i, Op::LOAD_CONST) && in(i).arg < code_.consts.size() && code_.consts[in(i).arg].get() == Py_None;
  }
  bool unbinds(int32_t i) const {
    return is_none(i) && i + 2 < n_ && is_store(in(i + 1).op) && is_delete(in(i + 2).op) && in(i + 1).arg == in(i + 2).arg;
  }

  // ---- the walk

  int32_t push(int32_t outer, int32_t guard, bool handles) {
    frames_.push_back({outer, guard, handles});
    return static_cast<int32_t>(frames_.size()) - 1;
  }

  void reach(int32_t index, int32_t state) {
    if (index >= n_) no_form("code that runs off the end");
    int32_t& known = state_[at(index)];
    if (known == kUnseen) {
      known = state;
      work_.push_back(index);
    } else if (!same(known, state)) {
      no_form("code reached inside of different blocks");
    }
  }

  bool same(int32_t a, int32_t b) const {
    while (a != b) {
      if (a < 0 || b < 0) return false;
      const Frame &x = frames_[at(a)], &y = frames_[at(b)];
      if (x.guard != y.guard || x.handles != y.handles) return false;
      a = x.outer;
      b = y.outer;
    }
    return true;
  }

  int32_t pop(int32_t state, bool handles) const {
    if (state < 0 || frames_[at(state)].handles != handles) no_form("blocks that do not nest");
    return frames_[at(state)].outer;
  }

  Kind kind_of(int32_t setup, int32_t handler, int32_t state) const {
    if (!is(setup, Op::SETUP_FINALLY)) return Kind::kWith;
    if (is(handler, Op::END_ASYNC_FOR)) return Kind::kAsyncFor;
    if (is(handler, Op::DUP_TOP) || three_pops(handler)) return Kind::kExcept;
    if (unbinds(handler) && is(setup - 1, Op::POP_TOP) && setup >= 3 && is_store(in(setup - 2).op) &&
        in(setup - 2).arg == in(handler + 1).arg && is(setup - 3, Op::POP_TOP) && state >= 0 && frames_[at(state)].handles &&
        guards_[at(frames_[at(state)].guard)].kind == Kind::kExcept) {
      return Kind::kName;
    }
    return Kind::kFinally;
  }

  int32_t set_up(int32_t i, int32_t state) {
    const int32_t handler = handler_of_setup_[at(i)];
    if (handler < 0) no_form("a block without a handler");
    const auto number = static_cast<int32_t>(guards_.size());
    Guard& made = guards_.emplace_back();
    made.kind = kind_of(i, handler, state);
    made.setup = i;
    made.handler = handler;
    made.placeholder = code_.version == 308 && made.kind == Kind::kFinally && is_none(i - 1);
    guard_of_setup_[at(i)] = number;
    if (guard_of_handler_[at(handler)] >= 0) no_form("a handler of two blocks");
    guard_of_handler_[at(handler)] = number;
    if (made.kind == Kind::kExcept) clause_[at(handler)] = 1;
    reach(handler, push(state, number, true));
    return push(state, number, false);
  }

  void walk(int32_t i) {
    for (;; ++i) {
      int32_t state = state_[at(i)];
      const Instruction& instruction = in(i);
      const Op op = instruction.op;
      if (bytecode::sets_up_block(op)) {
        state = set_up(i, state);
      } else if (op == Op::POP_BLOCK) {
        state = pop(state, false);
      } else if (op == Op::POP_EXCEPT || op == Op::END_ASYNC_FOR) {
        state = pop(state, true);
      } else if (op == Op::POP_FINALLY) {
        if (exit_call_[at(i)] == 0) state = pop(state, true);
      } else if (op == Op::END_FINALLY) {
        if (state < 0 || !frames_[at(state)].handles) no_form("blocks that do not nest");
        Guard& guard = guards_[at(frames_[at(state)].guard)];
        guard.end = i;
        if (guard.kind == Kind::kExcept) return;
        state = pop(state, true);
      } else if (op == Op::BEGIN_FINALLY) {
        if (i + 1 >= n_) no_form("code that runs off the end");
        if (guard_of_handler_[at(i + 1)] >= 0) return;  // goes on behind the handler, which is reached through END_FINALLY
        int32_t end = i + 1;
        while (end < n_ && end < i + 8 && in(end).op != Op::POP_FINALLY) ++end;
        if (!is(end, Op::POP_FINALLY) || !is(i + 1, Op::WITH_CLEANUP_START)) no_form("an unknown end of a block");
        for (int32_t k = i; k <= end; ++k) exit_call_[at(k)] = 1;
      } else if (op == Op::JUMP_IF_NOT_EXC_MATCH || (op == Op::POP_JUMP_IF_FALSE && is_match(i - 1))) {
        clause_[at(instruction.target)] = 1;
        reach(instruction.target, state);
      } else if (instruction.target >= 0 && op != Op::CALL_FINALLY) {
        reach(instruction.target, state);
      }
      if (!bytecode::falls_through(op)) return;
      if (i + 1 >= n_) no_form("code that runs off the end");
      if (state_[at(i + 1)] != kUnseen) {
        reach(i + 1, state);
        return;
      }
      state_[at(i + 1)] = state;
    }
  }

  bool is_match(int32_t i) const { return is(i, Op::COMPARE_OP) && in(i).arg == 10; }

  // ---- writing

  static constexpr int32_t kNoCover = -1;
  // What guards an instruction: a guard's handler (2 * guard), or the cleanup around its handler (2 * guard + 1).
  int32_t cover_of(int32_t state) const {
    while (state >= 0) {
      const Frame& frame = frames_[at(state)];
      if (!frame.handles) return 2 * frame.guard;
      const Kind kind = guards_[at(frame.guard)].kind;
      if (kind != Kind::kName && kind != Kind::kAsyncFor) return 2 * frame.guard + 1;
      state = frame.outer;
    }
    return kNoCover;
  }

  void emit(Op op, uint32_t arg, int32_t from) {
    Instruction& made = out_.emplace_back();
    made.op = op;
    made.arg = arg;
    made.offset = in(from).offset;
    made.position = in(from).position;
    covers_.push_back(cover_);
  }
  void emit_jump(Op op, int32_t target, int32_t from) {
    emit(op, 0, from);
    out_.back().target = target;  // an old index until the end
  }
  void copy(int32_t from) {
    out_.push_back(in(from));
    covers_.push_back(cover_);
  }
  uint32_t none() {
    for (size_t i = 0; i < code_.consts.size(); ++i) {
      if (code_.consts[i].get() == Py_None) return static_cast<uint32_t>(i);
    }
    code_.consts.push_back(py::Ref::share(Py_None));
    return static_cast<uint32_t>(code_.consts.size()) - 1;
  }

  void write() {
    std::vector<int32_t> new_index(at(n_) + 1, -1);
    for (int32_t i = 0; i < n_;) {
      const int32_t next = state_[at(i)] == kUnseen ? write_dead(i, new_index) : write_one(i, new_index);
      i = next;
    }
    const auto body_end = static_cast<int32_t>(out_.size());
    new_index[at(n_)] = body_end;
    for (int32_t i = n_; i-- > 0;) {
      if (new_index[at(i)] < 0) new_index[at(i)] = new_index[at(i) + 1];
    }
    for (Instruction& instruction : out_) {
      if (instruction.target >= 0) instruction.target = new_index[at(instruction.target)];
      if (instruction.op == Op::BEGIN_FINALLY) instruction.arg = static_cast<uint32_t>(guards_[instruction.arg].new_handler);
    }
    write_cleanups();
    code_.instructions = std::move(out_);
    code_.set_ups.clear();
    write_rows();
    for (const Instruction& instruction : code_.instructions) {
      if (instruction.target >= static_cast<int32_t>(code_.instructions.size())) no_form("code that runs off the end");
    }
  }

  int32_t write_dead(int32_t i, std::vector<int32_t>& new_index) {
    cover_ = kNoCover;
    new_index[at(i)] = static_cast<int32_t>(out_.size());
    switch (in(i).op) {
      case Op::POP_BLOCK:
      case Op::BEGIN_FINALLY:
      case Op::CALL_FINALLY:
      case Op::SETUP_FINALLY:
      case Op::SETUP_WITH:
      case Op::SETUP_ASYNC_WITH:
        break;
      case Op::END_FINALLY:
        emit(Op::RERAISE, 0, i);
        break;
      default:
        copy(i);
    }
    return i + 1;
  }

  // Writes what stands for the instruction, and perhaps for some behind it; where to go on.
  int32_t write_one(int32_t i, std::vector<int32_t>& new_index) {
    const int32_t state = state_[at(i)];
    cover_ = cover_of(state);
    new_index[at(i)] = static_cast<int32_t>(out_.size());
    if (const int32_t guard = guard_of_handler_[at(i)]; guard >= 0) {
      Guard& g = guards_[at(guard)];
      g.new_handler = static_cast<int32_t>(out_.size());
      if (g.kind != Kind::kName && g.kind != Kind::kAsyncFor) emit(Op::PUSH_EXC_INFO, g.kind == Kind::kExcept ? 0 : 1, i);
    }
    if (clause_[at(i)] != 0) {
      if (is(i, Op::DUP_TOP)) return i + 1;
      if (three_pops(i)) {
        emit(Op::POP_TOP, 0, i);
        return i + 3;
      }
    }
    switch (in(i).op) {
      case Op::SETUP_FINALLY:
        return write_setup(i);
      case Op::SETUP_WITH:
        copy(i);
        out_.back().op = Op::BEFORE_WITH;
        return i + 1;
      case Op::SETUP_ASYNC_WITH:
      case Op::POP_BLOCK:
        return i + 1;
      case Op::LOAD_CONST:
        if (is(i + 1, Op::SETUP_FINALLY) && guard_of_setup_[at(i + 1)] >= 0 && guards_[at(guard_of_setup_[at(i + 1)])].placeholder)
          return i + 1;
        break;
      case Op::JUMP_IF_NOT_EXC_MATCH:
        emit(Op::CHECK_EXC_MATCH, 0, i);
        emit_jump(Op::POP_JUMP_IF_FALSE, in(i).target, i);
        return write_match(i + 1);
      case Op::COMPARE_OP:
        if (!is_match(i)) break;
        emit(Op::CHECK_EXC_MATCH, 0, i);
        if (!is(i + 1, Op::POP_JUMP_IF_FALSE)) no_form("an exception matched outside of a handler");
        emit_jump(Op::POP_JUMP_IF_FALSE, in(i + 1).target, i);
        return write_match(i + 2);
      case Op::ROT_TWO:
        if (is(i + 1, Op::POP_TOP) && is(i - 1, Op::POP_BLOCK) && has_placeholder(i + 2)) return i + 3;
        break;
      case Op::CALL_FINALLY:
        return write_call(i);
      case Op::BEGIN_FINALLY:
        return write_begin(i);
      case Op::END_FINALLY:
        return write_end(i);
      case Op::POP_FINALLY:
        return write_leaving(i);
      case Op::WITH_CLEANUP_START:
      case Op::WITH_EXCEPT_START:
        return write_with_handler(i);
      case Op::ROT_FOUR: {
        const bool pops = three_pops(i + 1) && is(i + 4, Op::ROT_FOUR) && is(i + 5, Op::POP_EXCEPT);
        if (!pops && !is(i + 1, Op::POP_EXCEPT) && !(is(i + 1, Op::POP_BLOCK) && is(i + 2, Op::POP_EXCEPT))) break;
        emit(Op::SWAP, 2, i);
        return i + 1;
      }
      case Op::POP_TOP:
        if (three_pops(i) && (is(i + 3, Op::POP_EXCEPT) || (is(i + 3, Op::ROT_FOUR) && is(i + 4, Op::POP_EXCEPT)))) {
          emit(Op::POP_TOP, 0, i);
          return i + 3;
        }
        break;
      case Op::POP_EXCEPT:
        cover_ = cover_of(frames_[at(state)].outer);
        break;
      default:
        break;
    }
    copy(i);
    return i + 1;
  }

  int32_t write_setup(int32_t i) {
    const int32_t guard = guard_of_setup_[at(i)];
    const Kind kind = guards_[at(guard)].kind;
    if (kind != Kind::kExcept && kind != Kind::kFinally) return i + 1;
    emit(Op::NOP, 0, i);
    out_.back().position = {};
    if (is(i + 1, Op::POP_BLOCK)) {
      cover_ = 2 * guard;
      emit(Op::SETUP_FINALLY, 0, i);
    }
    return i + 1;
  }

  // Behind a match: the exception's type, value and traceback go; the value may be stored.
  int32_t write_match(int32_t i) {
    if (!is(i, Op::POP_TOP) || !is(i + 2, Op::POP_TOP) || (!is(i + 1, Op::POP_TOP) && !is_store(in(i + 1).op))) {
      no_form("an except clause of an unknown form");
    }
    copy(i + 1);
    return i + 3;
  }

  bool has_placeholder(int32_t i) const {
    if (!is(i, Op::CALL_FINALLY) || in(i).target < 0) return false;
    const int32_t guard = guard_of_handler_[at(in(i).target)];
    return guard >= 0 && guards_[at(guard)].placeholder;
  }

  void write_unbinding(int32_t handler) {
    for (int32_t k = handler; k < handler + 3; ++k) copy(k);
  }

  int32_t write_call(int32_t i) {
    const int32_t guard = in(i).target < 0 ? -1 : guard_of_handler_[at(in(i).target)];
    if (guard < 0) no_form("a finally block that guards nothing");
    const Guard& g = guards_[at(guard)];
    if (g.kind == Kind::kName) {
      write_unbinding(g.handler);
    } else if (g.placeholder) {
      if (!is(i + 1, Op::POP_TOP)) no_form("an unknown end of a block");
      return i + 2;
    }
    return i + 1;
  }

  void write_exit_call(int32_t i, int32_t waiting, int32_t waiting_end) {
    emit(Op::LOAD_CONST, none(), i);
    emit(Op::DUP_TOP, 0, i);
    emit(Op::DUP_TOP, 0, i);
    emit(Op::CALL_FUNCTION, 3, i);
    for (int32_t k = waiting; k < waiting_end; ++k) copy(k);
    emit(Op::POP_TOP, 0, i);
  }

  int32_t write_begin(int32_t i) {
    const int32_t guard = guard_of_handler_[at(i + 1)];
    if (guard < 0) {
      int32_t end = i + 2;
      while (!is(end, Op::WITH_CLEANUP_FINISH)) {
        if (end > i + 7) no_form("an unknown end of a block");
        ++end;
      }
      write_exit_call(i, i + 2, end);
      return end + 2;
    }
    const Guard& g = guards_[at(guard)];
    if (g.kind == Kind::kExcept || g.kind == Kind::kAsyncFor) no_form("an unknown end of a block");
    if (g.kind == Kind::kName) {
      if (g.end < 0 || !is(g.end + 1, Op::POP_EXCEPT)) no_form("an unknown end of a handler");
      cover_ = cover_of(frames_[at(state_[at(i)])].outer);
      emit(Op::POP_EXCEPT, 0, i);
      write_unbinding(g.handler);
      emit_jump(Op::JUMP_ABSOLUTE, g.end + 2, i);
      return i + 1;
    }
    emit(Op::BEGIN_FINALLY, static_cast<uint32_t>(guard), i);
    if (g.kind == Kind::kWith) {
      int32_t end = g.handler + 1;
      while (!is(end, Op::WITH_CLEANUP_FINISH)) {
        if (end > g.handler + 6) no_form("an unknown end of a block");
        ++end;
      }
      write_exit_call(i, g.handler + 1, end);
    }
    if (g.end < 0) {
      emit(Op::END_FINALLY, 0, i);
    } else {
      emit_jump(Op::JUMP_ABSOLUTE, g.end + (g.placeholder ? 2 : 1), i);
    }
    return i + 1;
  }

  int32_t write_end(int32_t i) {
    const Guard& g = guards_[at(frames_[at(state_[at(i)])].guard)];
    emit(Op::RERAISE, 0, i);
    if (g.kind == Kind::kName && is(i + 1, Op::POP_EXCEPT)) return i + 2;
    return i + (g.placeholder ? 2 : 1);
  }

  // 3.8: leaving a finally block by return, break or continue.
  int32_t write_leaving(int32_t i) {
    const Frame& frame = frames_[at(state_[at(i)])];
    const bool value = in(i).arg != 0;
    if (value) emit(Op::SWAP, 2, i);
    emit(Op::POP_TOP, 0, i);
    if (value) emit(Op::SWAP, 2, i);
    cover_ = cover_of(frame.outer);
    emit(Op::POP_EXCEPT, 0, i);
    if (!guards_[at(frame.guard)].placeholder) no_form("a finally block left in an unknown way");
    if (value && !is(i + 1, Op::ROT_TWO)) no_form("a finally block left in an unknown way");
    return i + (value ? 3 : 2);
  }

  // The handler of a with statement, from the call on to where the exception is swallowed.
  int32_t write_with_handler(int32_t i) {
    const int32_t state = state_[at(i)];
    const int32_t outer = cover_of(frames_[at(state)].outer);
    emit(Op::WITH_EXCEPT_START, 0, i);
    int32_t k = i + 1;
    while (k < n_ && k < i + 6 && in(k).op != Op::WITH_CLEANUP_FINISH && in(k).op != Op::POP_JUMP_IF_TRUE) copy(k++);
    int32_t behind = k;
    const auto jump = static_cast<int32_t>(out_.size());
    emit(Op::POP_JUMP_IF_TRUE, 0, i);
    emit(Op::RERAISE, 0, i);
    if (is(k, Op::WITH_CLEANUP_FINISH) && is(k + 1, Op::END_FINALLY)) {
      behind = k + 2;
    } else if (is(k, Op::POP_JUMP_IF_TRUE) && in(k).target == k + 2 && is(k + 1, Op::RERAISE) && three_pops(k + 2) &&
               is(k + 5, Op::POP_EXCEPT) && is(k + 6, Op::POP_TOP)) {
      behind = k + 7;
    } else {
      no_form("an unknown end of a with statement");
    }
    new_targets_.emplace_back(jump, static_cast<int32_t>(out_.size()));
    emit(Op::POP_TOP, 0, i);
    cover_ = outer;
    emit(Op::POP_EXCEPT, 0, i);
    emit(Op::POP_TOP, 0, i);
    emit(Op::POP_TOP, 0, i);
    return behind;
  }

  void write_cleanups() {
    for (const auto& [jump, target] : new_targets_) out_[at(jump)].target = target;
    for (size_t g = 0; g < guards_.size(); ++g) {
      Guard& guard = guards_[g];
      if (guard.kind == Kind::kName || guard.kind == Kind::kAsyncFor || guard.new_handler < 0) continue;
      guard.cleanup = static_cast<int32_t>(out_.size());
      cover_ = cover_of(frames_[at(state_[at(guard.handler)])].outer);
      for (Op op : {Op::COPY, Op::POP_EXCEPT, Op::RERAISE}) {
        Instruction& made = out_.emplace_back();
        made.op = op;
        made.arg = op == Op::COPY ? 3 : 1;
        covers_.push_back(cover_);
      }
    }
  }

  void write_rows() {
    code_.rows.clear();
    for (size_t i = 0; i < covers_.size(); ++i) {
      if (covers_[i] < 0) continue;
      const auto index = static_cast<int32_t>(i);
      if (i > 0 && covers_[i - 1] == covers_[i]) {
        code_.rows.back().end = index + 1;
        continue;
      }
      const Guard& guard = guards_[at(covers_[i] / 2)];
      const bool cleanup = covers_[i] % 2 != 0;
      const bool lasti = cleanup || guard.kind == Kind::kWith || guard.kind == Kind::kName;
      code_.rows.push_back({index, index + 1, cleanup ? guard.cleanup : guard.new_handler, kUnseen, lasti});
    }
    find_depths(code_.version, code_.instructions, code_.rows);
  }

 public:
  // Depths before each instruction; rows whose depth is not known yet keep what lies on the stack where they are entered first.
  static std::vector<int> find_depths(int version, const std::vector<Instruction>& instructions, std::vector<ExceptionRow>& rows) {
    const bytecode::Tables& tables = *bytecode::tables(version);
    const auto n = static_cast<int32_t>(instructions.size());
    std::vector<int> depths(at(n), -1);
    std::vector<int32_t> row_of(at(n), -1), work;
    for (size_t r = 0; r < rows.size(); ++r) {
      for (int32_t i = rows[r].start; i < rows[r].end; ++i) row_of[at(i)] = static_cast<int32_t>(r);
    }
    std::vector<int> base(at(n), kUnseen);  // by handler
    const auto reach = [&](int32_t i, int depth) {
      if (i >= n) no_form("code that runs off the end");
      if (depths[at(i)] >= 0) return;
      depths[at(i)] = std::max(0, depth);
      work.push_back(i);
    };
    reach(0, 0);
    while (!work.empty()) {
      const int32_t i = work.back();
      work.pop_back();
      const Instruction& instruction = instructions[at(i)];
      const int depth = depths[at(i)];
      if (const int32_t r = row_of[at(i)]; r >= 0) {
        const ExceptionRow& row = rows[at(r)];
        if (base[at(row.target)] == kUnseen) {
          const bool with = instructions[at(row.target) + 1].op == Op::WITH_EXCEPT_START;
          base[at(row.target)] = row.depth != kUnseen ? row.depth : depth - (with ? 1 : 0);
          reach(row.target, base[at(row.target)] + (row.lasti ? 2 : 1));
        }
      }
      if (instruction.target >= 0) reach(instruction.target, depth + effect(tables, instruction, true));
      if (bytecode::falls_through(instruction.op) && instruction.op != Op::END_FINALLY) {
        reach(i + 1, depth + effect(tables, instruction, false));
      }
    }
    for (ExceptionRow& row : rows) {
      if (row.depth == kUnseen) row.depth = std::max(0, base[at(row.target)]);
    }
    return depths;
  }

 private:
  static int effect(const bytecode::Tables& tables, const Instruction& instruction, bool jump) {
    switch (instruction.op) {
      case Op::PUSH_EXC_INFO:
      case Op::WITH_EXCEPT_START:
      case Op::BEFORE_WITH:
      case Op::BEFORE_ASYNC_WITH:
      case Op::COPY:
        return 1;
      case Op::POP_EXCEPT:
        return -1;
      case Op::END_ASYNC_FOR:
        return -2;
      case Op::CHECK_EXC_MATCH:
      case Op::SWAP:
      case Op::SETUP_FINALLY:
      case Op::BEGIN_FINALLY:
        return 0;
      default:
        return bytecode::stack_effect(tables, instruction.op, instruction.arg, jump);
    }
  }

  Code& code_;
  int32_t n_;
  std::vector<Guard> guards_;
  std::vector<Frame> frames_;
  std::vector<int32_t> guard_of_setup_, guard_of_handler_, handler_of_setup_, state_, work_;
  std::vector<uint8_t> clause_, exit_call_;  // by instruction: begins an except clause; is part of the call that ends a with statement
  std::vector<Instruction> out_;
  std::vector<int32_t> covers_;
  std::vector<std::pair<int32_t, int32_t>> new_targets_;
  int32_t cover_ = kNoCover;
};

}  // namespace

void raise_old_handlers(Code& code) {
  if (code.set_ups.empty()) return;
  Raiser(code).run();
}

std::vector<int> depths_of(const Code& code) {
  if (code.version >= 311 || code.rows.empty()) return bytecode::stack_depths(code);
  std::vector<ExceptionRow> rows = code.rows;
  return Raiser::find_depths(code.version, code.instructions, rows);
}

}  // namespace pellucid::decompile
