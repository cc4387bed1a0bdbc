#include "data/table/split.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>

#include <millrace/error.h>

#include "data/codecs/pictures/stored_picture.h"

using namespace millrace;
using namespace millrace::data;

namespace {

/// Samples that are nothing but keys, classes, groups and times.
class Plain final : public Dataset {
 public:
  explicit Plain(int64_t count, int64_t classes = 3) : Dataset("plain"), count_(count), classes_(classes) {
    columns_ = {{"person", ColumnKind::text}, {"when", ColumnKind::integer}, {"day", ColumnKind::text},
                {"gap", ColumnKind::real},    {"blob", ColumnKind::bytes},   {"label", ColumnKind::integer}};
  }
  int64_t count() const override { return count_; }
  std::string name(int64_t i) const override { return "plain/" + std::to_string(i); }
  std::optional<size_t> class_column() const override {
    return classes_ > 0 ? std::optional<size_t>(5) : std::nullopt;
  }
  std::vector<std::string> class_names(size_t) const override {
    std::vector<std::string> names;
    for (int64_t c = 0; c < classes_; ++c) names.push_back(std::to_string(c));
    return names;
  }
  int64_t label(int64_t i) const { return i * i % 7 % classes_; }
  Value read(int64_t i, size_t column) const override {
    if (column == 0) return "p" + std::to_string(i * 31 % 40);
    if (column == 1) return (i * 7919) % 1000 / 10;
    if (column == 2) return std::string("2024-01-") + std::to_string(10 + i % 20);
    if (column == 3 && i != 5) return 1.0;
    if (column == 5) return label(i);
    return {};
  }

 private:
  int64_t count_, classes_;
};

std::vector<std::vector<int64_t>> divided(const Dataset& source, const char* by, uint64_t seed = 1,
                                          const char* parts = "train=0.8,val=0.1,test=0.1") {
  return split_samples(source, SplitRule::parse(parts, by, seed));
}

std::map<int64_t, size_t> part_of(const std::vector<std::vector<int64_t>>& parts) {
  std::map<int64_t, size_t> of;
  for (size_t p = 0; p < parts.size(); ++p)
    for (const int64_t i : parts[p]) CHECK(of.emplace(i, p).second);
  return of;
}

}  // namespace

TEST_CASE("a split has every sample once, in the order of the source, whatever it goes by") {
  const Plain source(1000);
  for (const char* by : {"random", "stratified", "group:person", "time:when", "time:day"}) {
    CAPTURE(by);
    const auto parts = divided(source, by);
    CHECK(part_of(parts).size() == 1000);
    for (const auto& part : parts) CHECK(std::is_sorted(part.begin(), part.end()));
    CHECK(parts[0].size() > 730);
    CHECK(parts[0].size() < 870);
    CHECK(divided(source, by) == parts);
  }
  CHECK(divided(source, "random", 2) != divided(source, "random"));
}

TEST_CASE(
    "a random split keeps every sample in its part when samples are added, a stratified one nearly all") {
  const auto before = part_of(divided(Plain(1000), "random")),
             after = part_of(divided(Plain(1100), "random"));
  for (const auto& [i, part] : before) CHECK(after.at(i) == part);

  const auto old = part_of(divided(Plain(1000), "stratified")),
             now = part_of(divided(Plain(1100), "stratified"));
  int64_t moved = 0;
  for (const auto& [i, part] : old) moved += now.at(i) != part;
  CHECK(moved < 40);
}

TEST_CASE("a stratified split has its share of each class within one sample") {
  for (const int64_t count : {100, 333, 1000}) {
    const Plain source(count, 5);
    const auto parts = divided(source, "stratified", 3, "train=0.7,val=0.2,test=0.1");
    std::map<int64_t, double> sizes;
    for (int64_t i = 0; i < count; ++i) ++sizes[source.label(i)];
    const double shares[] = {0.7, 0.2, 0.1};
    for (size_t p = 0; p < 3; ++p) {
      std::map<int64_t, double> found;
      for (const int64_t i : parts[p]) ++found[source.label(i)];
      for (const auto& [label, size] : sizes) CHECK(std::abs(found[label] - shares[p] * size) <= 1);
    }
  }
}

