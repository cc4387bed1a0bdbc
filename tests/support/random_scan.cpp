#include "support/random_scan.h"

#include <millrace/random.h>

#include "autodiff/gradient.h"
#include "base/format.h"
#include "ops/build.h"
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

RandomGraph random_scan(uint64_t seed, int64_t rows, int64_t length, bool mixes_rows) {
  RandomStream random(seed, 32);
  const int carries = 1 + static_cast<int>(random.below(2)), slices = static_cast<int>(random.below(3));
  Graph body = BodyMaker(seed, rows, mixes_rows).run(carries, slices, 3 + static_cast<int>(random.below(8)));
  RandomGraph result;
  Graph& graph = result.graph;
  const auto fresh = [&](const Type& type) {
    Array array(type);
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, random.uniform() - 0.5);
    result.inputs.push_back(array);
    return graph.input(fmt::format("x{}", result.inputs.size()), type);
  };
  ops::ScanOperands over;
  over.length = length;
  over.reverse = random.below(2) != 0;
  for (size_t k = 0; k < body.inputs().size(); ++k) {
    Type type = body.type(body.inputs()[k]);
    const bool carry = static_cast<int>(k) < carries,
               slice = !carry && static_cast<int>(k) < carries + slices;
    if (slice) type.shape.insert(type.shape.begin(), Dim(length));
    (carry ? over.carries : slice ? over.sequences : over.invariants).push_back(fresh(type));
  }
  const Value scan = ops::add_scan(graph, over, std::make_shared<const Graph>(std::move(body)));
  ops::Build b(graph);
  std::vector<Value> outputs, seeds;
  const size_t results = graph.node(scan).types.size();
  for (size_t r = 0; r < results; ++r) outputs.push_back({scan.node, static_cast<int32_t>(r)});
  for (const Value& output : outputs) seeds.push_back(fresh(graph.type(output)));
  const std::vector<Value> wrt(graph.inputs().begin(),
                               graph.inputs().end() - static_cast<int64_t>(seeds.size()));
  for (const Value& gradient : gradients(graph, outputs, seeds, wrt)) outputs.push_back(gradient);
  graph.set_outputs(outputs);
  return result;
}

}  // namespace millrace::test
