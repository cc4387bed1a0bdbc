#include "passes/kept_axis.h"

#include <cstring>
#include <doctest/doctest.h>
#include <map>
#include <set>

#include "backend/ref/evaluate.h"
#include "ir/operators.h"
#include "support/samples.h"

using namespace millrace;

namespace {

/// Positions `from` of an axis, in that order.
Array picked(const Array& array, int axis, const std::vector<int64_t>& from) {
  Shape shape = array.shape();
  int64_t outer = 1, inner = array.dtype().bytes();
  for (int d = 0; d < axis; ++d) outer *= shape[d].size();
  for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d].size();
  const int64_t size = shape[axis].size();
  shape[axis] = static_cast<int64_t>(from.size());
  Array result(array.dtype(), shape);
  auto* to = reinterpret_cast<std::byte*>(result.data());
  const auto* all = reinterpret_cast<const std::byte*>(array.data());
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t i : from) {
      std::memcpy(to, all + (o * size + i) * inner, static_cast<size_t>(inner));
      to += inner;
    }
  return result;
}

bool alike(const Array& a, const Array& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

/// The node with another size of the result's axis, of these operands.
Array computed(const Node& node, Attributes attributes, const std::vector<Array>& operands) {
  Graph graph;
  std::vector<Value> values;
  for (const Array& operand : operands) values.push_back(graph.input("x", operand.type()));
  graph.set_outputs({graph.add(*node.op, values, std::move(attributes))});
  return ref::evaluate(graph, operands)[0];
}

/// Its own, and such as keep an axis where those do not.
std::vector<Sample> samples_of(const Operator& op) {
  using Ints = std::vector<int64_t>;
  std::vector<Sample> samples = op.samples;
  const auto add = [&](std::string_view name, const Shape& shape, Attributes attributes) {
    if (op.name == name) samples.push_back({.operands = {{f32, shape}}, .attributes = std::move(attributes)});
  };
  add("slice", {4, 5, 6}, {{"starts", Ints{0, 1, 0}}, {"ends", Ints{4, 3, 6}}});
  add("pad", {4, 5, 6}, {{"low", Ints{0, 1, 0}}, {"high", Ints{0, 0, 0}}});
  for (const Shape& to : {Shape{4, 30}, {4, 5, 2, 3}, {20, 6}, {1, 4, 1, 5, 6}})
    add("reshape", {4, 5, 6}, {{"shape", to}});
  return samples;
}

}  // namespace

TEST_CASE(
    "positions of an axis that an operator keeps are made of the operands' own, whatever is at others") {
  std::set<std::string_view> seen;
  for (const Operator* op : library_operators()) {
    if (op->takes_body() || op->is_given() || op->random) continue;
    for (const Sample& sample : samples_of(*op)) {
      if (sample.operands.empty()) continue;
      CAPTURE(describe(*op, sample));
      const Graph graph = make_graph(*op, sample);
      const Node& node = graph.node(graph.outputs()[0]);
      const std::vector<Array> operands = make_inputs(*op, sample);
      const Array whole = ref::evaluate(graph, operands)[0];
      // Axis of the result → of each operand that it comes from.
      std::map<int, std::map<size_t, int>> kept;
      for (size_t k = 0; k < operands.size(); ++k)
        for (int axis = 0; axis < operands[k].shape().rank(); ++axis)
          if (const int at = kept_axis(node, sample.operands, static_cast<int>(k), axis); at >= 0) {
            REQUIRE(at < whole.shape().rank());
            REQUIRE(whole.shape()[at] == operands[k].shape()[axis]);
            REQUIRE(!kept[at].contains(k));
            kept[at][k] = axis;
          }
      for (const auto& [at, axes] : kept) {
        const int64_t size = whole.shape()[at].size();
        if (size < 2) continue;
        seen.insert(op->name);
        std::vector<int64_t> turned, some;
        for (int64_t i = size; i-- > 0;) turned.push_back(i);
        for (int64_t i = 0; i < size; i += 2) some.push_back(i);
        for (const auto& places : {turned, some}) {
          std::vector<Array> changed = operands;
          for (const auto& [k, axis] : axes) changed[k] = picked(operands[k], axis, places);
          Attributes attributes = node.attributes;
          if (op->set_axis) op->set_axis(attributes, at, static_cast<int64_t>(places.size()));
          CHECK(alike(computed(node, std::move(attributes), changed), picked(whole, at, places)));
        }
      }
    }
  }
  for (const char* name : {"add", "select", "cast", "sum", "argmax", "matmul", "gather", "slice", "concat",
                           "pad", "reshape", "transpose", "broadcast"})
    CHECK_MESSAGE(seen.contains(name), std::string(name));
}

TEST_CASE("axes that are shifted, cut or summed over are not kept") {
  const auto at = [](std::string_view op, const std::vector<Type>& operands, const Attributes& attributes,
                     int operand, int axis) {
    Graph graph;
    std::vector<Value> values;
    for (const Type& type : operands) values.push_back(graph.input("x", type));
    return kept_axis(graph.node(graph.add(op, values, attributes)), operands, operand, axis);
  };
  using Ints = std::vector<int64_t>;
  const Type x{f32, {4, 6}};
  CHECK(at("slice", {x}, {{"starts", Ints{1, 0}}, {"ends", Ints{4, 6}}}, 0, 0) == -1);
  CHECK(at("slice", {x}, {{"starts", Ints{1, 0}}, {"ends", Ints{4, 6}}}, 0, 1) == 1);
  // As large as before, and moved by one.
  CHECK(at("concat", {x, x}, {{"axis", int64_t{0}}}, 1, 0) == -1);
  CHECK(at("pad", {x}, {{"low", Ints{1, 0}}, {"high", Ints{0, 0}}}, 0, 0) == -1);
  CHECK(at("reshape", {x}, {{"shape", Shape{6, 4}}}, 0, 0) == -1);
  CHECK(at("reshape", {x}, {{"shape", Shape{4, 1, 2, 3}}}, 0, 0) == 0);
  CHECK(at("reshape", {{f32, {6, 3}}}, {{"shape", Shape{3, 6}}}, 0, 1) == -1);
  CHECK(at("reshape", {x}, {{"shape", Shape{2, 2, 6}}}, 0, 1) == 2);
  CHECK(at("reshape", {{f32, {1, 4, 6}}}, {{"shape", Shape{4, 1, 6}}}, 0, 1) == 0);
  CHECK(at("sum", {x}, {{"axes", Ints{0}}}, 0, 0) == -1);
  CHECK(at("sum", {x}, {{"axes", Ints{0}}}, 0, 1) == 0);
  CHECK(at("matmul", {x, {f32, {6, 5}}}, {}, 0, 1) == -1);
  CHECK(at("matmul", {x, {f32, {6, 5}}}, {}, 1, 1) == 1);
  CHECK(at("gather", {x, {i64, {3, 2}}}, {{"axis", int64_t{0}}}, 0, 0) == -1);
  CHECK(at("gather", {x, {i64, {3, 2}}}, {{"axis", int64_t{0}}}, 0, 1) == 2);
  CHECK(at("gather", {x, {i64, {3, 2}}}, {{"axis", int64_t{1}}}, 1, 1) == 2);
  CHECK(at("broadcast", {{f32, {1, 6}}}, {{"shape", Shape{4, 6}}}, 0, 0) == -1);
}
