// Attention in tiles against the reference back end, and what its chunks and memory must be like.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <optional>

#include <millrace/operator.h>
#include <millrace/program.h>
#include <millrace/random.h>

#include "autodiff/gradient.h"
#include "backend/cpu/kernels/attention/problem.h"
#include "backend/cpu/kernels/gemm/arithmetic.h"
#include "backend/ref/evaluate.h"
#include "base/thread_pool.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

Array random_array(const Type& type, uint64_t stream) {
  Array array(type);
  RandomStream random(9, stream);
  for (int64_t i = 0; i < array.count(); ++i)
    array.set(i, type.dtype.is_bool() ? random.below(3) != 0 : 2.0 * random.uniform() - 1);
  return array;
}

/// The node's result, and the gradients of a weighted sum of it, for inputs of these types.
Graph with_gradients(std::string_view op, const std::vector<Type>& types, const Attributes& attributes) {
  Graph graph;
  std::vector<Value> operands, wrt;
  for (const Type& type : types) {
    operands.push_back(graph.input("x", type));
    if (type.dtype.is_float()) wrt.push_back(operands.back());
  }
  const Value y = graph.add(op, operands, attributes);
  const Value seed = graph.constant(random_array(graph.type(y), 99));
  std::vector<Value> outputs = {y, {y.node, 1}};
  for (const Value& g : gradients(graph, std::span(&y, 1), std::span(&seed, 1), wrt)) outputs.push_back(g);
  graph.set_outputs(outputs);
  return graph;
}

std::vector<Array> inputs_of(const Graph& graph) {
  std::vector<Array> inputs;
  for (const Value& input : graph.inputs()) inputs.push_back(random_array(graph.type(input), inputs.size()));
  return inputs;
}

struct Case {
  DType dtype;
  int64_t batch, heads, shared, queries, keys, width, value_width;
  Attributes attributes = {};
  std::optional<Type> mask = {};
};

std::vector<Case> cases() {
  const Attributes causal = {{"causal", true}};
  return {
      {f32, 2, 3, 3, 70, 130, 16, 16},
      {f32, 1, 2, 2, 200, 200, 64, 64, causal},
      {f32, 1, 4, 2, 65, 65, 37, 37, causal},   // shared heads, odd width, one query too many for a block
      {f32, 3, 6, 1, 31, 129, 20, 20, causal},  // keys before the first query
      {f32, 1, 2, 1, 150, 40, 8, 8, causal},    // queries that see nothing
      {f32, 1, 2, 2, 1, 77, 33, 33},            // one query, as in generation
      {f32, 2, 2, 2, 5, 1, 1, 1},               // one key
      {f32, 1, 2, 1, 66, 67, 12, 19},           // v wider than k
      {f32, 3, 2, 2, 40, 70, 16, 16, {}, Type{boolean, {3, 1, 1, 70}}},  // padding
      {f32, 2, 2, 1, 70, 70, 16, 16, causal, Type{boolean, {70, 70}}},
      {f32, 2, 2, 2, 33, 70, 16, 16, {{"scale", 0.4}}, Type{f32, {2, 1, 33, 70}}},  // added
      {f32, 1, 1, 1, 1100, 1100, 24, 24, causal},                                   // parts of the keys
      {bf16, 2, 4, 2, 70, 90, 32, 24, causal},
      {bf16, 1, 2, 2, 33, 20, 7, 7, {}, Type{boolean, {20}}},
      {bf16, 2, 4, 2, 65, 67, 33, 64, causal},  // odd everywhere
      {bf16, 1, 2, 2, 200, 200, 64, 80, causal},
      {bf16, 1, 6, 2, 31, 129, 80, 33, causal},
      {bf16, 1, 2, 1, 150, 40, 8, 8, causal},
      {bf16, 2, 1, 1, 3, 1, 1, 1},
      {bf16, 1, 2, 2, 1, 77, 64, 64},
      {bf16, 2, 2, 1, 71, 71, 16, 17, causal, Type{boolean, {71, 71}}},
      {bf16, 2, 2, 2, 33, 70, 64, 64, {{"scale", 0.4}}, Type{f32, {2, 1, 33, 70}}},
      {bf16, 1, 1, 1, 1100, 1100, 24, 24, causal},
  };
}

