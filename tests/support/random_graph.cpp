#include "support/random_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <millrace/error.h>
#include <millrace/random.h>

#include "ops/build.h"

namespace millrace::test {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed, 77), build_(result_.graph) {}

  RandomGraph run(int nodes) {
    for (int i = 0; i < 3; ++i) values_.push_back(fresh(random_shape()));
    for (int i = 0; i < nodes; ++i) {
      const Value value = step();
      if (value.valid() && build_.shape(value).count() <= 4000) values_.push_back(value);
    }
    // Several outputs: values in the middle must stay right when fused into groups.
    std::vector<Value> outputs = {values_.back()};
    for (int i = 0; i < 3; ++i) outputs.push_back(pick());
    result_.graph.set_outputs(outputs);
    return std::move(result_);
  }

 private:
  Value fresh(const Shape& shape) {
    Array array(f32, shape);
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, random_.uniform() * 4 - 2);
    result_.inputs.push_back(array);
    return result_.graph.input("x" + std::to_string(result_.inputs.size()), array.type());
  }

  Shape random_shape() {
    static constexpr int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 20};
    Shape shape;
    const int rank = static_cast<int>(random_.below(5));
    for (int d = 0; d < rank; ++d) shape.push_back(sizes[random_.below(rank > 3 ? 5 : 8)]);
    return shape;
  }

  Value pick() { return values_[random_.below(static_cast<uint32_t>(values_.size()))]; }
  int axis(Value v) { return static_cast<int>(random_.below(static_cast<uint32_t>(build_.shape(v).rank()))); }
  int64_t dim(Value v, int d) { return build_.shape(v)[d].size(); }

  Value step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return unary();
      case 4:
      case 5:
      case 6:
        return binary();
      case 7:
        return reduction();
      case 8:
        return transposed();
      case 9:
        return sliced();
      case 10:
        return padded();
      case 11:
        return broadcast_up();
      case 12:
        return reshaped();
      case 13:
        return product();
      case 14:
        return composite();
      default:
        return convolution();
    }
  }

  Value unary() {
    static constexpr const char* ops[] = {"neg", "abs", "tanh", "sigmoid", "erf", "relu", "sin", "square"};
    const Value v = build_.unary(ops[random_.below(8)], pick());
    return random_.below(4) == 0 ? build_.unary("tanh", v) : v;
  }

  Value binary() {
    static constexpr const char* ops[] = {"add", "sub", "mul", "minimum", "maximum"};
    const Value a = pick();
    Value b = pick();
    if (random_.below(3) == 0) b = build_.scalar(f32, random_.uniform() * 2 - 1);
    try {
      broadcast_shapes(build_.shape(a), build_.shape(b));
    } catch (const TypeError&) {
      b = fresh(build_.shape(a));
    }
    const Value v = build_.binary(ops[random_.below(5)], a, b);
    if (random_.below(4) == 0)
      return build_.select(build_.binary("greater", v, build_.zeros(v)), v, build_.mul(v, 0.1));
    return build_.unary("tanh", v);
  }

  Value reduction() {
    const Value v = pick();
    const int rank = build_.shape(v).rank();
    std::vector<int64_t> axes;
    for (int d = 0; d < rank; ++d)
      if (random_.below(2)) axes.push_back(d);
    const bool keep = random_.below(2) != 0;
    switch (random_.below(3)) {
      case 0:
        return build_.mean(v, axes, keep);
      case 1:
        return build_.shape(v).count() == 0 ? Value{} : build_.max(v, axes, keep);
      default:
        return build_.unary("tanh", build_.sum(v, axes, keep));
    }
  }

  Value transposed() {
    const Value v = pick();
    std::vector<int64_t> permutation;
    for (int d = 0; d < build_.shape(v).rank(); ++d) permutation.push_back(d);
    for (size_t d = permutation.size(); d > 1; --d)
      std::swap(permutation[d - 1], permutation[random_.below(static_cast<uint32_t>(d))]);
    return build_.transpose(v, permutation);
  }

  Value sliced() {
    const Value v = pick();
    if (build_.shape(v).rank() == 0) return {};
    const int a = axis(v);
    const int64_t size = dim(v, a), start = random_.below(static_cast<uint32_t>(size));
    const int rank = build_.shape(v).rank();
    std::vector<int64_t> starts(rank, 0), ends = build_.shape(v).sizes(), steps(rank, 1);
    starts[a] = start;
    steps[a] = 1 + random_.below(2);
    return build_.graph().add("slice", {v}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
  }

  Value padded() {
    const Value v = pick();
    const int rank = build_.shape(v).rank();
    std::vector<int64_t> low(rank), high(rank);
    for (int d = 0; d < rank; ++d) {
      low[d] = random_.below(2);
      high[d] = random_.below(3);
    }
    return build_.graph().add("pad", {v}, {{"low", low}, {"high", high}, {"value", 0.5}});
  }

  Value broadcast_up() {
    const Value v = pick();
    if (build_.shape(v).rank() > 3) return {};
    Shape to = build_.shape(v);
    for (Dim& d : to)
      if (d == 1) d = 3;
    to.insert(to.begin(), Dim(1 + random_.below(4)));
    return build_.broadcast(v, to);
  }

  Value reshaped() {
    const Value v = pick();
    const Shape& shape = build_.shape(v);
    if (shape.rank() < 2) return build_.reshape(v, {1, shape.elements()});
    Shape merged(shape.begin() + 1, shape.end());
    merged[0] = shape[0] * shape[1];
    return build_.reshape(v, merged);
  }

  Value product() {
    const Value v = pick();
    if (build_.shape(v).rank() < 2) return {};
    Shape other = build_.shape(v);
    const int rank = other.rank();
    const bool transposed = random_.below(2) != 0;
    other[rank - 2] = other[rank - 1];
    other[rank - 1] = 1 + random_.below(20);
    if (transposed) std::swap(other[rank - 2], other[rank - 1]);
    return build_.unary("tanh", build_.matmul(v, fresh(other), false, transposed));
  }

  Value composite() {
    const Value v = pick();
    if (build_.shape(v).rank() == 0) return {};
    switch (random_.below(4)) {
      case 0:
        return build_.unary("gelu", v);
      case 1:
        return build_.unary("relu", v);
      case 2:
        return build_.unary("silu", v);
      default:
        return build_.graph().add("softmax", {v}, {{"axis", int64_t{axis(v)}}});
    }
  }

  Value convolution() {
    const Value v = pick();
    if (build_.shape(v).rank() != 4) return {};
    const int64_t in = dim(v, 1), out = 1 + random_.below(6), k = 1 + random_.below(3);
    const Value w = fresh({out, in, k, k});
    const Value y =
        build_.graph().add("conv2d", {v, w}, {{"pads", std::vector<int64_t>{k / 2, k / 2, k / 2, k - 1}}});
    return build_.unary("tanh", y);
  }

  RandomGraph result_;
  RandomStream random_;
  ops::Build build_;
  std::vector<Value> values_;
};

}  // namespace

RandomGraph random_graph(uint64_t seed, int nodes) { return Generator(seed).run(nodes); }

double difference(const Array& a, const Array& b) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (a.type() != b.type()) return infinite;
  double worst = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (std::isnan(x) != std::isnan(y)) return infinite;
    if (std::isnan(x) || x == y) continue;
    if (std::isinf(x) || std::isinf(y)) return infinite;
    worst = std::max(worst, std::fabs(x - y) / (1 + std::fabs(y)));
  }
  return worst;
}

double difference(const std::vector<Array>& a, const std::vector<Array>& b) {
  double worst = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) worst = std::max(worst, difference(a[i], b[i]));
  return worst;
}

std::vector<Array> run(Program& program, const std::vector<Array>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) program.input(static_cast<int>(i)).assign(inputs[i]);
  program.run();
  std::vector<Array> outputs;
  for (int o = 0; o < program.output_count(); ++o) outputs.push_back(program.output(o).clone());
  return outputs;
}

}  // namespace millrace::test
