// The decompilation of one function, and what is tried where it has no structured form: code does not always say where a statement ends,
// and what follows it. Where the likeliest reading fails another one is taken, one at a time, as long as more of the code gets a form.
// Whether the outcome is right is for the check to say, as always.
#include <algorithm>

#include "decompile/dead_handlers.h"
#include "decompile/old_handlers.h"
#include "decompile/old_positions.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

constexpr size_t kMostSteps = 400000;  // instructions executed for one function, over all readings
constexpr size_t kMostReadings = 200;

class Search {
 public:
  Search(Session& session, Function& function, CodeKind kind)
      : session_(session), function_(function), kind_(kind), depth_(session.depth), began_(session.choices.now()) {}

  void run() {
    const size_t before = session_.steps;
    Reading best;
    std::string reason;
    if (attempt(&best, false, &reason)) return;
    const std::vector<Choice> likeliest = session_.choices.since(began_);
    const size_t cost = session_.steps - before + 1;
    readings_ = session_.again ? std::min(kMostReadings / 10, kMostSteps / 10 / cost) : std::min(kMostReadings, kMostSteps / cost);
    while (!session_.hopeless && improve(&best)) {
      if (done_) return session_.choices.add(likeliest);
    }
    // Where exceptions are handled the check does not follow values.
    std::string again;
    Reading none;
    if (kind_ == CodeKind::kFunction && !session_.hopeless && function_.code.rows.empty() && attempt(&none, true, &again)) return;
    session_.hopeless = true;
    session_.choices.back_to(began_);
    session_.choices.add(likeliest);
    throw NoForm{reason};
  }

 private:
  bool attempt(Reading* reading, bool naming, std::string* reason) {
    session_.choices.back_to(began_);
    try {
      Structurer structurer(session_, function_, kind_, naming, reading);
      structurer.run();
      function_.instructions = structurer.take_instructions();
      return true;
    } catch (const NoForm& none) {
      *reason = none.reason;
    }
    session_.depth = depth_;
    Function fresh;
    fresh.code = std::move(function_.code);
    fresh.defaults = std::move(function_.defaults);
    fresh.kw_defaults = std::move(function_.kw_defaults);
    fresh.annotations = std::move(function_.annotations);
    fresh.type_parameters = std::move(function_.type_parameters);
    function_ = std::move(fresh);
    return false;
  }

  // Tries each other reading of one place, the last places first; true if one brought a form, or came further.
  bool improve(Reading* best) {
    for (size_t i = best->among.size(); i-- > 0;) {
      for (uint8_t other = 0; other < best->among[i]; ++other) {
        if (other == best->taken[i]) continue;
        if (readings_-- == 0) return false;
        Reading reading;
        reading.script.assign(best->taken.begin(), best->taken.begin() + static_cast<std::ptrdiff_t>(i));
        reading.script.push_back(other);
        std::string reason;
        done_ = attempt(&reading, false, &reason);
        if (session_.hopeless) return false;
        if (done_ || reading.blocks > best->blocks) {
          *best = std::move(reading);
          return true;
        }
      }
    }
    return false;
  }

  Session& session_;
  Function& function_;
  const CodeKind kind_;
  const int depth_;
  const size_t began_;  // how many choices were made before
  size_t readings_ = 0;
  bool done_ = false;
};

}  // namespace

// The reading to take of `among` ones, the likeliest of which is the first.
size_t Structurer::choose(size_t among) {
  if (among < 2) return 0;
  Reading& c = *reading_;
  const size_t number = c.among.size();
  among = std::min<size_t>(among, 255);
  size_t taken = number < c.script.size() ? c.script[number] : 0;
  if (taken >= among) taken = 0;
  c.among.push_back(static_cast<uint8_t>(among));
  c.taken.push_back(static_cast<uint8_t>(taken));
  return taken;
}

int Structurer::choose_block(int likeliest, const std::vector<int>& others) {
  std::vector<int> all{likeliest};
  for (int b : others) {
    if (std::find(all.begin(), all.end(), b) == all.end()) all.push_back(b);
  }
  return all[choose(all.size())];
}

void decompile_function(Session& session, Function& function, CodeKind kind) {
  DepthGuard guard(session);
  split_pairs(function.code);
  raise_old_handlers(function.code);
  place_old_statements(function.code, choices_of(session, function.code));
  bytecode::Code dead;
  if (revive_handlers(function.code, &dead)) {
    const bool hopeless = session.hopeless;
    try {
      return Search(session, function, kind).run();
    } catch (const NoForm&) {  // without them there may be one
      session.hopeless = hopeless;
      function.code = std::move(dead);
    }
  }
  Search(session, function, kind).run();
}

}  // namespace pellucid::decompile
