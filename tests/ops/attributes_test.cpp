// What operators declare of their attributes is what graphs hold to.
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/narrow_types.h>
#include <millrace/operator.h>

#include "base/format.h"
#include "ir/operators.h"
#include "support/refusal.h"
#include "support/samples.h"

using namespace millrace;

namespace {

/// A value of each type.
std::vector<Attribute> one_of_each() {
  return {true, int64_t{1}, 1.0, std::string("x"), std::vector<int64_t>{1}, f32, Shape{1}, Array(f32, {1})};
}

/// Values of the attribute's type, just outside its range.
std::vector<Attribute> outside(const AttributeSpec& spec) {
  using Ints = std::vector<int64_t>;
  const AttributeRange& range = spec.range;
  std::vector<double> numbers;
  if (std::isfinite(range.low)) numbers.push_back(range.above ? range.low : range.low - 1);
  if (std::isfinite(range.high)) numbers.push_back(range.high + 1);
  std::vector<Attribute> values;
  for (const double number : numbers) {
    const auto whole = static_cast<int64_t>(number);
    if (spec.type == AttributeType::integer) values.emplace_back(whole);
    if (spec.type == AttributeType::number) values.emplace_back(number);
    if (spec.type == AttributeType::integers) values.emplace_back(Ints(std::max(range.count, 1), whole));
  }
  if (range.count >= 0) values.emplace_back(Ints(range.count + 1, 1));
  if (!range.choices.empty() && spec.type == AttributeType::text) values.emplace_back(std::string("neither"));
  if (!range.choices.empty() && spec.type == AttributeType::dtype) values.emplace_back(f8e8m0);
  return values;
}

std::string refusal(const Operator& op, Attributes attributes, const AttributeSpec& spec, Attribute value) {
  attributes.set(std::string(spec.name), std::move(value));
  return testing::refusal<TypeError>([&] { complete_attributes(op, attributes, {}); });
}

}  // namespace

TEST_CASE("attributes are documented, and refused where they are of another type or out of their range") {
  int ranges = 0;
  for (const Operator* op : library_operators()) {
    if (!op->types || op->is_given()) continue;
    const Attributes& usual = op->samples.at(0).attributes;
    for (const AttributeSpec& spec : op->attributes) {
      CAPTURE(op->name);
      CAPTURE(spec.name);
      CHECK(!spec.doc.empty());
      CHECK((!spec.fallback || spec.fault(*spec.fallback).empty()));
      const std::string begin = fmt::format("attribute '{}' of {} must be ", spec.name, op->name);
      for (const Attribute& value : one_of_each())
        if (value.index() != static_cast<size_t>(spec.type))
          CHECK(refusal(*op, usual, spec, value).starts_with(begin));
      const std::vector<Attribute> wrong = outside(spec);
      for (const Attribute& value : wrong) CHECK(refusal(*op, usual, spec, value).starts_with(begin));
      ranges += !wrong.empty();
    }
  }
  CHECK(ranges > 50);
}

TEST_CASE("attributes of samples lie within their ranges") {
  for (const Operator* op : library_operators()) {
    for (const Sample& sample : op->samples) {
      CAPTURE(describe(*op, sample));
      Attributes complete = sample.attributes;
      CHECK_NOTHROW(complete_attributes(*op, complete, {}));
      for (const AttributeSpec& spec : op->attributes) CHECK(spec.fault(*complete.find(spec.name)) == "");
    }
  }
}
