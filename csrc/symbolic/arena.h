// Arena: where expressions live, each once. Nodes are never moved or freed before the arena; its owner lives as long as anyone holds
// an expression. Beside the nodes it remembers what operations gave, so that a repeated one is a look-up without allocation.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "symbolic/expr.h"

namespace pellucid::symbolic {

// Operations as they are asked for, for the table of remembered results. Their results may be of any kind.
enum class Op : uint8_t {
  kNone,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kMod,
  kCeilDiv,
  kPow,
  kMin,
  kMax,
  kShiftLeft,
  kShiftRight,
  kBitAnd,
  kBitOr,
  kBitXor,
  kEq,
  kLe,
  kLt,
  kAnd,
  kOr,
  kNot,
  kNeg,
  kAbs,
};

class Arena {
 public:
  explicit Arena(RefCounted& owner);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  RefCounted& owner() const { return owner_; }

  // The node of this kind with these arguments, made if there is none. `coefficients` only for sums; terms and factors come sorted by
  // id. No simplification: that is the Builder's.
  Expr intern(Kind kind, Type type, const Expr* args, const Int* coefficients, uint32_t count, Int value, int digits = 0);
  // The same, null if there is none.
  Expr find(Kind kind, Type type, const Expr* args, const Int* coefficients, uint32_t count, Int value) const;

  Expr constant(Int value) {
    if (value >= kSmallest && value < kSmallest + static_cast<Int>(std::size(small_)))
      return small_[static_cast<size_t>(value - kSmallest)];
    return intern(Kind::kConst, Type::kInt, nullptr, nullptr, 0, value);
  }
  Expr truth(bool value) const { return truth_[value ? 1 : 0]; }
  Expr real(double value) { return intern(Kind::kReal, Type::kFloat, nullptr, nullptr, 0, std::bit_cast<int64_t>(value)); }

  // A new symbol. Without a hint (an unknown value) it is unbacked.
  Expr make_symbol(std::string name, Type type, Value hint, Range born);
  const std::string& symbol_name(Expr symbol) const { return names_[static_cast<size_t>(symbol->value)]; }
  Expr symbol(size_t index) const { return symbols_[index]; }
  size_t symbol_count() const { return symbols_.size(); }

  // What an operation gave before, or null.
  Expr recall(Op op, Expr a, Expr b) const {
    const uint64_t key = pair_key(a, b);
    for (size_t i = mix(key, op) & memo_mask_;; i = (i + 1) & memo_mask_) {
      const Memo& memo = memo_[i];
      if (memo.op == Op::kNone) return nullptr;
      if (memo.key == key && memo.op == op) return nodes_[memo.result];
    }
  }
  void remember(Op op, Expr a, Expr b, Expr result);

  size_t size() const { return nodes_.size(); }
  Expr node(size_t id) const { return nodes_[id]; }
  // Elementary steps so far (terms visited, rules tried, facts looked at): what tests of linear cost count.
  uint64_t work() const { return work_; }
  void count_work(uint64_t steps) { work_ += steps; }

 private:
  static constexpr Int kSmallest = -64;

  struct Memo {
    uint64_t key = 0;
    uint32_t result = 0;
    Op op = Op::kNone;
  };

  static uint64_t pair_key(Expr a, Expr b) { return static_cast<uint64_t>(a->id) << 32 | b->id; }
  static uint64_t mix(uint64_t key, Op op) {
    uint64_t hash = (key ^ static_cast<uint64_t>(op) << 57) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
  }
  static uint64_t hash_of(Kind kind, Type type, const Expr* args, const Int* coefficients, uint32_t count, Int value, int digits);
  static bool same(const Node& node, Kind kind, Type type, const Expr* args, const Int* coefficients, uint32_t count, Int value,
                   int digits);
  void* allocate(size_t size);
  void derive(Node& node) const;
  void grow_table();

  RefCounted& owner_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* free_ = nullptr;
  size_t left_ = 0;
  std::vector<Expr> nodes_;  // by id
  std::vector<Expr> table_;  // open addressing by hash
  std::vector<Memo> memo_;
  size_t memo_mask_ = 0;
  size_t memo_used_ = 0;
  std::vector<std::string> names_;
  std::vector<Expr> symbols_;
  Expr small_[64 + 512];
  Expr truth_[2];
  uint64_t work_ = 0;
};

}  // namespace pellucid::symbolic