std::vector<Type> types_of(const Case& c) {
  std::vector<Type> types = {{c.dtype, {c.batch, c.heads, c.queries, c.width}},
                             {c.dtype, {c.batch, c.shared, c.keys, c.width}},
                             {c.dtype, {c.batch, c.shared, c.keys, c.value_width}}};
  if (c.mask) types.push_back(*c.mask);
  return types;
}

/// Runs a kernel on arrays of its node's types.
std::vector<Array> run_kernel(Kernel& kernel, const Node& node, const std::vector<const Array*>& operands) {
  std::vector<Array> results;
  std::vector<void*> from, to;
  for (const Array* operand : operands) from.push_back(const_cast<void*>(operand->data()));
  for (const Type& type : node.types) to.push_back(results.emplace_back(type).data());
  // Memory that was used before must not matter.
  Array scratch = Array::full(f32, {kernel.scratch_bytes() / 4 + 16}, NAN);
  auto address = reinterpret_cast<uintptr_t>(scratch.data());
  kernel.run(from.data(), to.data(), reinterpret_cast<void*>((address + 63) / 64 * 64), ThreadPool::global());
  return results;
}

/// Whether one of our kernels takes the operator: by tiles where the CPU has them and they were faster.
bool is_ours(const std::string& explanation, const std::string& op) {
  return explanation.find("kernels: " + op) != std::string::npos ||
         explanation.find("kernels-by-tiles: " + op) != std::string::npos;
}

/// The arithmetic in bf16 that this CPU can run.
std::vector<const cpu::AttentionBf16Math*> bf16_maths() {
  if (!cpu::attention_bf16_math()) return {};
  std::vector<const cpu::AttentionBf16Math*> maths = {cpu::attention_bf16_math(),
                                                      &cpu::attention_math_bf16_tiles()};
  if (cpu::gemm::tiles_work()) maths.push_back(&cpu::attention_math_bf16_amx());
  return maths;
}

}  // namespace

TEST_CASE("attention in tiles and its gradient give what the reference gives") {
  for (const Case& c : cases()) {
    const Graph graph = with_gradients("attention", types_of(c), c.attributes);
    INFO(graph.str());
    Program program = Program::compile(graph);
    CHECK(is_ours(program.explain(), "attention "));
    CHECK(is_ours(program.explain(), "attention_grad"));
    const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs);
    CHECK(test::difference(test::run(program, inputs), expected) < (c.dtype == bf16 ? 2e-2 : 2e-5));
  }
}

TEST_CASE("keys that are all hidden by the lowest number get equal shares, and by no number none") {
  constexpr double lowest = std::numeric_limits<float>::lowest();
  for (const DType dtype : {f32, bf16})
    for (const double hidden : {lowest, -1e31, -static_cast<double>(INFINITY)}) {
      CAPTURE(hidden);
      Graph graph;
      std::vector<Value> operands;
      for (const int64_t length : {70, 90, 90})
        operands.push_back(graph.input("x", {dtype, {1, 2, length, 16}}));
      Array mask(f32, {70, 90});
      for (int64_t i = 0; i < mask.count(); ++i)
        mask.set(i, i / 90 % 3 == 1 ? hidden : i % 7 == 2 ? lowest : 0);
      operands.push_back(graph.constant(mask));
      graph.set_outputs({graph.add("attention", operands)});
      Program program = Program::compile(graph);
      CHECK(is_ours(program.explain(), "attention "));
      const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs);
      CHECK((expected[0].at(16) == 0) == std::isinf(hidden));
      CHECK(test::difference(test::run(program, inputs), expected) < (dtype == bf16 ? 2e-2 : 2e-5));
    }
}

