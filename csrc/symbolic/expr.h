// Expr: a node of an expression, immutable, unique in its arena: equal expressions are the same pointer. What is known of a node
// without any guard (its hint, the range that its symbols were born with) is computed once, when it is made. Knows no facts that
// were learned later: those are facts.h.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include "symbolic/range.h"

namespace pellucid::symbolic {

enum class Type : uint8_t { kInt, kFloat, kBool };

enum class Kind : uint8_t {
#define KIND(name, text) k##name,
#include "symbolic/expr_kinds.def"
#undef KIND
};

const char* kind_name(Kind kind);
const char* kind_text(Kind kind);

// The owner of an arena (a ShapeEnv), which lives as long as anyone holds it or one of its expressions. Counting is safe between
// threads, all else needs one thread at a time.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  virtual ~RefCounted() = default;

 private:
  mutable std::atomic<uint64_t> count_{0};
};

template <class T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* object) : object_(object) {
    if (object_ != nullptr) object_->retain();
  }
  Handle(const Handle& other) : Handle(other.object_) {}
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_ != nullptr) object_->release();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

class Arena;

struct Node;
using Expr = const Node*;  // borrowed: whoever keeps one beyond a call holds the arena's owner (ExprRef)

// A number, or why there is none.
struct Value {
  enum class State : uint8_t { kUnknown, kKnown, kUndefined };  // undefined: a division by 0, or past 128 bits
  union {
    Int integer = 0;  // ints and booleans
    double real;
  };
  State state = State::kUnknown;

  static Value of(Int value) {
    Value result;
    result.integer = value;
    result.state = State::kKnown;
    return result;
  }
  static Value of_real(double value) {
    Value result;
    result.real = value;
    result.state = State::kKnown;
    return result;
  }
  static Value undefined() {
    Value result;
    result.state = State::kUndefined;
    return result;
  }
  bool known() const { return state == State::kKnown; }
};

struct Node {
  uint64_t hash;
  uint64_t symbols;  // bit (index % 64) of every symbol in it
  Arena* arena;
  uint32_t id;  // in the order of making
  uint32_t count;
  Kind kind;
  Type type;
  bool unbacked;    // has a symbol without a hint
  uint8_t digits;   // of RoundDigits, plus 128
  uint32_t weight;  // nodes below it, as a tree, at most 2^31: how much work it is
  Int value;        // of Const, Truth; the bits of Real; the constant of a Sum; a Symbol's index
  Value hint;
  Range range;  // of ints and booleans, from what symbols were born with; always true

  const Expr* args() const {
    return reinterpret_cast<const Expr*>(reinterpret_cast<const char*>(this + 1) + (is_sum() ? count * sizeof(Int) : 0));
  }
  const Int* coefficients() const { return reinterpret_cast<const Int*>(this + 1); }  // of a Sum
  Expr arg(uint32_t i) const { return args()[i]; }
  bool is(Kind other) const { return kind == other; }
  bool is_sum() const { return kind == Kind::kSum; }
  bool is_const() const { return kind == Kind::kConst; }
  bool is_const(Int number) const { return kind == Kind::kConst && value == number; }
  bool is_truth() const { return kind == Kind::kTruth; }
  bool is_literal() const { return kind == Kind::kConst || kind == Kind::kTruth || kind == Kind::kReal; }
  double real() const { return std::bit_cast<double>(static_cast<int64_t>(value)); }  // of Real
};
static_assert(sizeof(Node) % alignof(Int) == 0);

// A node or number as one term of a sum.
struct Term {
  Expr factor;
  Int coefficient;
};

}  // namespace pellucid::symbolic
