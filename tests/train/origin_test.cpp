#include "train/origin.h"

#include <doctest/doctest.h>
#include <fstream>

#include <millrace/error.h>

#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::train;

namespace {

train::Origin made_up() {
  train::Origin origin = origin_now(7, 3);
  origin.data = {{"train", {"a.csv", 891, 800, "abc"}}, {"test", {"b.csv", 10, 10, "def"}}};
  return origin;
}

}  // namespace

TEST_CASE("an origin says by what a run was begun, and reads back") {
  const testing::TempFolder folder;
  const RunFolder run = RunFolder::create(folder.path() / "run", "run", task::Recipe());
  CHECK(read_origins(run).empty());
  write_origin(run, made_up());
  // A line that a kill cut off must not spoil the next.
  std::ofstream(run.origin(), std::ios::app) << "{\"time\": ";
  CHECK(read_origins(run).size() == 1);
  write_origin(run, made_up());
  const auto read = read_origins(run);
  REQUIRE(read.size() == 2);
  const train::Origin& last = read.back();
  CHECK(last.step == 7);
  CHECK(last.seed == 3);
  CHECK_FALSE(last.command.empty());
  CHECK(last.program.size() == 32);
  CHECK(last.threads >= 1);
  CHECK(last.command == made_up().command);
  REQUIRE(last.find("test"));
  CHECK(last.find("test")->digest == "def");
  CHECK(*last.find("train") == data::Fingerprint{"a.csv", 891, 800, "abc"});
  CHECK_FALSE(last.find("other"));
}

TEST_CASE("a line that says nothing is named") {
  CHECK_THROWS_WITH_AS(parse_origins("{}\n", "o.jsonl"), doctest::Contains("o.jsonl:1: says nothing"),
                       InputError);
  CHECK_THROWS_AS(parse_origins("[1]\n", "o.jsonl"), InputError);
  CHECK_THROWS_AS(parse_origins("{\"time\": 3}\n", "o.jsonl"), InputError);
  CHECK(parse_origins("", "o.jsonl").empty());
}
