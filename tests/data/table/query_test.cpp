#include "data/table/query.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/file.h"
#include "data/formats/open_dataset.h"
#include "data/table/select.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;

TEST_CASE("what is missing is neither equal to anything nor different from it") {
  const testing::TempFolder folder;
  write_file(folder / "x.csv", "a,t\n1,x\n,y\n3,\n");
  const auto table = open_dataset(folder / "x.csv");
  using Samples = std::vector<int64_t>;
  for (const auto& [condition, wanted] : std::vector<std::pair<std::string, Samples>>{
           {"a = 1", {0}},
           {"a != 1", {2}},
           {"not a = 1", {2}},
           {"a <= 3", {0, 2}},
           {"t != 'x'", {1}},
           {"a != 1 or t = 'y'", {1, 2}},
           {"a not in (1)", {2}},
           {"t not like 'x*'", {1}},
           {"not (a = 1 and t = 'z')", {0, 1, 2}},  // one of the two is wrong, whatever the other is
       })
    CHECK_MESSAGE(matching(*table, Query::parse(condition)) == wanted, condition);
}

TEST_CASE("whole numbers are compared exactly, also with what is none") {
  const testing::TempFolder folder;
  write_file(folder / "x.csv", "n\n2\n3\n9007199254740993\n");
  const auto table = open_dataset(folder / "x.csv");
  using Samples = std::vector<int64_t>;
  for (const auto& [condition, wanted] :
       std::vector<std::pair<std::string, Samples>>{{"n < 2.5", {0}},
                                                    {"n > 2.5", {1, 2}},
                                                    {"n = 3.5", {}},
                                                    {"n = 3.0", {1}},
                                                    {"n in (2.5, 3)", {1}},
                                                    {"n = 9007199254740993", {2}},
                                                    {"n = 9007199254740992", {}},  // the double of both
                                                    {"n > 9007199254740992", {2}}})
    CHECK_MESSAGE(matching(*table, Query::parse(condition)) == wanted, condition);
}

TEST_CASE("a quote within a text is written twice") {
  const testing::TempFolder folder;
  write_file(folder / "x.csv", "a b,t\n1,it's\n2,its\n3,\"a \"\"b\"\"\"\n");
  const auto table = open_dataset(folder / "x.csv");
  using Samples = std::vector<int64_t>;
  for (const auto& [condition, wanted] : std::vector<std::pair<std::string, Samples>>{
           {"t = 'it\'\'s'", {0}}, {"t = \"it's\"", {0}}, {"t = \"a \"\"b\"\"\"", {2}}, {"`a b` = 2", {1}}})
    CHECK_MESSAGE(matching(*table, Query::parse(condition)) == wanted, condition);
  CHECK_THROWS_WITH_AS(Query::parse("t = 'it''s"), doctest::Contains("has no end"), InputError);
}
