// GuardProgram: guards as a flat program for a stack machine over int64 inputs. Intermediate values have 128 bits; where even those do
// not suffice, or a divisor is 0, the guard does not hold. Floats travel as their bits. Knows neither symbols nor sources once built.
#pragma once
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbolic/expr.h"

namespace pellucid::symbolic {

class GuardProgram {
 public:
  // Which input holds a symbol's value.
  using Places = std::unordered_map<Expr, uint32_t>;

  // Adds a guard; `row` is what `failed` answers if it does not hold.
  void add_condition(Expr condition, const Places& places, uint32_t row);
  void add_range(uint32_t input, const Range& range, uint32_t row);
  void add_same(uint32_t input, uint32_t other, uint32_t row);
  void add_not_nan(uint32_t input, uint32_t row);
  void add_same_real(uint32_t input, double value, uint32_t row);

  // -1: all guards hold; else the row of the first that does not.
  int64_t first_failed(std::span<const int64_t> inputs) const;
  bool run(std::span<const int64_t> inputs) const { return first_failed(inputs) < 0; }

  uint32_t inputs_needed() const { return inputs_needed_; }
  size_t size() const { return code_.size(); }
  std::string disassemble() const;

 private:
  enum class Code : uint8_t {
    kInput,     // push inputs[a]
    kConstant,  // push constants[a]
    kScaleAdd,  // pop x; top += constants[a] * x
    kApply,     // pop `count`, push the result of `kind`
    kLoad,      // push locals[a]
    kStore,     // locals[a] = top
    kCheck,     // pop; the guard `row` does not hold if it is not true
    kRange,     // inputs[a] within constants[b] and constants[b + 1]
    kSame,      // inputs[a] == inputs[b]
    kNotNan,    // inputs[a] is a float
    kSameReal,  // inputs[a] is the float whose bits are constants[b]
  };
  struct Row {
    Code code;
    Kind kind = Kind::kConst;
    Type type = Type::kInt;
    uint8_t digits = 0;
    bool real = false;
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t row = 0;
  };

  uint32_t constant(Int value);
  void emit(Expr root, const Places& places);
  void use(uint32_t input) { inputs_needed_ = input + 1 > inputs_needed_ ? input + 1 : inputs_needed_; }

  std::vector<Row> code_;
  std::vector<Int> constants_;
  uint32_t locals_ = 0;
  uint32_t deepest_ = 0;
  uint32_t inputs_needed_ = 0;
};

}  // namespace pellucid::symbolic
