// The format: variable-length numbers, and texts behind their length. Knows neither Python nor files.
#include "symbolic/saved.h"

#include <bit>

#include "symbolic/translate.h"

namespace pellucid::symbolic {

namespace {

constexpr std::string_view kMagic = "pellucid ShapeEnv 1\n";

class Writer {
 public:
  explicit Writer(std::string* out) : out_(*out) {}
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(0x80 | (value & 0x7f)));
    out_.push_back(static_cast<char>(value));
  }
  void integer(Int value) {
    const auto bits = static_cast<UnsignedInt>(value);
    number(static_cast<uint64_t>(bits));
    number(static_cast<uint64_t>(bits >> 64));
  }
  void text(std::string_view value) {
    number(value.size());
    out_.append(value);
  }
  void range(const Range& value) {
    integer(value.lo);
    integer(value.hi);
  }
  void value(const Value& value, Type type) {
    number(static_cast<uint64_t>(value.state));
    if (!value.known()) return;
    if (type == Type::kFloat) {
      number(std::bit_cast<uint64_t>(value.real));
    } else {
      integer(value.integer);
    }
  }
  void location(const Location& location) {
    text(location.file);
    number(static_cast<uint64_t>(location.line));
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  [[noreturn]] static void damaged() { throw Error(ErrorKind::kValue, "these bytes are not a saved ShapeEnv, or damaged"); }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) damaged();
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    damaged();
  }
  uint64_t below(uint64_t limit) {
    const uint64_t value = number();
    if (value >= limit) damaged();
    return value;
  }
  Int integer() {
    const uint64_t low = number();
    const uint64_t high = number();
    return static_cast<Int>(static_cast<UnsignedInt>(high) << 64 | low);
  }
  std::string text() {
    const uint64_t size = number();
    if (size > bytes_.size() - at_) damaged();
    at_ += size;
    return std::string(bytes_.substr(at_ - size, size));
  }
  Range range() {
    const Int lo = integer();
    return {lo, integer()};
  }
  Value value(Type type) {
    switch (static_cast<Value::State>(below(3))) {
      case Value::State::kUnknown:
        return {};
      case Value::State::kUndefined:
        return Value::undefined();
      case Value::State::kKnown:
        break;
    }
    return type == Type::kFloat ? Value::of_real(std::bit_cast<double>(number())) : Value::of(integer());
  }
  Location location() {
    std::string file = text();
    return {std::move(file), static_cast<int>(below(uint64_t{1} << 31))};
  }
  bool at_end() const { return at_ == bytes_.size(); }
  // How many items of at least one byte each can follow.
  uint64_t count() { return below(bytes_.size() - at_ + 1); }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

uint64_t optional_flag(const std::optional<bool>& flag) { return flag ? (*flag ? 2 : 1) : 0; }

void save_node(Writer& out, const Arena& arena, Expr expr) {
  out.number(static_cast<uint64_t>(expr->kind));
  out.number(static_cast<uint64_t>(expr->type));
  if (expr->is(Kind::kSymbol)) {
    out.text(arena.symbol_name(expr));
    out.value(expr->hint, expr->type);
    out.range(expr->range);
    return;
  }
  out.integer(expr->value);
  out.number(expr->digits);
  out.number(expr->count);
  for (uint32_t i = 0; i < expr->count; ++i) out.number(expr->arg(i)->id);
  for (uint32_t i = 0; expr->is_sum() && i < expr->count; ++i) out.integer(expr->coefficients()[i]);
}

constexpr uint64_t kKinds = 0
#define KIND(name, text) +1
#include "symbolic/expr_kinds.def"
#undef KIND
    ;

void load_node(Reader& in, Arena& arena) {
  const auto kind = static_cast<Kind>(in.below(kKinds));
  const auto type = static_cast<Type>(in.below(3));
  const size_t id = arena.size();
  if (kind == Kind::kSymbol) {
    std::string name = in.text();
    const Value hint = in.value(type);
    arena.make_symbol(std::move(name), type, hint, in.range());
  } else {
    const Int value = in.integer();
    const auto digits = static_cast<int>(in.below(256));
    std::vector<Expr> args(in.count());
    for (Expr& arg : args) arg = arena.node(in.below(id));
    std::vector<Int> coefficients(kind == Kind::kSum ? args.size() : 0);
    for (Int& coefficient : coefficients) coefficient = in.integer();
    arena.intern(kind, type, args.data(), coefficients.empty() ? nullptr : coefficients.data(), static_cast<uint32_t>(args.size()), value,
                 digits - 128);
  }
  if (arena.size() != id + 1) Reader::damaged();  // an expression comes once
}

void save_expr(Writer& out, Expr expr) { out.number(expr == nullptr ? 0 : uint64_t{expr->id} + 1); }

Expr load_expr(Reader& in, const Arena& arena) {
  const uint64_t id = in.below(arena.size() + 1);
  return id == 0 ? nullptr : arena.node(id - 1);
}

}  // namespace

