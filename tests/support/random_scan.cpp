#include "support/random_scan.h"

#include <millrace/random.h>

#include "autodiff/gradient.h"
#include "base/format.h"
#include "ops/build.h"
#include "ops/cond.h"
#include "ops/scan.h"

namespace millrace::test {
namespace {

constexpr int64_t width = 12;

class BodyMaker {
 public:
  BodyMaker(uint64_t seed, int64_t rows, bool mixes_rows)
      : random_(seed, 31), rows_(rows), mixes_rows_(mixes_rows), b_(graph_) {}

  /// Inputs: carries and slices [rows, width], two matrices [width, width], a bias [width].
  Graph run(int carries, int slices, int steps) {
    for (int k = 0; k < carries + slices; ++k)
      values_.push_back(graph_.input(fmt::format("x{}", k), {f32, {rows_, width}}));
    for (int k = 0; k < 2; ++k)
      matrices_.push_back(graph_.input(fmt::format("w{}", k), {f32, {width, width}}));
    bias_ = graph_.input("b", {f32, {width}});
    for (int i = 0; i < steps; ++i) values_.push_back(step());
    std::vector<Value> outputs;
    // The carry always moves on by itself too, so that no gradient is exactly zero by chance.
    for (int k = 0; k < carries; ++k) {
      const Value moved = b_.unary("tanh", b_.add(values_[k], values_[values_.size() - 1 - k]));
      // A sum that nothing else reads.
      outputs.push_back(k == 1 ? b_.add(values_[k], b_.mul(values_.back(), 0.5)) : moved);
    }
    for (int k = 0; k < 3; ++k) outputs.push_back(pick());
    outputs.push_back(b_.sum(b_.matmul(pick(), matrices_[0]), {1}, false));
    outputs.push_back(outputs[0]);
    graph_.set_outputs(outputs);
    return std::move(graph_);
  }

 private:
  Value pick() { return values_[random_.below(static_cast<uint32_t>(values_.size()))]; }

  Value step() {
    switch (random_.below(mixes_rows_ ? 9 : 8)) {
      case 0:
        return b_.unary("tanh", b_.matmul(pick(), matrices_[random_.below(2)], false, random_.below(2) != 0));
      case 1:
        return b_.unary("sigmoid", b_.add(pick(), bias_));
      case 2:
        return b_.unary("tanh", b_.mul(pick(), pick()));
      case 3:
        return b_.sub(pick(), b_.unary("tanh", pick()));
      case 4: {
        const Value v = pick();
        const auto part = [&](int64_t from, int64_t to) {
          return graph_.add(
              "slice", {v},
              {{"starts", std::vector<int64_t>{0, from}}, {"ends", std::vector<int64_t>{rows_, to}}});
        };
        return graph_.add("concat", {b_.unary("sin", part(5, width)), part(0, 5)}, {{"axis", int64_t{1}}});
      }
      case 5:
        return b_.softmax(pick(), -1);
      case 6:
        return b_.unary("tanh", b_.sub(pick(), b_.mean(pick(), {1}, true)));
      case 7: {
        const Value v = b_.reshape(pick(), {rows_, 3, 4});
        return b_.reshape(b_.transpose(v, {0, 2, 1}), {rows_, width});
      }
      default:
        return b_.unary("tanh", b_.add(pick(), b_.sum(pick(), {0}, true)));
    }
  }

  RandomStream random_;
  int64_t rows_;
  bool mixes_rows_;
  Graph graph_;
  ops::Build b_;
  std::vector<Value> values_, matrices_;
  Value bias_;
};

}  // namespace

namespace {

/// A random loop or cond with its gradients, whose inputs are random, but for those that are given.
class Maker {
 public:
  explicit Maker(RandomStream& random) : random_(random) {}
  Graph& graph() { return result_.graph; }

  Value fresh(const Type& type) {
    Array array(type);
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, random_.uniform() - 0.5);
    return given(array);
  }
  Value given(const Array& array) {
    result_.inputs.push_back(array);
    return graph().input(fmt::format("x{}", result_.inputs.size()), array.type());
  }

