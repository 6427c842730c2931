// The location and exception tables, entry kind by entry kind, against bytes worked out by hand from CPython's description.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bytecode/exception_table.h"
#include "bytecode/location_table.h"

namespace pellucid::bytecode {
namespace {

using Entries = std::vector<std::pair<int, Position>>;

std::string write(int firstlineno, const Entries& entries, bool merge = false) {
  LocationWriter writer(firstlineno, merge);
  for (const auto& [units, position] : entries) writer.add(units, position);
  return writer.finish();
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (int value : values) out.push_back(static_cast<char>(value));
  return out;
}

void expect_reads_back(int firstlineno, const std::string& table, const Entries& entries) {
  LocationReader reader(table.data(), table.size(), firstlineno);
  int units;
  Position position;
  for (const auto& [expected_units, expected] : entries) {
    ASSERT_TRUE(reader.next(&units, &position));
    EXPECT_EQ(units, expected_units);
    EXPECT_TRUE(same_position(position, expected))
        << position.line << ":" << position.column << "-" << position.end_line << ":" << position.end_column;
  }
  EXPECT_FALSE(reader.next(&units, &position));
}

struct Case {
  const char* name;
  Position position;
  std::string table;  // of one entry of two units, first line 10
};

class LocationKinds : public testing::TestWithParam<Case> {};

TEST_P(LocationKinds, WritesAndReads) {
  const Case& the_case = GetParam();
  const Entries entries = {{2, the_case.position}};
  EXPECT_EQ(write(10, entries), the_case.table);
  expect_reads_back(10, the_case.table, entries);
}

// The first byte of an entry of two units.
constexpr int head(int kind) { return 0x80 | kind << 3 | 1; }

const Case kCases[] = {
    {"short_group_0", {10, 10, 5, 9}, bytes({head(0), 5 << 4 | 4})},
    {"short_group_9", {10, 10, 79, 94}, bytes({head(9), 7 << 4 | 15})},
    {"one_line_0_wide", {10, 10, 5, 21}, bytes({head(10), 5, 21})},
    {"one_line_0_far", {10, 10, 80, 81}, bytes({head(10), 80, 81})},
    {"one_line_1", {11, 11, 5, 9}, bytes({head(11), 5, 9})},
    {"one_line_2", {12, 12, 127, 127}, bytes({head(12), 127, 127})},
    {"no_columns", {13, 13, -1, -1}, bytes({head(13), 3 << 1})},
    {"no_columns_back", {7, 7, -1, -1}, bytes({head(13), 3 << 1 | 1})},
    {"long_3_lines_on", {13, 13, 5, 9}, bytes({head(14), 3 << 1, 0, 6, 10})},
    {"long_back", {9, 9, 5, 9}, bytes({head(14), 1 << 1 | 1, 0, 6, 10})},
    {"long_two_lines", {10, 11, 5, 9}, bytes({head(14), 0, 1, 6, 10})},
    {"long_column_128", {10, 10, 128, 130}, bytes({head(14), 0, 0, 64 | (129 & 63), 129 >> 6, 64 | (131 & 63), 131 >> 6})},
    {"none", {-1, -1, -1, -1}, bytes({head(15)})},
};

INSTANTIATE_TEST_SUITE_P(All, LocationKinds, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST(LocationTable, MoreThanEightUnitsAreSplit) {
  const Position position{10, 10, 5, 9};
  expect_reads_back(10, write(10, {{19, position}}), {{8, position}, {8, position}, {3, position}});
}

TEST(LocationTable, EqualNeighboursAreMergedOnRequest) {
  const Position a{10, 10, 5, 9}, b{10, 10, 5, 8};
  const Entries entries = {{1, a}, {2, a}, {1, b}};
  expect_reads_back(10, write(10, entries, false), entries);
  expect_reads_back(10, write(10, entries, true), {{3, a}, {1, b}});
}

TEST(LocationTable, LinesCountFromTheEntryBeforeThatHadOne) {
  const Entries entries = {{1, {12, 12, 1, 2}}, {1, {}}, {1, {12, 12, 3, 4}}, {1, {5000, 5003, 3, 4}}, {1, {1, 1, -1, -1}}};
  expect_reads_back(10, write(10, entries), entries);
}

TEST(LocationTable, ADamagedTableEnds) { expect_reads_back(1, bytes({0x05, 0x80}), {}); }

TEST(ExceptionTable, SmallAndLargeNumbers) {
  std::string table;
  append_exception_row({1, 2, 3, 4, true}, &table);
  EXPECT_EQ(table, bytes({0x80 | 1, 2, 3, 4 << 1 | 1}));
  append_exception_row({64, 5000, 262144, 0, false}, &table);
  // 64 = 1,0; 5000 = 1,14,8; 262144 = 1,0,0,0 in base 64
  EXPECT_EQ(table.substr(4), bytes({0xc0 | 1, 0, 0x40 | 1, 0x40 | 14, 8, 0x40 | 1, 0x40, 0x40, 0, 0}));
  std::vector<UnitRow> rows;
  ASSERT_TRUE(read_exception_table(table.data(), table.size(), &rows));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].start, 64u);
  EXPECT_EQ(rows[1].length, 5000u);
  EXPECT_EQ(rows[1].target, 262144u);
  EXPECT_FALSE(rows[1].lasti);
  EXPECT_EQ(rows[0].depth, 4u);
  EXPECT_TRUE(rows[0].lasti);
}

TEST(ExceptionTable, ACutOffTableIsRefused) {
  std::vector<UnitRow> rows;
  const std::string table = bytes({0x81, 2, 3});
  EXPECT_FALSE(read_exception_table(table.data(), table.size(), &rows));
}

}  // namespace
}  // namespace pellucid::bytecode
