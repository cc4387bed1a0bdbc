#include "data/codecs/text/first_group.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

using namespace millrace;
using namespace millrace::data;

TEST_CASE("the first group of a match, or all of it") {
  CHECK(FirstGroup("^([0-9])_").find("7_ann_12") == "7");
  CHECK(FirstGroup("[a-z]+").find("7_ann_12") == "ann");
  CHECK(FirstGroup("(x)|ann").find("7_ann_12") == std::nullopt);
  CHECK(FirstGroup("^x").find("7_ann_12") == std::nullopt);
  CHECK(FirstGroup("_(.)").find("a_\xc3\xbc_b") == "\xc3\xbc");
  CHECK_THROWS_AS(FirstGroup("(("), InputError);
}

TEST_CASE("long texts and searches without an end end") {
  const std::string text(1 << 20, 'a');
  CHECK(FirstGroup("(b)$").find(text + "b") == "b");
  CHECK_THROWS_AS((void)FirstGroup("(a*.)").find(text), InputError);  // not a crash
  CHECK_THROWS_AS((void)FirstGroup("^(a+)+$").find(text.substr(0, 40) + "b"), InputError);
}
