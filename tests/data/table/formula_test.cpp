#include "data/table/formula.h"

#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

using namespace millrace;
using namespace millrace::data;

namespace {

std::unique_ptr<Dataset> formula_rows() {
  return memory_dataset(
      "rows", {{"a", ColumnKind::integer}, {"b c", ColumnKind::real}, {"t", ColumnKind::text}},
      {{int64_t{4}, 0.5, std::string("x")}, {int64_t{-9}, std::monostate(), std::string("y")}});
}

double formula_of(const std::string& text) { return formula_values(text, *formula_rows())[0]; }

}  // namespace

TEST_CASE("formulas bind as arithmetic does") {
  CHECK(formula_of("1 + 2 * 3 - 4 / 8") == 6.5);
  CHECK(formula_of("(1 + 2) * -3") == -9);
  CHECK(formula_of("8 - 4 - 2") == 2);
  CHECK(formula_of("16 / 4 / 2") == 2);
  CHECK(formula_of("- -2 + a") == 6);
  CHECK(formula_of("a * `b c` + 1e1") == 12);
  CHECK(formula_of("max(a, 3) + min(a, 3) + abs(-a) + sqrt(a) + log(exp(2))") == doctest::Approx(15));
  const auto values = formula_values("a + `b c`", *formula_rows());
  CHECK(values[0] == 4.5);
  CHECK(std::isnan(values[1]));
}

TEST_CASE("what is no formula shows its place") {
  for (const auto& [text, wanted] : {std::pair{"1 +", "is missing here"},
                                     {"(1", "a ) is missing"},
                                     {"a b", "one thing too many"},
                                     {"sin(a)", "no function 'sin'"},
                                     {"min(a)", "a , is missing"},
                                     {"`a", "has no end"},
                                     {"1 $ 2", "too many"},
                                     {"`Größe` $ 2", "\n  `Größe` $ 2\n          ^"}})
    CHECK_THROWS_WITH_AS(formula_of(text), doctest::Contains(wanted), InputError);
  CHECK_THROWS_WITH_AS(formula_of("t + 1"), doctest::Contains("holds no numbers"), InputError);
  CHECK_THROWS_WITH_AS(formula_of("aa + 1"), doctest::Contains("did you mean 'a'"), InputError);
  CHECK_THROWS_AS(formula_of(std::string(1000, '(')), InputError);
}