TEST_CASE("self_attention reads and writes packed heads in place") {
  struct Packed {
    DType dtype;
    int64_t batch, length, heads, shared, width;
    bool causal;
    std::optional<Type> mask = {};
  };
  for (const Packed& c : {Packed{f32, 2, 100, 3, 3, 16, true}, Packed{f32, 1, 67, 4, 2, 21, false},
                          Packed{f32, 3, 20, 2, 1, 8, false, Type{boolean, {3, 1, 1, 20}}},
                          Packed{f32, 1, 600, 2, 2, 16, true}, Packed{bf16, 1, 70, 2, 1, 24, true},
                          Packed{bf16, 2, 67, 4, 2, 33, false}, Packed{bf16, 1, 300, 2, 1, 1, true}}) {
    std::vector<Type> types = {{c.dtype, {c.batch, c.length, c.heads + 2 * c.shared, c.width}}};
    if (c.mask) types.push_back(*c.mask);
    const Graph graph = with_gradients("self_attention", types, {{"heads", c.heads}, {"causal", c.causal}});
    INFO(graph.str());
    Program program = Program::compile(graph);
    const std::string text = program.explain();
    CHECK(is_ours(text, "self_attention "));
    CHECK(is_ours(text, "self_attention_grad"));
    CHECK(text.find("transpose") == std::string::npos);
    CHECK(text.find("slice") == std::string::npos);
    CHECK(text.find("concat") == std::string::npos);
    const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs);
    CHECK(test::difference(test::run(program, inputs), expected) < (c.dtype == bf16 ? 2e-2 : 2e-5));
  }
}

TEST_CASE("attention's arithmetic for other CPUs gives the same") {
  for (const Case& c : cases()) {
    const bool narrow = c.dtype == bf16;
    Graph graph;
    std::vector<Value> operands;
    for (const Type& type : types_of(c)) operands.push_back(graph.input("x", type));
    const Value y = graph.add("attention", operands, c.attributes);
    const Type rows = graph.node(y).types[1];
    std::vector<Value> more = {operands[0],
                               operands[1],
                               operands[2],
                               graph.input("g", graph.type(y)),
                               graph.input("l", rows),
                               graph.input("i", rows)};
    if (c.mask) more.push_back(operands[3]);
    const Value g = graph.add("attention_grad", more, c.attributes);
    graph.set_outputs({y, {y.node, 1}, g, {g.node, 1}, {g.node, 2}});
    INFO(graph.str());
    std::vector<Array> inputs = inputs_of(graph);
    for (float& log_sum : inputs[inputs.size() - 2].as<float>()) log_sum += 4;  // keeps the weights small
    const std::vector<Array> expected = ref::evaluate(graph, inputs);
    const auto check = [&](const std::string& name, const auto& make) {
      INFO(name);
      size_t at = 0;
      for (const Value& first : {y, g}) {
        const Node& node = graph.node(first);
        KernelRequest request{graph, node, std::vector<Layout>(node.operands.size()),
                              std::vector<Layout>(node.types.size())};
        const std::unique_ptr<Kernel> kernel = make(cpu::attention_problem(request), first == g);
        std::vector<const Array*> arrays;
        for (const Value& operand : node.operands) {
          const auto input = std::find(graph.inputs().begin(), graph.inputs().end(), operand);
          arrays.push_back(&inputs[static_cast<size_t>(input - graph.inputs().begin())]);
        }
        const std::vector<Array> results = run_kernel(*kernel, node, arrays);
        for (const Array& result : results)
          CHECK(test::difference(result, expected[at++]) < (narrow ? 3e-2 : 1e-4));
      }
    };
    for (const cpu::AttentionMath* math : cpu::attention_maths())
      check(math->name, [&](const cpu::AttentionProblem& problem, bool backward) {
        return backward ? cpu::make_attention_backward(problem, *math)
                        : cpu::make_attention_forward(problem, *math);
      });
    if (!narrow) continue;
    for (const cpu::AttentionBf16Math* math : bf16_maths())
      check(math->name, [&](const cpu::AttentionProblem& problem, bool backward) {
        return backward ? cpu::make_attention_backward_bf16(problem, *math)
                        : cpu::make_attention_forward_bf16(problem, *math);
      });
  }
}

