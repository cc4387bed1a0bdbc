// Samples drive the tests of an operator, so they must be of every shape that is easily forgotten.
#include <algorithm>
#include <doctest/doctest.h>
#include <functional>
#include <set>

#include <millrace/error.h>
#include <millrace/operator.h>

#include "ir/operators.h"

using namespace millrace;

namespace {

using Property = std::function<bool(const Shape&)>;

/// The shapes of operands and of attributes that are shapes. The key of random numbers is always i64[2].
std::vector<Shape> shapes_of(const Operator& op, const Sample& sample) {
  std::vector<Shape> shapes;
  if (op.op_class != OpClass::generator)
    for (const Type& type : sample.operands) shapes.push_back(type.shape);
  for (const auto& [name, value] : sample.attributes.items())
    if (const auto* shape = std::get_if<Shape>(&value)) shapes.push_back(*shape);
  return shapes;
}

bool has(const Operator& op, const Property& property) {
  return std::any_of(op.samples.begin(), op.samples.end(), [&](const Sample& sample) {
    const std::vector<Shape> shapes = shapes_of(op, sample);
    return std::any_of(shapes.begin(), shapes.end(), property);
  });
}

bool has_size(const Shape& shape, const std::function<bool(int64_t)>& wanted) {
  return std::any_of(shape.begin(), shape.end(), [&](const Dim& dim) { return wanted(dim.size()); });
}

/// Whether the type rule takes the sample with all of its shapes changed.
bool accepts(const Operator& op, Sample sample, const std::function<Shape(const Shape&)>& change) {
  Graph graph;
  std::vector<Value> values;
  for (Type& type : sample.operands) {
    if (op.op_class != OpClass::generator) type.shape = change(type.shape);
    values.push_back(graph.input("x", type));
  }
  const std::vector<std::pair<std::string, Attribute>> given(sample.attributes.items().begin(),
                                                             sample.attributes.items().end());
  for (const auto& [name, value] : given)
    if (const auto* shape = std::get_if<Shape>(&value)) sample.attributes.set(name, change(*shape));
  try {
    graph.add(op, values, sample.attributes);
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// Whether the rule takes some sample with one of its sizes, wherever it stands, replaced by `size`.
bool accepts_size(const Operator& op, int64_t size) {
  for (const Sample& sample : op.samples) {
    std::set<int64_t> sizes;
    for (const Shape& shape : shapes_of(op, sample))
      for (const Dim& dim : shape) sizes.insert(dim.size());
    for (const int64_t old : sizes) {
      const auto change = [&](const Shape& shape) {
        Shape changed;
        for (const Dim& dim : shape) changed.push_back(dim == Dim(old) ? Dim(size) : dim);
        return changed;
      };
      if (accepts(op, sample, change)) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("every operator has samples of rank 0, sizes 0 and 1 and odd sizes, where its rule accepts them") {
  for (const Operator* op : library_operators()) {
    // What carries a body of its own has no shapes of its own.
    if (op->is_given() || op->takes_body()) continue;
    CAPTURE(op->name);
    const bool rank_0 = std::any_of(op->samples.begin(), op->samples.end(), [&](const Sample& sample) {
      return accepts(*op, sample, [](const Shape&) { return Shape{}; });
    });
    if (rank_0) CHECK_MESSAGE(has(*op, [](const Shape& s) { return s.empty(); }), "rank 0");
    if (accepts_size(*op, 0))
      CHECK_MESSAGE(has(*op, [](const Shape& s) { return s.count() == 0; }), "size 0");
    if (accepts_size(*op, 1))
      CHECK_MESSAGE(has(*op, [](const Shape& s) { return has_size(s, [](int64_t n) { return n == 1; }); }),
                    "size 1");
    CHECK_MESSAGE(
        has(*op, [](const Shape& s) { return has_size(s, [](int64_t n) { return n > 2 && n % 2 == 1; }); }),
        "an odd size");
  }
}
