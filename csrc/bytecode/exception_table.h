// The exception table (co_exceptiontable of 3.11 and later) in code units, as it is stored. Mirrors Objects/exception_handling_notes.txt.
// Knows nothing of instructions: the decoder and the assembler turn units into instruction indexes and back.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pellucid::bytecode {

struct UnitRow {  // code units [start, start + length) are handled at `target`
  uint32_t start = 0, length = 0, target = 0, depth = 0;
  bool lasti = false;
};

// False if the table is damaged.
bool read_exception_table(const char* bytes, size_t size, std::vector<UnitRow>* rows);

void append_exception_row(const UnitRow& row, std::string* out);

}  // namespace pellucid::bytecode
