#include <doctest/doctest.h>

#include <millrace/attributes.h>
#include <millrace/error.h>

using namespace millrace;

TEST_CASE("an attribute that is missing or of another kind is a TypeError with its name") {
  const Attributes attributes{{"axis", int64_t{1}}};
  CHECK(attributes.integer("axis") == 1);
  CHECK_THROWS_WITH_AS((void)attributes.number("axis"), doctest::Contains("'axis' is of another kind"),
                       TypeError);
  CHECK_THROWS_WITH_AS((void)attributes.integer("axes"), doctest::Contains("'axes' is missing"), TypeError);
}
