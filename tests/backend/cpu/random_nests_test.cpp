// Random fused groups: compiled loop nests against the reference, in random layouts. MILLRACE_FUZZ_NESTS sets
// how many groups are tried, MILLRACE_FUZZ_SEED where they begin.
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <numeric>
#include <string>

#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "support/codegen_support.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

using Ints = std::vector<int64_t>;

int64_t setting(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

/// Grows a body backwards: make(shape) gives a value of that shape from fresh operands.
class RandomBody {
 public:
  explicit RandomBody(uint64_t seed) : random_(seed, 99), b_(graph_) {}

  Graph graph_;

  void build() {
    dtype_ = pick<DType>({f32, f32, f32, f64, bf16});
    Shape space;
    const int64_t rank = below(5);
    int64_t count = 1;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size = pick<int64_t>({1, 2, 3, 4, 5, 8, 16, 17, 20, 33, 64, 100});
      space.push_back(count * size <= 40000 ? size : 2);
      count *= space.back().size();
    }
    std::vector<Value> values{make(space, 4), make(space, 2)};
    values.push_back(b_.add(values[0], values[1]));
    Ints axes;
    for (int d = 0; d < space.rank(); ++d)
      if (below(2)) axes.push_back(d);
    const bool keep = below(2);
    std::vector<Value> outputs;
    const int64_t mode = below(3);  // maps, reductions, both
    for (const Value& value : values) {
      if (mode != 1 && below(2)) outputs.push_back(value);
      if (mode != 0 && below(2)) outputs.push_back(reduce(value, axes, keep));
    }
    if (outputs.empty()) outputs.push_back(values[2]);
    graph_.set_outputs(outputs);
  }

  Layout layout(const Shape& shape) {
    if (shape.rank() < 2 || below(2)) return {};
    Layout order(shape.rank());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(static_cast<int64_t>(i))]);
    return order;
  }

 private:
  int64_t below(int64_t n) { return random_.below(static_cast<uint32_t>(n)); }
  template <typename T>
  T pick(std::vector<T> from) {
    return from[below(static_cast<int64_t>(from.size()))];
  }

  Value reduce(Value x, const Ints& axes, bool keep) {
    std::vector<std::string> kinds{"sum", "mean", "max", "min"};
    if (axes.size() == 1) kinds.insert(kinds.end(), {"argmax", "argmin"});
    return graph_.add(pick(kinds), {x}, {{"axes", axes}, {"keep_dims", keep}});
  }

  Value make(const Shape& shape, int depth) {
    if (depth == 0 || below(8) == 0) return leaf(shape);
    switch (below(4)) {
      case 0:
        return b_.unary(pick<std::string>({"tanh", "neg", "abs", "erf", "sigmoid"}), make(shape, depth - 1));
      case 1:
        return b_.binary(pick<std::string>({"add", "sub", "maximum", "minimum"}), make(shape, depth - 1),
                         make(shape, depth - 1));
      case 2:
        return select(shape, depth);
      default:
        return move(shape, depth);
    }
  }

  Value leaf(const Shape& shape) {
    if (below(12) == 0) return b_.broadcast(b_.scalar(dtype_, 0.75), shape);
    return graph_.input("x", {dtype_, shape});
  }

  // Compares operands only: what is computed may differ in the last bit.
  Value select(const Shape& shape, int depth) {
    const Value condition =
        b_.binary("greater", graph_.input("c", {f32, shape}), graph_.input("d", {f32, shape}));
    return b_.select(condition, make(shape, depth - 1), make(shape, depth - 1));
  }

  Value move(const Shape& shape, int depth) {
    const int rank = shape.rank();
    if (rank == 0) return b_.broadcast(make({}, depth - 1), shape);
    const auto axis = static_cast<int>(below(rank));
    const int64_t size = shape[axis].size();
    Ints zeros(rank, 0), ones(rank, 1);
    Shape from = shape;
    switch (below(7)) {
      case 0: {  // broadcast
        for (Dim& dim : from)
          if (below(2)) dim = 1;
        if (below(2) && from[0] == 1) from.erase(from.begin());
        return b_.broadcast(make(from, depth - 1), shape);
      }
      case 1: {  // transpose
        Ints permutation(rank);
        std::iota(permutation.begin(), permutation.end(), 0);
        std::swap(permutation[axis], permutation[below(rank)]);
        for (int d = 0; d < rank; ++d) from[permutation[d]] = shape[d];
        return b_.transpose(make(from, depth - 1), permutation);
      }
      case 2: {  // slice
        Ints starts = zeros, ends, steps = ones;
        const int64_t step = 1 + below(2), start = below(3);
        from[axis] = start + (size - 1) * step + 1 + below(2);
        starts[axis] = start;
        steps[axis] = step;
        for (int d = 0; d < rank; ++d)
          ends.push_back(d == axis ? start + (size - 1) * step + 1 : shape[d].size());
        return graph_.add("slice", {make(from, depth - 1)},
                          {{"starts", starts}, {"ends", ends}, {"steps", steps}});
      }
      case 3: {  // pad
        Ints low = zeros, high = zeros;
        low[axis] = below(std::min<int64_t>(size, 3));
        high[axis] = below(std::min<int64_t>(size - low[axis], 3));
        from[axis] = size - low[axis] - high[axis];
        return graph_.add("pad", {make(from, depth - 1)},
                          {{"low", low}, {"high", high}, {"value", 0.5 * static_cast<double>(below(2))}});
      }
      case 4: {  // concat
        if (size < 2) return leaf(shape);
        Shape second = shape;
        from[axis] = 1 + below(size - 1);
        second[axis] = size - from[axis].size();
        return graph_.add("concat", {make(from, depth - 1), make(second, depth - 1)},
                          {{"axis", int64_t{axis}}});
      }
      case 5: {                      // gather
        from[axis] = 6 + below(10);  // indices are drawn below 6
        const Value indices = graph_.input("i", {i64, {size}});
        return graph_.add("gather", {make(from, depth - 1), indices}, {{"axis", int64_t{axis}}});
      }
      default: {  // reshape
        Shape flat{shape.count()};
        if (size % 2 == 0) flat = Shape{shape.count() / 2, 2};
        return b_.reshape(make(flat, depth - 1), shape);
      }
    }
  }

  RandomStream random_;
  ops::Build b_;
  DType dtype_ = f32;
};

}  // namespace