std::string save(ShapeEnv& env) {
  std::string bytes(kMagic);
  Writer out(&bytes);
  out.number(env.options().specialize_zero_one ? 1 : 0);
  out.number(env.options().duck_shapes ? 1 : 0);
  const size_t first = ShapeEnv(env.options()).arena().size();  // the small numbers, which are in every arena
  const Arena& arena = env.arena();
  out.number(arena.size() - first);
  for (size_t id = first; id < arena.size(); ++id) save_node(out, arena, arena.node(id));
  out.number(env.inputs().size());
  for (const Input& input : env.inputs()) {
    out.text(input.source);
    save_expr(out, input.expr);
    out.number(static_cast<uint64_t>(input.type));
    out.number(input.size ? 1 : 0);
    out.number(static_cast<uint64_t>(input.spec.policy));
    out.number(static_cast<uint64_t>(input.spec.constraint.kind));
    out.range(input.spec.constraint.range);
    out.number(optional_flag(input.spec.specialize_zero_one));
    out.value(input.hint, input.type);
    out.location(input.location);
  }
  out.number(env.log().size());
  for (const Event& event : env.log()) {
    out.number(static_cast<uint64_t>(event.kind));
    out.number(static_cast<uint64_t>(event.outcome));
    out.number(event.flag ? 1 : 0);
    save_expr(out, event.expr);
    out.number(static_cast<uint64_t>(event.type));
    out.range(event.range);
    out.number(event.input);
    out.number(event.second_input);
    out.text(event.text);
    out.location(event.location);
    out.number(event.nodes);
  }
  return bytes;
}

// The saved environment as it was recorded, good for nothing but replaying it.
class Recorded {
 public:
  explicit Recorded(Reader& in, ShapeEnv::Options options) : env_(new ShapeEnv(options)) {
    Arena& arena = env_->arena_;
    for (uint64_t left = in.count(); left > 0; --left) load_node(in, arena);
    for (uint64_t left = in.count(); left > 0; --left) {
      Input input;
      input.source = in.text();
      input.expr = load_expr(in, arena);
      input.type = static_cast<Type>(in.below(3));
      input.size = in.below(2) != 0;
      input.spec.policy = static_cast<DimPolicy>(in.below(5));
      input.spec.constraint.kind = static_cast<Constraint::Kind>(in.below(3));
      input.spec.constraint.range = in.range();
      const uint64_t flag = in.below(3);
      if (flag != 0) input.spec.specialize_zero_one = flag == 2;
      input.hint = in.value(input.type);
      input.location = in.location();
      env_->inputs_.push_back(std::move(input));
    }
    for (uint64_t left = in.count(); left > 0; --left) {
      Event event;
      event.kind = static_cast<EventKind>(in.below(static_cast<uint64_t>(EventKind::kReplacement) + 1));
      event.outcome = static_cast<Outcome>(in.below(static_cast<uint64_t>(Outcome::kFailed) + 1));
      event.flag = in.below(2) != 0;
      event.expr = load_expr(in, arena);
      event.type = static_cast<Type>(in.below(3));
      event.range = in.range();
      event.input = static_cast<uint32_t>(in.number());
      event.second_input = static_cast<uint32_t>(in.number());
      event.text = in.text();
      event.location = in.location();
      event.nodes = static_cast<uint32_t>(in.below(arena.size() + 1));
      check(event);
      env_->log_.push_back(std::move(event));
    }
    if (!in.at_end()) Reader::damaged();
  }
  const ShapeEnv& env() const { return *env_; }
  const Arena& arena() const { return env_->arena_; }

 private:
  void check(const Event& event) const {
    const size_t inputs = env_->inputs_.size();
    const bool names_input = event.kind == EventKind::kInput || event.kind == EventKind::kEqualInputs;
    if (names_input && (event.input >= inputs || event.second_input >= inputs)) Reader::damaged();
    switch (event.kind) {
      case EventKind::kInput:
      case EventKind::kUnbacked:
      case EventKind::kEqualInputs:
      case EventKind::kSuppress:
      case EventKind::kUnsuppress:
      case EventKind::kFreeze:
      case EventKind::kReplacement:
        return;
      default:
        if (event.expr == nullptr) Reader::damaged();
    }
  }

  Handle<ShapeEnv> env_;
};

Handle<ShapeEnv> load(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) Reader::damaged();
  Reader in(bytes.substr(kMagic.size()));
  ShapeEnv::Options options;
  options.specialize_zero_one = in.below(2) != 0;
  options.duck_shapes = in.below(2) != 0;
  const Recorded recorded(in, options);
  Handle<ShapeEnv> env(new ShapeEnv(options));
  env->replay(recorded.env());
  // What was made after the last question too, so that every expression has the place it had.
  Translator(recorded.arena(), env->arena()).advance(recorded.arena().size());
  return env;
}

}  // namespace pellucid::symbolic
