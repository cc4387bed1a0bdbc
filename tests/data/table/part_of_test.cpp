#include "data/table/part_of.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <memory>
#include <set>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "data/table/group.h"
#include "data/table/select.h"

using namespace millrace;
using namespace millrace::data;

namespace {

std::shared_ptr<const Dataset> numbered_rows(int64_t count) {
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back({i, std::string("p") + std::to_string(i * 31 % 40)});
  return memory_dataset("rows", {{"number", ColumnKind::integer}, {"person", ColumnKind::text}},
                        std::move(rows));
}

bool is_within(const std::vector<int64_t>& part, const std::vector<int64_t>& whole) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

}  // namespace

TEST_CASE("part sizes are shares or numbers") {
  CHECK(PartSize::parse("2%").of(1000) == 20);
  CHECK(PartSize::parse("0.5 %").of(1000) == 5);
  CHECK(PartSize::parse("100%").of(7) == 7);
  CHECK(PartSize::parse("0.01%").of(7) == 1);
  CHECK(PartSize::parse("500").of(1000) == 500);
  CHECK(PartSize::parse("500").of(100) == 100);
  for (const char* wrong : {"", "%", "0", "0%", "101%", "-3", "2.5", "some", "2 percent", "nan%", "1e400%"})
    CHECK_THROWS_WITH_AS(PartSize::parse(wrong), doctest::Contains("as 2%"), InputError);
}

TEST_CASE("a part keeps the share of each kind, the same for a seed, the smaller among the larger") {
  const auto set = numbered_rows(1000);
  std::vector<int64_t> kinds;
  for (int64_t i = 0; i < 1000; ++i) kinds.push_back(i < 900 ? 0 : i < 997 ? 1 : 2);
  const auto part = part_of(*set, 100, 1, kinds, "");
  std::map<int64_t, int64_t> counts;
  for (const int64_t i : part) ++counts[kinds[static_cast<size_t>(i)]];
  CHECK(counts == std::map<int64_t, int64_t>{{0, 90}, {1, 10}, {2, 1}});
  CHECK(std::is_sorted(part.begin(), part.end()));
  CHECK(part == part_of(*set, 100, 1, kinds, ""));
  CHECK(part != part_of(*set, 100, 2, kinds, ""));
  CHECK(is_within(part, part_of(*set, 250, 1, kinds, "")));
  CHECK(part_of(*set, 2, 1, kinds, "").size() == 2);
  CHECK(part_of(*set, 77, 5, {}, "").size() == 77);
  CHECK(part_of(*set, 5000, 5, {}, "").size() == 1000);
}

TEST_CASE("a part takes whole groups") {
  const auto set = numbered_rows(400);
  const auto part = part_of(*set, 100, 3, {}, "person");
  CHECK(part.size() >= 90);
  CHECK(part.size() <= 110);
  std::set<int64_t> inside(part.begin(), part.end()), people;
  for (const int64_t i : part) people.insert(i * 31 % 40);
  for (int64_t i = 0; i < 400; ++i) CHECK(inside.contains(i) == people.contains(i * 31 % 40));
  CHECK(is_within(part, part_of(*set, 200, 3, {}, "person")));
}

TEST_CASE("a part of samples that are groups of rows has all rows of each") {
  const auto rows = numbered_rows(400);
  const auto people = grouped(rows, "person");
  const auto part = part_of(*people, people->count() / 4, 3, {}, "");
  CHECK(std::ssize(part) == people->count() / 4);
  CHECK(is_within(part, part_of(*people, people->count() / 2, 3, {}, "")));
  const auto taken = rows_of(*select(people, part));
  std::map<std::string, int64_t> all, own;
  for (int64_t i = 0; i < rows->count(); ++i) ++all[std::get<std::string>(rows->read(i, 1))];
  for (int64_t i = 0; i < taken->count(); ++i) ++own[std::get<std::string>(taken->read(i, 1))];
  CHECK(own.size() == part.size());
  for (const auto& [person, count] : own) CHECK(count == all[person]);
}