  /// The results of the node, and their gradients with respect to all inputs so far.
  RandomGraph finish(Value node) {
    std::vector<Value> outputs, floats, seeds, wrt;
    for (const Value& input : graph().inputs())
      if (graph().type(input).dtype.is_float()) wrt.push_back(input);
    for (size_t r = 0; r < graph().node(node).types.size(); ++r) {
      outputs.push_back({node.node, static_cast<int32_t>(r)});
      if (graph().type(outputs.back()).dtype.is_float()) floats.push_back(outputs.back());
    }
    for (const Value& output : floats) seeds.push_back(fresh(graph().type(output)));
    for (const Value& gradient : gradients(graph(), floats, seeds, wrt)) outputs.push_back(gradient);
    graph().set_outputs(outputs);
    return std::move(result_);
  }

 private:
  RandomStream& random_;
  RandomGraph result_;
};

}  // namespace

RandomGraph random_cond(uint64_t seed, int64_t rows, bool condition) {
  RandomStream random(seed, 33);
  const int values = 1 + static_cast<int>(random.below(3));
  const auto branch = [&](uint64_t other) {
    return BodyMaker(2 * seed + other, rows, true).run(values, 0, 3 + static_cast<int>(random.below(8)));
  };
  const Graph body = ops::join_branches(branch(0), branch(1));
  Maker maker(random);
  const Value chosen = maker.given(Array::scalar(boolean, condition ? 1 : 0));
  std::vector<Value> operands;
  for (const Value& input : body.inputs()) operands.push_back(maker.fresh(body.type(input)));
  return maker.finish(ops::add_cond(maker.graph(), chosen, operands, std::make_shared<const Graph>(body)));
}

RandomGraph random_while(uint64_t seed, int64_t rows, int64_t limit, int64_t steps) {
  RandomStream random(seed, 34);
  const int values = 1 + static_cast<int>(random.below(3));
  const Graph inner = BodyMaker(seed, rows, true).run(values, 0, 3 + static_cast<int>(random.below(8)));
  // Carries: going, the step, the values; invariants: the number of steps, what the inner graph takes
  // besides.
  Graph body;
  ops::Build b(body);
  body.input("going", {boolean, {}});
  const Value step = body.input("step", {i64, {}});
  std::vector<Value> arguments;
  for (const Value& input : inner.inputs()) {
    if (std::ssize(arguments) == values) body.input("steps", {i64, {}});
    arguments.push_back(body.input(fmt::format("a{}", arguments.size()), inner.type(input)));
  }
  const Value end = body.inputs()[static_cast<size_t>(values) + 2], next = b.add(step, 1);
  std::vector<Value> outputs = {body.add("less", {next, end}), next};
  for (const Value& output : inline_graph(body, inner, arguments)) outputs.push_back(output);
  body.set_outputs(outputs);
  Maker maker(random);
  ops::ScanOperands over;
  over.conditional = true;
  over.length = limit;
  for (size_t k = 0; k < body.inputs().size(); ++k) {
    const bool carried = std::ssize(over.carries) < values + 2;
    const Type type = body.type(body.inputs()[k]);
    Value value;
    if (k == 0)
      value = maker.given(Array::scalar(boolean, steps > 0 ? 1 : 0));
    else if (type.dtype == i64)
      value = maker.given(Array::scalar(i64, k == 1 ? 0 : static_cast<double>(steps)));
    else
      value = maker.fresh(type);
    (carried ? over.carries : over.invariants).push_back(value);
  }
  return maker.finish(ops::add_scan(maker.graph(), over, std::make_shared<const Graph>(std::move(body))));
}

RandomGraph random_scan(uint64_t seed, int64_t rows, int64_t length, bool mixes_rows) {
  RandomStream random(seed, 32);
  const int carries = 1 + static_cast<int>(random.below(2)), slices = static_cast<int>(random.below(3));
  Graph body = BodyMaker(seed, rows, mixes_rows).run(carries, slices, 3 + static_cast<int>(random.below(8)));
  Maker maker(random);
  ops::ScanOperands over;
  over.length = length;
  over.reverse = random.below(2) != 0;
  for (size_t k = 0; k < body.inputs().size(); ++k) {
    Type type = body.type(body.inputs()[k]);
    const bool carry = static_cast<int>(k) < carries,
               slice = !carry && static_cast<int>(k) < carries + slices;
    if (slice) type.shape.insert(type.shape.begin(), Dim(length));
    (carry ? over.carries : slice ? over.sequences : over.invariants).push_back(maker.fresh(type));
  }
  return maker.finish(ops::add_scan(maker.graph(), over, std::make_shared<const Graph>(std::move(body))));
}

}  // namespace millrace::test
