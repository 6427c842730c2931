// Where in the user's program something was asked. Finding it out costs, so it is asked for only when there is something to record.
#pragma once
#include <string>

namespace pellucid::symbolic {

struct Location {
  std::string file;
  int line = 0;

  bool known() const { return !file.empty(); }
};

inline std::string to_text(const Location& location) {
  return location.known() ? location.file + ":" + std::to_string(location.line) : "<unknown>";
}

// How to find the place: a function and what it needs.
struct Site {
  Location (*find)(const void* context) = nullptr;
  const void* context = nullptr;

  Location locate() const { return find == nullptr ? Location{} : find(context); }
};

// A place that is known already.
inline Site at(const Location& location) {
  return {[](const void* context) { return *static_cast<const Location*>(context); }, &location};
}

}  // namespace pellucid::symbolic
