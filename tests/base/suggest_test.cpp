#include "base/suggest.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace millrace;

TEST_CASE("edit distance counts insertions, deletions, substitutions and swaps of neighbours, not case") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("flpi", "flip") == 1);
  CHECK(edit_distance("Flip", "flip") == 0);
}

TEST_CASE("nearest finds the closest candidate, the first of equals, and nothing among none") {
  const std::vector<std::string> names = {"epochs", "batch", "precision", "bath"};
  CHECK(nearest("epoch", names) == "epochs");
  CHECK(nearest("bacth", names) == "batch");
  CHECK(nearest("batc", names) == "batch");
  CHECK(nearest("x", {}) == "");
  CHECK(nearest("colums", std::vector<std::string>{"column", "columns", "colour"}) == "columns");
  CHECK(nearest("columm", std::vector<std::string>{"columns", "column", "colour"}) == "column");
}

TEST_CASE("what is far from every candidate gets no suggestion, or all of them") {
  const std::vector<std::string> names = {"flip", "rotate", "grey"};
  CHECK(did_you_mean("flpi", names) == "; did you mean 'flip'?");
  CHECK(did_you_mean("rot", names) == "; did you mean 'rotate'?");
  CHECK(did_you_mean("foo", names) == "");
  CHECK(did_you_mean("foo", names, ".") == ".");
  CHECK(did_you_mean_or_list("foo", names) == "; there are: flip, rotate, grey");
  CHECK(did_you_mean("foo", {}) == "");
  // What both begin with does not make them alike.
  CHECK(near("train.foo", std::vector<std::string>{"train.seed"}) == "");
  CHECK(near("train.sed", std::vector<std::string>{"train.seed"}) == "train.seed");
  CHECK(near("trian.seed", std::vector<std::string>{"train.seed"}) == "train.seed");
}