TEST_CASE("Random fused groups agree with the reference in random layouts") {
  const int64_t first = setting("MILLRACE_FUZZ_SEED", 1), count = setting("MILLRACE_FUZZ_NESTS", 60);
  for (int64_t seed = first; seed < first + count; ++seed) {
    RandomBody body(static_cast<uint64_t>(seed));
    body.build();
    CodegenRun options;
    std::vector<Array> inputs;
    for (const Value& input : body.graph_.inputs()) {
      const Type& type = body.graph_.type(input);
      inputs.push_back(random_array(type, static_cast<uint64_t>(seed * 100) + inputs.size()));
      options.operand_layouts.push_back(body.layout(type.shape));
    }
    for (const Value& output : body.graph_.outputs())
      options.result_layouts.push_back(body.layout(body.graph_.type(output).shape));
    INFO("MILLRACE_FUZZ_SEED=" << seed << " MILLRACE_FUZZ_NESTS=1\n" << body.graph_.str());
    const std::vector<Array> expected = ref::evaluate(body.graph_, inputs);
    const std::vector<Array> got = run_fused(body.graph_, inputs, options);
    for (size_t i = 0; i < got.size(); ++i) {
      INFO("output " << i);
      const Graph& graph = body.graph_;
      const bool position = got[i].dtype() == i64;
      const bool half = std::any_of(graph.inputs().begin(), graph.inputs().end(),
                                    [&](Value v) { return graph.type(v).dtype == bf16; });
      if (position && half) continue;  // ties after rounding
      CHECK(test::difference(got[i], expected[i]) <= (half ? 0.1 : 2e-4));
    }
    options.threads = 1;
    const std::vector<Array> alone = run_fused(body.graph_, inputs, options);
    for (size_t i = 0; i < got.size(); ++i) CHECK(alone[i].identical(got[i]));
  }
}