TEST_CASE("attention by the CPU's tiles gives the bits of their software form") {
  if (!cpu::gemm::tiles_work()) {
    MESSAGE("skipped: no tiles (AMX) here");
    return;
  }
  for (const Case& c : cases()) {
    if (c.dtype != bf16 || c.mask) continue;
    Graph graph;
    std::vector<Value> operands;
    for (const Type& type : types_of(c)) operands.push_back(graph.input("x", type));
    const Value y = graph.add("attention", operands, c.attributes);
    graph.set_outputs({y, {y.node, 1}});
    INFO(graph.str());
    const std::vector<Array> inputs = inputs_of(graph);
    const Node& node = graph.node(y);
    const cpu::AttentionProblem problem = cpu::attention_problem(
        {graph, node, std::vector<Layout>(node.operands.size()), std::vector<Layout>(node.types.size())});
    std::vector<Array> found[2];
    for (const auto& [math, results] : {std::pair(&cpu::attention_math_bf16_amx(), &found[0]),
                                        std::pair(&cpu::attention_math_bf16_tiles(), &found[1])})
      *results = run_kernel(*cpu::make_attention_forward_bf16(problem, *math), node,
                            {&inputs[0], &inputs[1], &inputs[2]});
    for (size_t i = 0; i < found[0].size(); ++i)
      CHECK(std::memcmp(found[0][i].data(), found[1][i].data(), static_cast<size_t>(found[0][i].bytes())) ==
            0);
  }
}

TEST_CASE("attention's memory grows with the length, not with its square") {
  const auto arena = [](int64_t length) {
    return Program::compile(with_gradients("self_attention", {{f32, {1, length, 6, 32}}},
                                           {{"heads", 2}, {"causal", true}}))
        .arena_bytes();
  };
  const int64_t one = arena(2048), two = arena(4096), four = arena(8192);
  CHECK(two <= 2 * one);
  CHECK(four <= 2 * two);
}

TEST_CASE("attention gives the same bits for any number of threads") {
  for (const DType dtype : {f32, bf16}) {
    const Graph graph =
        with_gradients("self_attention", {{dtype, {1, 700, 8, 24}}}, {{"heads", 4}, {"causal", true}});
    const std::vector<Array> inputs = inputs_of(graph);
    const int before = ThreadPool::global().threads();
    std::vector<std::vector<Array>> found;
    for (const int threads : {1, 2, 5}) {
      ThreadPool::set_default_threads(threads);
      Program program = Program::compile(graph);
      found.push_back(test::run(program, inputs));
    }
    ThreadPool::set_default_threads(before);
    for (size_t k = 1; k < found.size(); ++k)
      for (size_t o = 0; o < found[0].size(); ++o)
        CHECK(std::memcmp(found[0][o].data(), found[k][o].data(), static_cast<size_t>(found[0][o].bytes())) ==
              0);
  }
}

namespace {

/// The elements as rows of `columns`, in the order of the columns.
Array swapped(const Array& array, int64_t columns) {
  Array result = array.clone();
  const int64_t rows = array.count() / columns;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) result.set(j * rows + i, array.at(i * columns + j));
  return result;
}

/// What attention and its gradient give for one head, in double, and by how much rounding weights, score
/// gradients and results to bf16 may change it.
struct Exact {
  std::vector<double> result, dq, dk, dv, log_sum, inner;
  std::vector<double> result_error, dq_error, dk_error, dv_error;
};

constexpr double kHalfUlp = 1.0 / 256;  // of the result

