// Making nodes unique, and what is known of a node when it is made: its symbols, hint and range.
#include "symbolic/arena.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "symbolic/evaluate.h"
#include "symbolic/range_rules.h"

namespace pellucid::symbolic {

namespace {

constexpr size_t kBlock = 1 << 15;

uint64_t stir(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0xff51afd7ed558ccdull;
  return hash ^ hash >> 32;
}

uint64_t stir(uint64_t hash, Int value) {
  return stir(stir(hash, static_cast<uint64_t>(value)), static_cast<uint64_t>(static_cast<UnsignedInt>(value) >> 64));
}

}  // namespace

const char* kind_name(Kind kind) {
  static const char* const names[] = {
#define KIND(name, text) #name,
#include "symbolic/expr_kinds.def"
#undef KIND
  };
  return names[static_cast<size_t>(kind)];
}

const char* kind_text(Kind kind) {
  static const char* const texts[] = {
#define KIND(name, text) text,
#include "symbolic/expr_kinds.def"
#undef KIND
  };
  return texts[static_cast<size_t>(kind)];
}

Arena::Arena(RefCounted& owner) : owner_(owner), table_(1 << 11), memo_(1 << 9), memo_mask_(memo_.size() - 1) {
  for (size_t i = 0; i < std::size(small_); ++i) {
    small_[i] = intern(Kind::kConst, Type::kInt, nullptr, nullptr, 0, kSmallest + static_cast<Int>(i));
  }
  for (int i = 0; i < 2; ++i) truth_[i] = intern(Kind::kTruth, Type::kBool, nullptr, nullptr, 0, i);
}

uint64_t Arena::hash_of(Kind kind, Type type, const Expr* args, const Int* coefficients, uint32_t count, Int value, int digits) {
  uint64_t hash = stir(static_cast<uint64_t>(kind) << 16 | static_cast<uint64_t>(type) << 8 | static_cast<uint64_t>(digits + 128), value);
  for (uint32_t i = 0; i < count; ++i) {
    hash = stir(hash, static_cast<uint64_t>(args[i]->id));
    if (coefficients != nullptr) hash = stir(hash, coefficients[i]);
  }
  return hash;
}

bool Arena::same(const Node& node, Kind kind, Type type, const Expr* args, const Int* coefficients, uint32_t count, Int value, int digits) {
  return node.kind == kind && node.type == type && node.count == count && node.value == value && node.digits == digits + 128 &&
         (count == 0 || std::memcmp(node.args(), args, count * sizeof(Expr)) == 0) &&
         (coefficients == nullptr || std::memcmp(node.coefficients(), coefficients, count * sizeof(Int)) == 0);
}

Expr Arena::find(Kind kind, Type type, const Expr* args, const Int* coefficients, uint32_t count, Int value) const {
  const uint64_t hash = hash_of(kind, type, args, coefficients, count, value, 0);
  for (size_t i = hash & (table_.size() - 1); table_[i] != nullptr; i = (i + 1) & (table_.size() - 1)) {
    if (table_[i]->hash == hash && same(*table_[i], kind, type, args, coefficients, count, value, 0)) return table_[i];
  }
  return nullptr;
}

Expr Arena::intern(Kind kind, Type type, const Expr* args, const Int* coefficients, uint32_t count, Int value, int digits) {
  const uint64_t hash = hash_of(kind, type, args, coefficients, count, value, digits);
  size_t i = hash & (table_.size() - 1);
  for (; table_[i] != nullptr; i = (i + 1) & (table_.size() - 1)) {
    if (table_[i]->hash == hash && same(*table_[i], kind, type, args, coefficients, count, value, digits)) return table_[i];
  }
  CHECK(nodes_.size() < UINT32_MAX) << "too many expressions";
  const size_t tail = count * (sizeof(Expr) + (coefficients != nullptr ? sizeof(Int) : 0));
  Node* node = new (allocate(sizeof(Node) + tail)) Node();
  node->hash = hash;
  node->arena = this;
  node->id = static_cast<uint32_t>(nodes_.size());
  node->count = count;
  node->kind = kind;
  node->type = type;
  node->digits = static_cast<uint8_t>(digits + 128);
  node->value = value;
  if (coefficients != nullptr) std::memcpy(const_cast<Int*>(node->coefficients()), coefficients, count * sizeof(Int));
  if (count > 0) std::memcpy(const_cast<Expr*>(node->args()), args, count * sizeof(Expr));
  derive(*node);
  nodes_.push_back(node);
  table_[i] = node;
  work_ += 1 + count;
  if (nodes_.size() * 2 > table_.size()) grow_table();
  return node;
}

void Arena::derive(Node& node) const {
  uint64_t weight = 1;
  for (uint32_t i = 0; i < node.count; ++i) {
    node.symbols |= node.arg(i)->symbols;
    node.unbacked |= node.arg(i)->unbacked;
    weight += node.arg(i)->weight;
  }
  node.weight = static_cast<uint32_t>(std::min<uint64_t>(weight, 1u << 31));
  node.range = range_by_rule(node, [](Expr arg) { return arg->range; });
  if (node.is(Kind::kSymbol)) return;
  if (node.is_sum()) {
    Int sum = node.value;
    for (uint32_t i = 0; i < node.count; ++i) {
      const Value& hint = node.arg(i)->hint;
      Int product;
      if (!hint.known()) {
        node.hint = hint;
        return;
      }
      if (!checked_mul(hint.integer, node.coefficients()[i], &product) || !checked_add(sum, product, &sum)) {
        node.hint = Value::undefined();
        return;
      }
    }
    node.hint = Value::of(sum);
    return;
  }
  Value local[8];
  std::vector<Value> more;
  Value* values = local;
  if (node.count > std::size(local)) {
    more.resize(node.count);
    values = more.data();
  }
  for (uint32_t i = 0; i < node.count; ++i) values[i] = node.arg(i)->hint;
  node.hint = apply(node.kind, node.type, values, node.count, node.value, node.digits - 128);
}

Expr Arena::make_symbol(std::string name, Type type, Value hint, Range born) {
  const Int index = static_cast<Int>(names_.size());
  const Expr expr = intern(Kind::kSymbol, type, nullptr, nullptr, 0, index);
  Node& node = const_cast<Node&>(*expr);  // nobody has seen it yet
  node.symbols = uint64_t{1} << (static_cast<uint64_t>(index) % 64);
  node.unbacked = !hint.known();
  node.hint = hint;
  node.range = type == Type::kBool ? kBoolRange : born;
  names_.push_back(std::move(name));
  symbols_.push_back(expr);
  return expr;
}

void* Arena::allocate(size_t size) {
  size = (size + alignof(Node) - 1) & ~(alignof(Node) - 1);
  if (size > left_) {
    const size_t block = std::max(size, kBlock);
    blocks_.emplace_back(new std::byte[block]);  // aligned for any type, so for Node
    free_ = blocks_.back().get();
    left_ = block;
  }
  void* result = free_;
  free_ += size;
  left_ -= size;
  return result;
}

void Arena::grow_table() {
  std::vector<Expr> larger(table_.size() * 2);
  for (const Expr node : table_) {
    if (node == nullptr) continue;
    size_t i = node->hash & (larger.size() - 1);
    while (larger[i] != nullptr) i = (i + 1) & (larger.size() - 1);
    larger[i] = node;
  }
  table_.swap(larger);
}

void Arena::remember(Op op, Expr a, Expr b, Expr result) {
  if ((memo_used_ + 1) * 2 > memo_.size()) {
    std::vector<Memo> larger(memo_.size() * 2);
    memo_mask_ = larger.size() - 1;
    for (const Memo& memo : memo_) {
      if (memo.op == Op::kNone) continue;
      size_t i = mix(memo.key, memo.op) & memo_mask_;
      while (larger[i].op != Op::kNone) i = (i + 1) & memo_mask_;
      larger[i] = memo;
    }
    memo_.swap(larger);
  }
  const uint64_t key = pair_key(a, b);
  size_t i = mix(key, op) & memo_mask_;
  while (memo_[i].op != Op::kNone) {
    if (memo_[i].key == key && memo_[i].op == op) return;
    i = (i + 1) & memo_mask_;
  }
  memo_[i] = {key, result->id, op};
  ++memo_used_;
}

}  // namespace pellucid::symbolic