TEST_CASE("texts are classes to split by, as of sounds in folders") {
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < 300; ++i) rows.push_back({0.5, std::string(i % 10 ? "ham" : "spam")});
  const auto set = memory_dataset("m", {{"x", ColumnKind::real}, {"label", ColumnKind::text}}, rows);
  const auto parts = divided(*set, "stratified", 1, "train=0.8,test=0.2");
  REQUIRE(parts[1].size() == 60);
  CHECK(std::count_if(parts[1].begin(), parts[1].end(), [](int64_t i) { return i % 10 == 0; }) == 6);
}

TEST_CASE("groups never straddle parts, and the newest samples are in the last one") {
  const Plain source(1000);
  std::map<std::string, std::set<size_t>> groups;
  for (const auto& [i, part] : part_of(divided(source, "group:person")))
    groups[std::get<std::string>(source.read(i, 0))].insert(part);
  CHECK(groups.size() == 40);
  for (const auto& [group, parts] : groups) CHECK(parts.size() == 1);

  const auto times = divided(source, "time:when");
  CHECK(times[0].size() == 800);
  CHECK(times[2].size() == 100);
  int64_t newest = -1;
  for (const auto& part : times) {
    int64_t first = 1 << 20, last = -1;
    for (const int64_t i : part) {
      const int64_t when = std::get<int64_t>(source.read(i, 1));
      first = std::min(first, when);
      last = std::max(last, when);
    }
    CHECK(first >= newest);
    newest = last;
  }
}

TEST_CASE("samples of one time are in one part, and every part has some") {
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < 100; ++i) rows.push_back({i < 30 ? int64_t{1} : i < 78 ? int64_t{2} : int64_t{3}});
  const auto at = [&](std::vector<std::vector<Value>> some, const char* by) {
    return split_samples(*memory_dataset("m", {{"day", ColumnKind::integer}}, std::move(some)),
                         SplitRule::parse("a=0.8,b=0.2", by, 1));
  };
  const auto days = at(rows, "time:day");
  CHECK(days[0].size() == 78);  // 80 lies within the newest day
  CHECK(days[1].size() == 22);
  rows.resize(90);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = {i < 5 ? int64_t{1} : int64_t{2}};
  CHECK(at(rows, "time:day")[1].size() == 85);  // most of the samples, but the only newest
  CHECK(at(rows, "group:day")[0].size() + at(rows, "group:day")[1].size() == 90);
  CHECK_FALSE(at(rows, "group:day")[1].empty());
  for (auto& row : rows) row = {int64_t{7}};
  for (const char* by : {"time:day", "group:day"})
    CHECK_THROWS_WITH_AS(at(rows, by), doctest::Contains("have the same 'day'"), InputError);
}

TEST_CASE("of two parts each has a sample of every class that has two, whatever the shares") {
  std::vector<std::vector<Value>> rows;
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < 40; ++i) {
    rows.push_back({i});
    classes.push_back(i < 30 ? 0 : i < 35 ? 1 : i < 37 ? 2 : 3 + i);
  }
  const auto set = memory_dataset("m", {{"number", ColumnKind::integer}}, std::move(rows));
  for (const char* shares : {"a=0.95,b=0.05", "a=0.5,b=0.5", "a=0.2,b=0.8"}) {
    const auto parts = split_samples(*set, SplitRule::parse(shares, "stratified", 1), classes);
    for (const auto& part : parts)
      for (int64_t label = 0; label < 3; ++label)
        CHECK(std::any_of(part.begin(), part.end(),
                          [&](int64_t i) { return classes[static_cast<size_t>(i)] == label; }));
  }
}

