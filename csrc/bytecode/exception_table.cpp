// Varints of six bits, most significant first; bit 7 marks the first byte of a row. Knows nothing of instructions.
#include "bytecode/exception_table.h"

namespace pellucid::bytecode {
namespace {

constexpr uint8_t kRowStart = 0x80;
constexpr uint8_t kMore = 0x40;

void append_varint(uint32_t value, uint8_t mark, std::string* out) {
  int shift = 30;
  while (shift > 0 && (value >> shift) == 0) shift -= 6;
  for (; shift >= 0; shift -= 6) {
    const uint8_t more = shift > 0 ? kMore : 0;
    out->push_back(static_cast<char>(mark | more | ((value >> shift) & 63)));
    mark = 0;
  }
}

}  // namespace

bool read_exception_table(const char* bytes, size_t size, std::vector<UnitRow>* rows) {
  const auto* at = reinterpret_cast<const uint8_t*>(bytes);
  const uint8_t* end = at + size;
  const auto varint = [&](uint32_t* value) {
    *value = 0;
    uint8_t next;
    do {
      if (at == end) return false;
      next = *at++;
      *value = (*value << 6) | (next & 63);
    } while ((next & kMore) != 0);
    return true;
  };
  while (at < end) {
    UnitRow row;
    uint32_t depth_and_lasti;
    if (!varint(&row.start) || !varint(&row.length) || !varint(&row.target) || !varint(&depth_and_lasti)) return false;
    row.depth = depth_and_lasti >> 1;
    row.lasti = (depth_and_lasti & 1) != 0;
    rows->push_back(row);
  }
  return true;
}

void append_exception_row(const UnitRow& row, std::string* out) {
  append_varint(row.start, kRowStart, out);
  append_varint(row.length, 0, out);
  append_varint(row.target, 0, out);
  append_varint(row.depth << 1 | (row.lasti ? 1 : 0), 0, out);
}

}  // namespace pellucid::bytecode
