// Attention in tiles against the reference back end, and what its chunks and memory must be like.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <optional>

#include <millrace/program.h>

#include "autodiff/gradient.h"
#include "backend/cpu/kernels/attention_problem.h"
#include "backend/ref/evaluate.h"
#include "base/philox.h"
#include "base/thread_pool.h"
#include "ir/operator.h"
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

std::vector<Array> run(Program& program, const std::vector<Array>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    std::memcpy(program.input(static_cast<int>(i)).data(), inputs[i].data(),
                static_cast<size_t>(inputs[i].bytes()));
  program.run();
  std::vector<Array> outputs;
  for (int o = 0; o < program.output_count(); ++o) outputs.push_back(program.output(o).clone());
  return outputs;
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
  };
}

std::vector<Type> types_of(const Case& c) {
  std::vector<Type> types = {{c.dtype, {c.batch, c.heads, c.queries, c.width}},
                             {c.dtype, {c.batch, c.shared, c.keys, c.width}},
                             {c.dtype, {c.batch, c.shared, c.keys, c.value_width}}};
  if (c.mask) types.push_back(*c.mask);
  return types;
}

}  // namespace

TEST_CASE("attention in tiles and its gradient give what the reference gives") {
  for (const Case& c : cases()) {
    const Graph graph = with_gradients("attention", types_of(c), c.attributes);
    INFO(graph.str());
    Program program = Program::compile(graph);
    CHECK(program.explain().find("kernels: attention ") != std::string::npos);
    CHECK(program.explain().find("kernels: attention_grad") != std::string::npos);
    const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs),
                             found = run(program, inputs);
    for (size_t o = 0; o < expected.size(); ++o) {
      INFO("output ", o);
      CHECK(test::difference(found[o], expected[o]) < (c.dtype == bf16 ? 2e-2 : 2e-5));
    }
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
                          Packed{f32, 1, 600, 2, 2, 16, true}, Packed{bf16, 1, 70, 2, 1, 24, true}}) {
    std::vector<Type> types = {{c.dtype, {c.batch, c.length, c.heads + 2 * c.shared, c.width}}};
    if (c.mask) types.push_back(*c.mask);
    const Graph graph = with_gradients("self_attention", types, {{"heads", c.heads}, {"causal", c.causal}});
    INFO(graph.str());
    Program program = Program::compile(graph);
    const std::string text = program.explain();
    CHECK(text.find("kernels: self_attention ") != std::string::npos);
    CHECK(text.find("kernels: self_attention_grad") != std::string::npos);
    CHECK(text.find("transpose") == std::string::npos);
    CHECK(text.find("slice") == std::string::npos);
    CHECK(text.find("concat") == std::string::npos);
    const std::vector<Array> inputs = inputs_of(graph), expected = ref::evaluate(graph, inputs),
                             found = run(program, inputs);
    for (size_t o = 0; o < expected.size(); ++o) {
      INFO("output ", o);
      CHECK(test::difference(found[o], expected[o]) < (c.dtype == bf16 ? 2e-2 : 2e-5));
    }
  }
}

TEST_CASE("attention's arithmetic for other CPUs gives the same") {
  for (const Case& c : cases()) {
    if (c.dtype == bf16) continue;  // computed in f32, too
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
    for (const cpu::AttentionMath* math : cpu::attention_maths()) {
      INFO(math->name);
      size_t at = 0;
      for (const Value& first : {y, g}) {
        const Node& node = graph.node(first);
        KernelRequest request{graph, node, std::vector<Layout>(node.operands.size()),
                              std::vector<Layout>(node.types.size())};
        const cpu::AttentionProblem problem = cpu::attention_problem(request);
        const auto kernel = first == y ? cpu::make_attention_forward(problem, *math)
                                       : cpu::make_attention_backward(problem, *math);
        std::vector<Array> results;
        std::vector<void*> from, to;
        for (const Value& operand : node.operands) {
          const auto input = std::find(graph.inputs().begin(), graph.inputs().end(), operand);
          from.push_back(
              const_cast<void*>(inputs[static_cast<size_t>(input - graph.inputs().begin())].data()));
        }
        for (const Type& type : node.types) to.push_back(results.emplace_back(type).data());
        // Memory that was used before must not matter.
        Array scratch = Array::full(f32, {kernel->scratch_bytes() / 4 + 16}, NAN);
        auto address = reinterpret_cast<uintptr_t>(scratch.data());
        address = (address + 63) / 64 * 64;
        kernel->run(from.data(), to.data(), reinterpret_cast<void*>(address), ThreadPool::global());
        for (const Array& result : results) CHECK(test::difference(result, expected[at++]) < 1e-4);
      }
    }
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
  const Graph graph =
      with_gradients("self_attention", {{f32, {1, 700, 8, 24}}}, {{"heads", 4}, {"causal", true}});
  const std::vector<Array> inputs = inputs_of(graph);
  const int before = ThreadPool::global().threads();
  std::vector<std::vector<Array>> found;
  for (const int threads : {1, 2, 5}) {
    ThreadPool::set_default_threads(threads);
    Program program = Program::compile(graph);
    found.push_back(run(program, inputs));
  }
  ThreadPool::set_default_threads(before);
  for (size_t k = 1; k < found.size(); ++k)
    for (size_t o = 0; o < found[0].size(); ++o)
      CHECK(std::memcmp(found[0][o].data(), found[k][o].data(), static_cast<size_t>(found[0][o].bytes())) ==
            0);
}

TEST_CASE("attention over a length of 8,192 gives what softmax gives, and gradients of known sums") {
  const int64_t length = 8192, width = 16;
  const Graph graph = with_gradients("self_attention", {{f32, {1, length, 3, width}}}, {{"heads", 1}});
  const std::vector<Array> inputs = inputs_of(graph);
  Program program = Program::compile(graph);
  const std::vector<Array> found = run(program, inputs);
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
