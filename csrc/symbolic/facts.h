// Facts: what is known to hold of the symbols of an arena, and what follows: ranges, congruences, replacements of symbols, relations
// between linear forms, any other condition as such. Facts are only ever added, so whatever was derived once stays true. Knows
// nothing of hints, sources or guards.
#pragma once
#include <array>
#include <unordered_map>
#include <vector>

#include "symbolic/builder.h"

namespace pellucid::symbolic {

class Facts final : public Oracle {
 public:
  explicit Facts(Arena& arena) : arena_(arena), build_(arena, this) {}
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  // Adds a boolean. False: it contradicts what is known; nothing sensible can be derived any more.
  bool add(Expr condition);
  // Adds that an integer lies in the range.
  bool bound(Expr integer, const Range& range);
  // Such a symbol is taken to be at least 2 while an Oblivious is alive.
  void set_size_like(Expr symbol);
  bool is_size_like(Expr symbol) const;

  // True or false whatever the symbols are, or unknown.
  std::optional<bool> prove(Expr condition);
  // Equal to the expression as long as the facts hold.
  Expr simplify(Expr expr);
  // What the symbol was replaced by, or null.
  Expr replacement(Expr symbol);
  // The symbols that were replaced so far, in order.
  const std::vector<Expr>& replaced() const { return replaced_; }
  // Counts changes.
  uint64_t version() const { return version_; }
  // When anything last changed that these symbols (Node::symbols) appear in.
  uint64_t changed(uint64_t symbols) const;

  Range range(Expr integer) override;
  std::optional<Int> residue(Expr integer, Int modulus) override;
  bool divides(Expr dividend, Expr divisor) override;
  std::optional<bool> settled(Expr comparison) override;

  // While one is alive, questions are answered as if no size were 0 or 1.
  class Oblivious {
   public:
    explicit Oblivious(Facts& facts) : facts_(facts), before_(facts.mode_) { facts.mode_ = 1; }
    ~Oblivious() { facts_.mode_ = before_; }
    Oblivious(const Oblivious&) = delete;
    Oblivious& operator=(const Oblivious&) = delete;

   private:
    Facts& facts_;
    int before_;
  };

 private:
  struct OfSymbol {
    Range range;
    Expr replacement = nullptr;
    Int modulus = 1;  // the symbol is residue (mod modulus)
    Int residue = 0;
    bool size_like = false;
    std::vector<Expr> facts;  // that it appears in
  };
  struct Congruence {  // residue (mod modulus); modulus 0: exactly residue
    Int modulus = 1;
    Int residue = 0;
  };
  struct Form {  // sum(terms) + constant, terms sorted by id
    static constexpr uint32_t kMost = 6;
    std::array<Term, kMost> terms;
    uint32_t count = 0;
    Int constant = 0;
  };
  template <class T>
  struct Memo {
    T value;
    uint64_t version;  // 0: none
  };

  OfSymbol& of(Expr symbol);
  void touch(uint64_t symbols);
  bool fresh(uint64_t version, Expr expr) const { return version == version_ || (version != 0 && changed(expr->symbols) <= version); }

  // facts_learn.cpp
  bool learn(Expr condition);
  bool learn_at_most_0(Expr difference, int depth);
  bool learn_equal_0(Expr difference);
  void learn_unequal_0(Expr difference);
  bool learn_residue(Expr integer, Int modulus, Int residue);
  bool bound_atom(Expr atom, const Range& range, int depth);
  bool narrow(Expr symbol, const Range& range, int depth);
  bool replace(Expr symbol, Expr by);
  bool eliminate(Expr difference);
  void index(Expr condition);
  void relate(Expr key, const Range& range);

  Expr simplify_anew(Expr condition);  // without looking the condition itself up

  // facts_prove.cpp
  std::optional<bool> decide(Expr condition, int effort);
  bool at_most_0(const Form& form, int depth, int* budget);
  Range range_of_form(const Form& form);
  const Range* relation(const Expr* factors, const Int* coefficients, uint32_t count, Int* factor);
  Range range_uncached(Expr integer);
  Range factored(Expr sum);
  Range shifted(Expr sum);
  Congruence congruence(Expr integer, int depth);
  const Range* known_range(Expr atom) const;

  // facts_relax.cpp
  struct Relaxed {
    std::vector<Expr> sums;
    bool any = true;
    Int factor = 1;
  };
  static bool can_relax(Expr term);
  static bool is_small(Expr sum);
  bool relax(Expr sum, Int sign, uint32_t place, Relaxed* out);
  Range relaxed(Expr sum);

  Arena& arena_;
  Builder build_;
  int relaxing_ = 0;
  int mode_ = 0;
  int depth_ = 0;
  uint64_t version_ = 1;
  std::array<uint64_t, 64> changed_{};     // by bit of Node::symbols
  std::array<uint64_t, 64> dependents_{};  // the bits of symbols that were replaced by something with this bit
  std::vector<OfSymbol> symbols_;
  std::vector<Expr> replaced_;
  std::unordered_map<Expr, bool> known_;                   // conditions
  std::unordered_map<Expr, Range> relations_;              // of linear forms (first sign positive, no constant) and of atoms
  std::unordered_map<Expr, std::vector<Expr>> by_factor_;  // the forms in relations_ that have the factor
  std::array<std::vector<Memo<Range>>, 2> ranges_;         // by node id
  std::array<std::vector<Memo<Expr>>, 2> simplified_;
};

}  // namespace pellucid::symbolic
