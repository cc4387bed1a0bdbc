#include "data/table/booleans.h"

#include <doctest/doctest.h>

using namespace millrace;
using namespace millrace::data;

TEST_CASE("booleans as programs write them") {
  for (const char* text : {"true", "True", "TRUE"}) CHECK(boolean_of(text) == 1);
  for (const char* text : {"false", "False", "FALSE"}) CHECK(boolean_of(text) == 0);
  for (const char* text : {"", "1", "yes", "tru", "truely", "no"}) CHECK(boolean_of(text) == -1);
}

TEST_CASE("booleans: other ways of writing those that have an id have the same") {
  TextMap<int64_t> ids = {{"False", 3}, {"maybe", 1}};
  add_booleans(ids);
  CHECK(ids == TextMap<int64_t>{{"False", 3}, {"false", 3}, {"FALSE", 3}, {"maybe", 1}});
  TextMap<int64_t> two = {{"true", 1}, {"True", 2}};
  add_booleans(two);
  CHECK(two.at("true") == 1);
  CHECK(two.at("True") == 2);
}

TEST_CASE("booleans: columns whose first value is one") {
  const std::string yes = "True", other = "maybe";
  const auto column = [](ColumnKind kind, std::vector<std::vector<Value>> rows) {
    return holds_booleans(*memory_dataset("x", {{"b", kind}}, std::move(rows)), 0);
  };
  CHECK(column(ColumnKind::text, {{Value()}, {yes}, {other}}));
  CHECK(!column(ColumnKind::text, {{other}, {yes}}));
  CHECK(!column(ColumnKind::text, {{Value()}}));
  CHECK(!column(ColumnKind::integer, {{int64_t{1}}}));
}