Exact exact_attention(const Array& q, const Array& k, const Array& v, const Array& g, double scale,
                      bool causal) {
  const int64_t queries = q.shape()[2].size(), keys = k.shape()[2].size(), width = q.shape()[3].size(),
                value_width = v.shape()[3].size();
  const auto zeros = [](int64_t count) { return std::vector<double>(static_cast<size_t>(count)); };
  Exact e{zeros(queries * value_width),
          zeros(queries * width),
          zeros(keys * width),
          zeros(keys * value_width),
          zeros(queries),
          zeros(queries),
          {},
          {},
          {},
          {}};
  e.result_error = e.result, e.dq_error = e.dq, e.dk_error = e.dk, e.dv_error = e.dv;
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t seen = causal ? std::clamp<int64_t>(i + 1 + keys - queries, 0, keys) : keys;
    std::vector<double> weights = zeros(seen);
    double sum = 0;
    for (int64_t j = 0; j < seen; ++j) {
      double score = 0;
      for (int64_t w = 0; w < width; ++w) score += q.at(i * width + w) * k.at(j * width + w);
      sum += weights[j] = std::exp(score * scale);
    }
    e.log_sum[i] = std::log(sum);
    for (int64_t j = 0; j < seen; ++j)
      for (int64_t w = 0; w < value_width; ++w) {
        const double part = weights[j] / sum * v.at(j * value_width + w);
        e.result[i * value_width + w] += part;
        e.result_error[i * value_width + w] += std::abs(part);
      }
    for (int64_t w = 0; w < value_width; ++w)
      e.inner[i] += e.result[i * value_width + w] * g.at(i * value_width + w);
    for (int64_t j = 0; j < seen; ++j) {
      double arrived = 0;
      const double weight = weights[j] / sum;
      for (int64_t w = 0; w < value_width; ++w) {
        const double part = g.at(i * value_width + w);
        arrived += part * v.at(j * value_width + w);
        e.dv[j * value_width + w] += weight * part;
        e.dv_error[j * value_width + w] += std::abs(weight * part);
      }
      const double gradient = weight * (arrived - e.inner[i]) * scale;
      for (int64_t w = 0; w < width; ++w) {
        const double to_q = gradient * k.at(j * width + w), to_k = gradient * q.at(i * width + w);
        e.dq[i * width + w] += to_q;
        e.dq_error[i * width + w] += std::abs(to_q);
        e.dk[j * width + w] += to_k;
        e.dk_error[j * width + w] += std::abs(to_k);
      }
    }
  }
  return e;
}

}  // namespace