TEST_CASE("texts of dates are ordered as dates, other texts as texts") {
  // The number of the newest of some, each on a day of its own.
  const auto newest = [](std::vector<std::string> days) {
    std::vector<std::vector<Value>> rows;
    for (std::string& day : days) rows.push_back({std::move(day)});
    const auto parts = split_samples(*memory_dataset("m", {{"day", ColumnKind::text}}, std::move(rows)),
                                     SplitRule::parse("a=0.8,b=0.2", "time:day", 1));
    REQUIRE(parts[1].size() == 1);
    return parts[1][0];
  };
  CHECK(newest({"2 Feb 2025", "9 Jan 2025", "30 Dec 2024"}) == 0);
  CHECK(newest({"Dec 31, 2024", "Jan 1, 2025", "Nov 30, 2024"}) == 1);
  CHECK(newest({"31/12/2023", "15/1/2024", "2/2/2024"}) == 2);
  CHECK(newest({"12/31/2023", "1/15/2024", "2/2/2024"}) == 2);
  CHECK(newest({"31.12.2023 23:59", "1.1.2024 00:30", "1.1.2024 00:10"}) == 1);
  CHECK(newest({"2024-12-31T23:00:00Z", "2025-01-01T00:30:00+05:00", "2024-12-31"}) == 0);
  CHECK(newest({"2024-07-01", "2024-12-31", "2024/12/30"}) == 1);
  CHECK(newest({"v1.2.2024", "v1.10.2024", "24-12-31"}) == 1);
  CHECK(newest({"8:00", "19:57", "9:30"}) == 1);
  CHECK(newest({"img9", "img010", "img08"}) == 1);
  CHECK(newest({"2024-Q1", "2024-Q3", "2024-Q2b"}) == 1);
  CHECK(newest({"a", "c", "b"}) == 1);
  for (const auto& days : {std::vector<std::string>{"1/2/2024", "3/4/2024"}, {"24-12-31", "23-11-30"}})
    CHECK_THROWS_WITH_AS(newest(days), doctest::Contains("write the year first"), InputError);
  for (const auto& names : {std::vector<std::string>{"Jan-24", "Feb-24"}, {"Mon", "Tuesday", "fri"}})
    CHECK_THROWS_WITH_AS(newest(names), doctest::Contains("by name"), InputError);
  CHECK_THROWS_WITH_AS(newest({"2 Feb 2025", "9 Jan 2025", "soon"}),
                       doctest::Contains("its 'day' is 'soon', but most are dates"), InputError);
}

TEST_CASE("splits that cannot be are refused by what is wrong") {
  const Plain source(1000);
  CHECK_THROWS_WITH_AS(divided(source, "group:persn"), doctest::Contains("there are: person, when, day, gap"),
                       InputError);
  CHECK_THROWS_WITH_AS(divided(source, "group:blob"), doctest::Contains("no column 'blob'"), InputError);
  CHECK_THROWS_WITH_AS(divided(source, "time:gap"), doctest::Contains("plain/5 has no 'gap'"), InputError);
  CHECK_THROWS_WITH_AS(divided(Plain(3), "stratified"), doctest::Contains("gets none"), InputError);
  const auto numbers = memory_dataset("m", {{"x", ColumnKind::real}}, {{1.0}, {2.0}});
  CHECK_THROWS_WITH_AS(divided(*numbers, "stratified"), doctest::Contains("no column of classes"),
                       InputError);
  CHECK_THROWS_WITH_AS(divided(source, "grup:day"), doctest::Contains("did you mean 'group:day'?"),
                       InputError);
  CHECK_THROWS_WITH_AS(divided(source, "time:"), doctest::Contains("did you mean 'time:COLUMN'?"),
                       InputError);
  CHECK_THROWS_WITH_AS(divided(source, "stratified:"), doctest::Contains("it is random, stratified"),
                       InputError);
  CHECK_THROWS_WITH_AS(divided(source, "time:wehn"), doctest::Contains("did you mean 'when'?"), InputError);
  for (const char* parts :
       {"", "train", "train=", "train=x", "=1", "train=0,test=1", "a=0.5,b=-0.5,c=1", "a=nan"})
    CHECK_THROWS_WITH_AS(divided(source, "random", 1, parts), doctest::Contains("is no NAME=SHARE"),
                         InputError);
  CHECK_THROWS_WITH_AS(divided(source, "random", 1, "a=0.5,b=0.4"), doctest::Contains("sum up to 0.9"),
                       InputError);
  CHECK_THROWS_WITH_AS(divided(source, "random", 1, "a=0.5,a=0.5"), doctest::Contains("a is there twice"),
                       InputError);
}
