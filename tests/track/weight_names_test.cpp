#include "track/weight_names.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

using namespace millrace;
using namespace millrace::track;

namespace {

Array matrix(const Shape& shape, std::vector<double> values) { return Array::of(f32, shape, values); }

std::map<std::string, Array> named(const std::map<std::string, Array>& tensors,
                                   const std::vector<std::string>& rules) {
  std::vector<NameRule> parsed;
  for (const std::string& rule : rules) parsed.push_back(parse_name_rule(rule));
  return rename_tensors(tensors, parsed);
}

}  // namespace

TEST_CASE("a star of a rule is letters without a dot, the last one all that follows") {
  const NameRule rule = parse_name_rule("a.*.b.* x.*.y.*");
  CHECK(rule.target("a.12.b.c.d") == "x.12.y.c.d");
  CHECK(rule.target("a..b.") == "x..y.");
  CHECK(!rule.target("a.1.2.b.c"));
  CHECK(!rule.target("a.1.bc"));
  CHECK(parse_name_rule("*b*c *").target("abxc") == "a");
  CHECK(parse_name_rule("ab.c d").target("ab.c") == "d");
  CHECK(!parse_name_rule("ab.c d").target("ab.cd"));
}

TEST_CASE("tensors are put together and transposed by rules") {
  const auto made = named({{"q", matrix({1, 2}, {1, 2})},
                           {"k", matrix({1, 2}, {3, 4})},
                           {"t", matrix({2, 3}, {1, 2, 3, 4, 5, 6})},
                           {"own", matrix({1}, {7})}},
                          {"q qk 1/2", "k qk 2/2", "t turned transposed"});
  CHECK(made.size() == 3);
  CHECK(made.at("qk").identical(matrix({2, 2}, {1, 2, 3, 4})));
  CHECK(made.at("turned").identical(matrix({3, 2}, {1, 4, 2, 5, 3, 6})));
  CHECK(made.at("own").identical(matrix({1}, {7})));
}

TEST_CASE("rules that cannot be followed are refused") {
  const auto refused = [](const std::map<std::string, Array>& tensors, const std::vector<std::string>& rules,
                          const char* message) {
    CHECK_THROWS_WITH_AS(named(tensors, rules), doctest::Contains(message), InputError);
  };
  const std::map<std::string, Array> two = {{"a", matrix({1}, {1})}, {"b", matrix({2, 2}, {1, 2, 3, 4})}};
  refused(two, {"a x", "b x"}, "a and b would both become x");
  refused(two, {"a x 1/2", "b x 2/2"}, "b is f32[2, 2] beside f32[1]");
  refused(two, {"a x 2/2"}, "number 1 is not in the file (number 2 is a)");
  refused(two, {"a x transposed"}, "is no matrix");
  for (const char* rule : {"a", "a b c", "a b 3/2", "a b 0/2", "a b 1/2x", ""})
    refused(two, {rule}, "is not a pattern of names");
  refused(two, {"a b*"}, "more * than");
}
