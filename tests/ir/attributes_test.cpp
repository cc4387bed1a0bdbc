#include <cmath>
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

TEST_CASE("a declared attribute says why it cannot be a value") {
  using Ints = std::vector<int64_t>;
  const AttributeSpec heads("heads", AttributeType::integer, "", {.low = 1, .high = 4294967295});
  CHECK(heads.type == AttributeType::integer);
  CHECK(!heads.fallback);
  CHECK(heads.fault(int64_t{1}) == "");
  CHECK(heads.fault(int64_t{4294967295}) == "");
  CHECK(heads.fault(int64_t{0}) == "must be from 1 to 4294967295, not 0");
  CHECK(heads.fault(INT64_MAX) == "must be from 1 to 4294967295, not 9223372036854775807");
  CHECK(heads.fault(1.0) == "must be a whole number, not a number");
  CHECK(heads.fault(Array(f32, {1})) == "must be a whole number, not an array");

  const AttributeSpec share("share", 0.5, "", {.low = 0, .high = 1, .above = true});
  CHECK(share.type == AttributeType::number);
  CHECK(share.fault(1.0) == "");
  CHECK(share.fault(0.0) == "must be more than 0 and at most 1, not 0");
  CHECK(share.fault(NAN) == "must be more than 0 and at most 1, not nan");
  CHECK(AttributeSpec("most", 0.5, "", {.high = 2}).fault(3.5) == "must be at most 2, not 3.5");
  CHECK(AttributeSpec("delta", 0.5, "", {.low = 0, .above = true}).fault(INFINITY) == "");
  for (const double any : std::initializer_list<double>{-INFINITY, 0, NAN})
    CHECK(AttributeSpec("any", 0.0, "").fault(any) == "");

  const AttributeSpec pads("pads", Ints{0, 0}, "", {.low = 0, .count = 2});
  CHECK(pads.fault(Ints{3, 0}) == "");
  CHECK(pads.fault(Ints{3}) == "must be 2 numbers, each at least 0, not [3]");
  CHECK(pads.fault(Ints{3, -1}) == "must be 2 numbers, each at least 0, not [3, -1]");
  CHECK(AttributeSpec("steps", Ints{}, "", {.low = 1}).fault(Ints{0}) ==
        "must be numbers, each at least 1, not [0]");
  CHECK(AttributeSpec("pair", Ints{0, 0}, "", {.count = 2}).fault(Ints{}) == "must be 2 numbers, not []");
  CHECK(AttributeSpec("axes", Ints{}, "").fault(Ints{-1, 7}) == "");

  const AttributeSpec mode("mode", std::string("mean"), "", {.choices = {"mean", "none"}});
  CHECK(mode.fault(std::string("none")) == "");
  CHECK(mode.fault(std::string("nome")) == "must be one of mean, none, not 'nome'; did you mean 'none'?");
  CHECK(mode.fault(true) == "must be a text, not true or false");
  const AttributeSpec dtype("dtype", AttributeType::dtype, "", {.choices = {"bf16", "f64"}});
  CHECK(dtype.fault(f64) == "");
  CHECK(dtype.fault(i8) == "must be one of bf16, f64, not 'i8'");
  CHECK(AttributeSpec("to", AttributeType::dtype, "").fault(Shape{1}) == "must be a dtype, not a shape");
}

TEST_CASE("a copy of attributes changes alone") {
  Attributes first = {{"axis", int64_t{1}}, {"keep", true}};
  Attributes second = first;
  const Attributes third = second;
  second.set("axis", int64_t{2});
  second.set("limit", 0.5);
  CHECK(first.integer("axis") == 1);
  CHECK(first == third);
  CHECK_FALSE(first.find("limit"));
  CHECK(second.integer("axis") == 2);
  CHECK(second.number("limit") == 0.5);
  CHECK_FALSE(first == second);
  first = {};
  CHECK(first.items().empty());
  CHECK(third.flag("keep"));
}
