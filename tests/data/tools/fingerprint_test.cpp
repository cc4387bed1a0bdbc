#include "data/tools/fingerprint.h"

#include <doctest/doctest.h>
#include <memory>
#include <vector>

using namespace millrace;
using namespace millrace::data;

namespace {

std::unique_ptr<Dataset> rows_of(const std::string& name, std::vector<std::vector<Value>> rows) {
  return memory_dataset(name, {{"id", ColumnKind::integer}, {"text", ColumnKind::text}}, std::move(rows));
}

std::vector<std::vector<Value>> many(int64_t count) {
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back({i, std::string("row")});
  return rows;
}

}  // namespace

TEST_CASE("a fingerprint hangs on the values, not on where they lie") {
  const Fingerprint first = fingerprint(*rows_of("a.csv", {{int64_t{1}, "x"}, {int64_t{2}, "y"}}));
  CHECK(first.samples == 2);
  CHECK(first.read == 2);
  CHECK(first.digest == fingerprint(*rows_of("b.csv", {{int64_t{1}, "x"}, {int64_t{2}, "y"}})).digest);
  // Another value, order, place of a byte, or a missing one.
  CHECK(first.digest != fingerprint(*rows_of("a.csv", {{int64_t{1}, "x"}, {int64_t{2}, "z"}})).digest);
  CHECK(first.digest != fingerprint(*rows_of("a.csv", {{int64_t{2}, "y"}, {int64_t{1}, "x"}})).digest);
  CHECK(first.digest != fingerprint(*rows_of("a.csv", {{int64_t{1}, "xy"}, {int64_t{2}, ""}})).digest);
  CHECK(first.digest !=
        fingerprint(*rows_of("a.csv", {{int64_t{1}, "x"}, {int64_t{2}, std::monostate()}})).digest);
}

TEST_CASE("names of columns and numbers of rows are in a fingerprint") {
  const auto set = memory_dataset("a", {{"other", ColumnKind::integer}, {"text", ColumnKind::text}}, many(3));
  CHECK(fingerprint(*set).digest != fingerprint(*rows_of("a", many(3))).digest);
  CHECK(fingerprint(*rows_of("a", many(3))).digest != fingerprint(*rows_of("a", many(4))).digest);
}

TEST_CASE("of many samples some are read, spread over all") {
  auto rows = many(20000);
  const Fingerprint whole = fingerprint(*rows_of("a", rows));
  CHECK(whole.samples == 20000);
  CHECK(whole.read == 4096);
  for (auto& row : rows) row[1] = std::string("changed");
  CHECK(fingerprint(*rows_of("a", rows)).digest != whole.digest);
}

TEST_CASE("large samples are spread more thinly") {
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < 200; ++i) rows.push_back({i, std::string(size_t{1} << 20, 'x')});
  const Fingerprint made = fingerprint(*rows_of("a", rows));
  CHECK(made.read == 64);  // 64 MB
}
