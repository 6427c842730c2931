// The location table's entry kinds, read and written byte for byte as CPython does. Knows nothing of instructions.
#include "bytecode/location_table.h"

namespace pellucid::bytecode {
namespace {

// Entry kinds 0 to 9 are "short": the line before, columns below 80 in one further byte.
constexpr int kOneLine0 = 10;  // 10, 11, 12: the line 0, 1 or 2 further on, columns below 128
constexpr int kOneLine2 = 12;
constexpr int kNoColumns = 13;
constexpr int kLong = 14;
constexpr int kNone = 15;
constexpr int kMaxUnits = 8;

}  // namespace

uint32_t LocationReader::varint() {
  uint32_t value = 0;
  int shift = 0;
  uint8_t next;
  do {
    next = byte();
    if (shift < 32) value |= static_cast<uint32_t>(next & 63) << shift;
    shift += 6;
  } while ((next & 64) != 0);
  return value;
}

int LocationReader::signed_varint() {
  const uint32_t value = varint();
  return (value & 1) != 0 ? -static_cast<int>(value >> 1) : static_cast<int>(value >> 1);
}

bool LocationReader::next(int* units, Position* position) {
  if (at_ >= end_) return false;
  const uint8_t first = byte();
  if ((first & 0x80) == 0) return false;  // not the start of an entry: a damaged table
  *units = (first & 7) + 1;
  const int kind = (first >> 3) & 15;
  if (kind < kOneLine0) {
    const uint8_t second = byte();
    const int column = (kind << 3) | (second >> 4);
    *position = {line_, line_, column, column + (second & 15)};
  } else if (kind <= kOneLine2) {
    line_ += kind - kOneLine0;
    const int column = byte();
    const int end_column = byte();
    *position = {line_, line_, column, end_column};
  } else if (kind == kNoColumns) {
    line_ += signed_varint();
    *position = {line_, line_, -1, -1};
  } else if (kind == kLong) {
    line_ += signed_varint();
    const int end_line = line_ + static_cast<int>(varint());
    const int column = static_cast<int>(varint()) - 1;
    const int end_column = static_cast<int>(varint()) - 1;
    *position = {line_, end_line, column, end_column};
  } else {
    *position = {};
  }
  return true;
}

bool same_position(const Position& a, const Position& b) {
  return a.line == b.line && a.end_line == b.end_line && a.column == b.column && a.end_column == b.end_column;
}

void LocationWriter::varint(uint32_t value) {
  while (value >= 64) {
    out_.push_back(static_cast<char>(64 | (value & 63)));
    value >>= 6;
  }
  out_.push_back(static_cast<char>(value));
}

void LocationWriter::signed_varint(int value) {
  varint(value < 0 ? (static_cast<uint32_t>(-static_cast<int64_t>(value)) << 1) | 1 : static_cast<uint32_t>(value) << 1);
}

void LocationWriter::add(int units, const Position& position) {
  if (merge_ && pending_units_ > 0 && same_position(pending_, position)) {
    pending_units_ += units;
    return;
  }
  flush();
  pending_units_ = units;
  pending_ = position;
}

void LocationWriter::flush() {
  while (pending_units_ > kMaxUnits) {
    entry(kMaxUnits, pending_);
    pending_units_ -= kMaxUnits;
  }
  if (pending_units_ > 0) entry(pending_units_, pending_);
  pending_units_ = 0;
}

std::string LocationWriter::finish() {
  flush();
  return std::move(out_);
}

// Which kind is chosen follows write_location_info_entry in CPython's compiler: the first of these that can hold the position.
void LocationWriter::entry(int units, const Position& position) {
  if (position.line < 0) {
    head(kNone, units);
    return;
  }
  const int delta = position.line - line_;
  const int end_line = position.end_line;
  const int column = position.column;
  const int end_column = position.end_column;
  if (column < 0 || end_column < 0) {
    if (end_line == position.line || end_line < 0) {
      head(kNoColumns, units);
      signed_varint(delta);
      line_ = position.line;
      return;
    }
  } else if (end_line == position.line) {
    if (delta == 0 && column < 80 && end_column >= column && end_column - column < 16) {
      head(column >> 3, units);
      out_.push_back(static_cast<char>(((column & 7) << 4) | (end_column - column)));
      return;
    }
    if (delta >= 0 && delta < 3 && column < 128 && end_column < 128) {
      head(kOneLine0 + delta, units);
      out_.push_back(static_cast<char>(column));
      out_.push_back(static_cast<char>(end_column));
      line_ = position.line;
      return;
    }
  }
  head(kLong, units);
  signed_varint(delta);
  varint(static_cast<uint32_t>(end_line < position.line ? 0 : end_line - position.line));
  varint(static_cast<uint32_t>(column + 1));
  varint(static_cast<uint32_t>(end_column + 1));
  line_ = position.line;
}

}  // namespace pellucid::bytecode
