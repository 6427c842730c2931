// Breaks lines that became too long to read, where the text has no original's lines to follow: inside the brackets that hold most, all
// they hold on one line if it fits there, else each item on its own. Knows where brackets and commas stand in the line, not what they mean.
#include <algorithm>
#include <cstdint>

#include "decompile/print.h"

namespace pellucid::decompile {
namespace {

constexpr size_t kWidth = 100;  // bytes
constexpr size_t kIndent = 4;
constexpr int kMaxDepth = 50;

class Wrapper {
 public:
  Wrapper(const std::vector<Printer::Joint>& joints, std::vector<std::pair<size_t, size_t>>* breaks) : joints_(joints), breaks_(breaks) {}

  // A stretch of the line that begins at column `indent`; `first`: the first of the joints that stand in it.
  void split(size_t begin, size_t end, size_t indent, size_t first, int depth) {
    if (end - begin + indent <= kWidth || depth > kMaxDepth) return;
    // The brackets of this stretch that hold most.
    size_t best = joints_.size(), most = 1;
    for (size_t i = first; i < joints_.size() && joints_[i].at < end; ++i) {
      if (joints_[i].kind != Printer::Joint::kOpen) continue;
      const size_t last = closing(i);
      if (last == joints_.size()) return;
      if (const size_t held = joints_[last].at - joints_[i].at - 1; held > most) {
        most = held;
        best = i;
      }
      i = last;
    }
    if (best == joints_.size()) return;
    const size_t last = closing(best), opened = joints_[best].at + 1, closed = joints_[last].at;
    split(begin, opened - 1, indent, first, depth + 1);
    const size_t inner = indent + kIndent;
    breaks_->push_back({opened, inner});
    if (closed - opened + inner <= kWidth) {
      // as it is
    } else {
      size_t item = opened, joint = best + 1;
      for (size_t i = best + 1; i <= last; ++i) {
        if (joints_[i].kind == Printer::Joint::kOpen) {
          i = closing(i);
          continue;
        }
        const size_t item_end = joints_[i].at + (i < last ? 1 : 0);
        split(item, item_end, inner, joint, depth + 1);
        if (i == last) break;
        item = item_end + 1;  // behind the space
        joint = i + 1;
        breaks_->push_back({item, inner});
      }
    }
    breaks_->push_back({closed, indent});
    split(closed + 1, end, indent + 1, last + 1, depth + 1);
  }

 private:
  size_t closing(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < joints_.size(); ++i) {
      depth += joints_[i].kind == Printer::Joint::kOpen ? 1 : joints_[i].kind == Printer::Joint::kClose ? -1 : 0;
      if (depth == 0) return i;
    }
    return joints_.size();
  }

  const std::vector<Printer::Joint>& joints_;
  std::vector<std::pair<size_t, size_t>>* breaks_;  // where lines begin, and their indents
};

}  // namespace

void Printer::wrap_line() {
  if (layout_ || out_.size() - statement_ <= kWidth || out_.find('\n', statement_) != std::string::npos) return;
  std::vector<std::pair<size_t, size_t>> breaks;
  const auto indent = static_cast<size_t>(indent_) * kIndent;
  Wrapper(joints_, &breaks).split(statement_ + indent, out_.size(), indent, 0, 0);
  if (breaks.empty()) return;
  std::sort(breaks.begin(), breaks.end());
  for (size_t i = marks_.size(); i-- > 0 && marks_[i].line == line_ && marks_[i].at >= statement_;) {
    const auto behind = std::upper_bound(breaks.begin(), breaks.end(), std::pair{marks_[i].at, SIZE_MAX});
    marks_[i].line += static_cast<int>(behind - breaks.begin());
  }
  std::string text;
  size_t done = statement_;
  for (const auto& [at, column] : breaks) {
    text.append(out_, done, at - done);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    text += '\n';
    text.append(column, ' ');
    done = at;
  }
  text.append(out_, done, std::string::npos);
  out_.replace(statement_, std::string::npos, text);
  line_ += static_cast<int>(breaks.size());
}

}  // namespace pellucid::decompile
