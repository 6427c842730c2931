// The location table (co_linetable of 3.11 and later): one run-length entry per stretch of code units, with line and column
// ranges. Mirrors Objects/locations.md and the writer of CPython's compiler. Knows nothing of instructions.
#pragma once
#include <cstdint>
#include <string>

#include "bytecode/code.h"

namespace pellucid::bytecode {

// Reads entry after entry; the text must outlive the reader.
class LocationReader {
 public:
  LocationReader(const char* bytes, size_t size, int firstlineno)
      : at_(reinterpret_cast<const uint8_t*>(bytes)), end_(at_ + size), line_(firstlineno) {}

  // The next entry: how many code units it covers, and their position. False at the end, or when the table is cut off.
  bool next(int* units, Position* position);

 private:
  uint8_t byte() { return at_ < end_ ? *at_++ : 0; }
  uint32_t varint();
  int signed_varint();

  const uint8_t* at_;
  const uint8_t* end_;
  int line_;
};

class LocationWriter {
 public:
  // 3.11 starts an entry at every instruction; from 3.12 on equal neighbours share one.
  LocationWriter(int firstlineno, bool merge) : line_(firstlineno), merge_(merge) {}

  void add(int units, const Position& position);
  std::string finish();

 private:
  void flush();
  void entry(int units, const Position& position);
  void head(int kind, int units) { out_.push_back(static_cast<char>(0x80 | (kind << 3) | (units - 1))); }
  void varint(uint32_t value);
  void signed_varint(int value);

  std::string out_;
  int line_;
  bool merge_;
  int pending_units_ = 0;
  Position pending_;
};

bool same_position(const Position& a, const Position& b);

}  // namespace pellucid::bytecode
