#include <algorithm>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/format.h"
#include "ir/missing_parts.h"
#include "ir/operators.h"

using namespace millrace;

TEST_CASE("all operators are complete") { CHECK_NOTHROW(check_operators()); }

TEST_CASE("an operator that lacks a part is named with the part") {
  const auto missing = [](void (*damage)(Operator&), std::string_view name = "add") {
    Operator op = get_operator(name);
    damage(op);
    const Operator* list[] = {&op};
    return fmt::format("{}", fmt::join(missing_parts(list), "; "));
  };
  CHECK(missing([](Operator&) {}) == "");
  CHECK(missing([](Operator& op) { op.doc = ""; }) == "add lacks a doc");
  CHECK(missing([](Operator& op) { op.types = nullptr; }) == "add lacks a type rule");
  CHECK(missing([](Operator& op) { op.scalar = nullptr; }) == "add lacks a scalar body");
  CHECK(missing([](Operator& op) { op.samples.clear(); }) == "add lacks samples");
  CHECK(missing([](Operator& op) { op.gradient = nullptr; }) ==
        "add lacks a gradient, or differentiable = false");
  CHECK(missing([](Operator& op) { op.element = nullptr; }, "pad") == "pad lacks an element body");
  CHECK(missing([](Operator& op) { op.reduction.reset(); }, "max") == "max lacks the kind of reduction");
  CHECK(missing([](Operator& op) { op.attributes[0].doc = ""; }, "softmax") ==
        "softmax lacks a doc of attribute axis");
  CHECK(missing([](Operator& op) { op.attributes[1].fallback = -1.0; }, "rms_norm") ==
        "rms_norm lacks a default within the range of attribute eps");
  CHECK(missing([](Operator& op) { op.body = nullptr; }, "relu").starts_with("relu lacks a body"));
  const Operator& op = get_operator("mul");
  const Operator* twice[] = {&op, &op};
  CHECK(missing_parts(twice) == std::vector<std::string>{"mul is there twice"});
}

TEST_CASE("an unknown operator's name gives the nearest one") {
  CHECK_THROWS_WITH_AS(get_operator("reshap"), "there is no operator 'reshap'; the nearest is 'reshape'",
                       InputError);
}

TEST_CASE("every dtype that an operator's rule accepts has a sample") {
  for (const Operator* op : library_operators()) {
    for (const Sample& sample : op->samples) {
      if (sample.operands.empty()) continue;
      const DType own = sample.operands[0].dtype;
      for (const DType dtype : all_dtypes()) {
        std::vector<Type> operands = sample.operands;
        for (Type& type : operands)
          if (type.dtype == own) type.dtype = dtype;
        Graph graph;
        std::vector<Value> values;
        for (const Type& type : operands) values.push_back(graph.input("x", type));
        try {
          graph.add(*op, values, sample.attributes);
        } catch (const TypeError&) {
          continue;
        }
        const bool covered = std::any_of(op->samples.begin(), op->samples.end(), [&](const Sample& other) {
          return std::any_of(other.operands.begin(), other.operands.end(),
                             [&](const Type& type) { return type.dtype == dtype; });
        });
        CAPTURE(op->name);
        CAPTURE(dtype.name());
        CHECK(covered);
      }
    }
  }
}
