// ShapeEnv: the symbols of one capture with all that is known of them, and the questions that may be asked of it. What can't be proven
// is answered by the hints, at the price of a guard; what only the data knows is an error, or is checked at run time. Knows neither
// Python nor torch: a source is a text, a location a file and a line. One thread at a time.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbolic/facts.h"
#include "symbolic/location.h"
#include "symbolic/log.h"

namespace pellucid::symbolic {

enum class DimPolicy : uint8_t {
  kDuck,           // a symbol; equal hints share one
  kDynamic,        // a symbol of its own
  kStatic,         // its value
  kObliviousSize,  // a symbol of its own that may be 0 or 1, though size-oblivious questions are answered as if it were not
  kUnbacked,       // a symbol that never tells its hint
};

// What the user demands of a dimension.
struct Constraint {
  enum class Kind : uint8_t {
    kNone,
    kRelaxed,  // it must not become one value
    kStrict,   // every value in the range must do
  };
  Kind kind = Kind::kNone;
  Range range;
};

struct DimSpec {
  DimPolicy policy = DimPolicy::kDuck;
  Constraint constraint;
  std::optional<bool> specialize_zero_one;  // as the ShapeEnv's if not said
};

struct Input {  // what a guard program reads
  std::string source;
  Expr expr;  // a symbol, or its value
  Type type = Type::kInt;
  bool size = false;
  DimSpec spec;
  Value hint;
  Location location;
};

struct Guard {
  Expr condition;
  Location location;
  bool declared = false;  // by the user as a constraint, not asked by the program
};

struct RuntimeAssert {
  Expr condition;
  std::string message;
  Location location;
  Expr symbol;  // the newest unbacked symbol in it: checked as soon as that is known
};

class ShapeEnv final : public RefCounted {
 public:
  struct Options {
    bool specialize_zero_one = true;
    bool duck_shapes = true;
  };

  explicit ShapeEnv(Options options) : options_(options), arena_(*this), build_(arena_) { facts_.emplace(arena_); }
  ShapeEnv() : ShapeEnv(Options{}) {}

  static ShapeEnv& of(Expr expr) { return static_cast<ShapeEnv&>(expr->arena->owner()); }

  const Options& options() const { return options_; }
  Builder& build() { return build_; }
  Arena& arena() { return arena_; }
  Facts& facts() { return *facts_; }

  // Symbols (shape_env_symbols.cpp).
  Expr create_size(int64_t hint, const std::string& source, const DimSpec& spec, Site site);
  Expr create_int(int64_t hint, const std::string& source, const Constraint& constraint, Site site);
  Expr create_float(double hint, const std::string& source, Site site);
  Expr create_unbacked_int(Site site, const std::string& source = {});
  Expr create_unbacked_float(Site site);
  Expr create_unbacked_bool(Site site);
  void declare_equal(const std::string& source, const std::string& other, Site site);
  void constrain_range(Expr integer, const Range& range, Site site);
  void use_as_size(Expr integer, Site site);
  bool is_unbacked(Expr symbol) const { return symbol->is(Kind::kSymbol) && symbol->unbacked; }

  // Questions (shape_env_questions.cpp).
  bool evaluate(Expr condition, Site site) {
    if (condition->arena == &arena_ && condition->id < answers_.size() && answers_[condition->id] != 0) return answers_[condition->id] == 1;
    return evaluate_new(condition, site);
  }
  int64_t evaluate_int(Expr integer, Site site);
  double evaluate_float(Expr real, Site site);
  std::optional<bool> statically_known(Expr condition);
  bool guard_or(Expr condition, bool fallback, Site site);
  bool evaluate_size_oblivious(Expr condition, Site site);
  // States a fact. False: it does not hold, and the caller must raise. Of symbols without hints it is checked at run time.
  bool expect_true(Expr condition, const std::string& message, Site site);
  // The value at the hints, without a guard; unknown with unbacked symbols.
  static std::optional<int64_t> hint_int(Expr integer);
  static std::optional<double> hint_float(Expr real);
  static std::optional<bool> hint_bool(Expr condition);

  Expr simplify(Expr expr) { return facts_->simplify(expr); }
  Range range(Expr integer) { return facts_->range(facts_->simplify(integer)); }

  void suppress_guards();
  void unsuppress_guards();
  bool suppressed() const { return suppressed_ > 0; }
  void freeze(bool new_guards_are_errors);
  bool frozen() const { return frozen_; }

  const std::vector<Input>& inputs() const { return inputs_; }
  // The inputs, by place, that are this symbol.
  std::vector<uint32_t> inputs_of(Expr symbol) const;
  const std::vector<Guard>& guards() const { return guards_; }
  const std::vector<RuntimeAssert>& runtime_asserts() const { return asserts_; }
  const std::vector<Event>& log() const { return log_; }
  const Location& created_at(Expr symbol) const { return created_at_.at(symbol); }
  // Where the symbol became one value, if it did.
  const Location* specialized_at(Expr symbol) const;

  // Repeats what was asked of another ShapeEnv, in order, on this one, of which nothing was asked yet.
  void replay(const ShapeEnv& other);

 private:
  friend class Recorded;  // saved.cpp
  bool evaluate_new(Expr condition, Site site);
  void settle(Expr condition, bool answer);
  Event& record(EventKind kind, Expr expr, Site site);
  void record_replacements(const Location& location);
  Outcome add_guard(Expr guard, const Location& location);
  void forget_contradiction();
  bool defer(Expr condition, const std::string& message, const Location& location);
  [[noreturn]] void data_dependent(Expr condition, const Location& location);
  Expr new_symbol(const char* prefix, Type type, Value hint, Range born, const Location& location);
  void apply_constraint(Expr symbol, const Input& input);
  void check_own(Expr expr) const;
  uint32_t input_named(const std::string& source) const;
  void add_input(const Input& input);

  Options options_;
  Arena arena_;
  Builder build_;
  std::optional<Facts> facts_;
  std::vector<Input> inputs_;
  std::vector<Guard> guards_;
  std::vector<RuntimeAssert> asserts_;
  std::vector<Event> log_;
  std::vector<uint8_t> answers_;  // by node id: 1 true, 2 false, for good
  std::unordered_map<int64_t, Expr> ducks_;
  std::unordered_map<Expr, Location> created_at_;
  std::unordered_map<Expr, size_t> replaced_at_;  // which event of the log
  std::unordered_map<std::string, uint32_t> input_of_;
  std::unordered_map<Expr, std::vector<uint32_t>> places_of_;  // symbols among the inputs
  std::unordered_map<std::string, uint32_t> symbols_named_;    // how many of a prefix
  size_t replacements_seen_ = 0;
  int suppressed_ = 0;
  bool frozen_ = false;
  bool frozen_hard_ = false;
};

}  // namespace pellucid::symbolic