TEST_CASE("attention in bf16 is as exact as rounding weights, score gradients and results allows") {
  struct Sizes {
    int64_t queries, keys, width, value_width;
    bool causal;
    double largest;       // of q and k
    bool turned = false;  // rows of q, k, v, and all that is like them, lie scattered
  };
  for (const Sizes& s :
       {Sizes{70, 91, 33, 20, true, 1}, Sizes{64, 64, 64, 64, true, 1}, Sizes{129, 65, 80, 33, false, 4},
        Sizes{7, 200, 1, 1, false, 3}, Sizes{70, 91, 18, 33, true, 2, true}}) {
    CAPTURE(s.width);
    Graph graph;
    std::vector<Value> x = {graph.input("q", {bf16, {1, 1, s.queries, s.width}}),
                            graph.input("k", {bf16, {1, 1, s.keys, s.width}}),
                            graph.input("v", {bf16, {1, 1, s.keys, s.value_width}})};
    const Attributes attributes = {{"causal", s.causal}};
    const Value y = graph.add("attention", x, attributes);
    x.push_back(graph.input("g", graph.type(y)));
    for (const char* name : {"l", "i"}) x.push_back(graph.input(name, graph.node(y).types[1]));
    const Value gradient = graph.add("attention_grad", x, attributes);
    graph.set_outputs({y, gradient});
    std::vector<Array> inputs = inputs_of(graph);
    for (int which = 0; which < 2; ++which)
      for (int64_t i = 0; i < inputs[which].count(); ++i)
        inputs[which].set(i, inputs[which].at(i) * s.largest);
    const Exact exact = exact_attention(inputs[0], inputs[1], inputs[2], inputs[3],
                                        1 / std::sqrt(static_cast<double>(s.width)), s.causal);
    for (int64_t i = 0; i < s.queries; ++i) {
      inputs[4].set(i, exact.log_sum[i]);
      inputs[5].set(i, exact.inner[i]);
    }
    const auto layouts = [&](int tensors, size_t all) {
      std::vector<Layout> list(all);
      for (int i = 0; s.turned && i < tensors; ++i) list[static_cast<size_t>(i)] = {0, 1, 3, 2};
      return list;
    };
    if (s.turned)
      for (int i = 0; i < 4; ++i) inputs[i] = swapped(inputs[i], inputs[i].shape()[3].size());
    const auto problem = [&](const Node& node) {
      const bool backward = node.operands.size() > 3;
      return cpu::attention_problem({graph, node, layouts(backward ? 4 : 3, node.operands.size()),
                                     layouts(backward ? 3 : 1, node.types.size())});
    };
    const auto close = [&](const Array& result, const std::vector<double>& expected,
                           const std::vector<double>& parts) {
      const Array found = s.turned ? swapped(result, result.shape()[2].size()) : result;
      double worst = 0;  // 1: the sum of all parts' rounding, and the result's
      for (int64_t i = 0; i < found.count(); ++i)
        worst = std::max(worst, std::abs(found.at(i) - expected[i]) /
                                    (kHalfUlp * (parts[i] + std::abs(expected[i])) + 1e-5));
      CHECK(worst < 1.02);
    };
    const Node &forward = graph.node(y), &backward = graph.node(gradient);
    std::vector<const Array*> operands;
    for (const Array& input : inputs) operands.push_back(&input);
    for (const cpu::AttentionBf16Math* math : bf16_maths()) {
      INFO(std::string(math->name));
      const std::vector<Array> mixed = run_kernel(*cpu::make_attention_forward_bf16(problem(forward), *math),
                                                  forward, {&inputs[0], &inputs[1], &inputs[2]});
      close(mixed[0], exact.result, exact.result_error);
      for (int64_t i = 0; i < s.queries; ++i)
        CHECK(mixed[1].at(i) == doctest::Approx(exact.log_sum[i]).epsilon(2e-5));
      const std::vector<Array> gradients =
          run_kernel(*cpu::make_attention_backward_bf16(problem(backward), *math), backward, operands);
      close(gradients[0], exact.dq, exact.dq_error);
      close(gradients[1], exact.dk, exact.dk_error);
      close(gradients[2], exact.dv, exact.dv_error);
    }
  }
}

TEST_CASE("attention over a length of 8,192 gives what softmax gives, and gradients of known sums") {
  const int64_t length = 8192, width = 16;
  const Graph graph = with_gradients("self_attention", {{f32, {1, length, 3, width}}}, {{"heads", 1}});
  const std::vector<Array> inputs = inputs_of(graph);
  Program program = Program::compile(graph);
  const std::vector<Array> found = test::run(program, inputs);
  const float* const x = inputs[0].as<float>().data();
  for (const int64_t query : {int64_t{0}, int64_t{4097}, length - 1}) {
    std::vector<double> weights(length);
    double sum = 0;
    for (int64_t key = 0; key < length; ++key) {
      double score = 0;
      for (int64_t j = 0; j < width; ++j)
        score += static_cast<double>(x[query * 3 * width + j]) * x[(key * 3 + 1) * width + j];
      sum += weights[key] = std::exp(score / 4);
    }
    for (int64_t j = 0; j < width; ++j) {
      double mixed = 0;
      for (int64_t key = 0; key < length; ++key) mixed += weights[key] / sum * x[(key * 3 + 2) * width + j];
      CHECK(found[0].at(query * width + j) == doctest::Approx(mixed).epsilon(1e-4));
    }
  }
  // Every query's weights sum to 1: so does dv, over all keys, to the sum of the seed over all queries.
  const Array seed = random_array({f32, {1, length, 1, width}}, 99);
  for (int64_t j = 0; j < width; ++j) {
    double expected = 0, dv = 0;
    for (int64_t i = 0; i < length; ++i) {
      expected += seed.at(i * width + j);
      dv += found[2].at((i * 3 + 2) * width + j);
    }
    CHECK(dv == doctest::Approx(expected).epsilon(1e-3));
  }
}
