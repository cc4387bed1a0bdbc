#include <doctest/doctest.h>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "support/codegen_support.h"
#include "support/random_graph.h"
#include "target/provider.h"

using namespace millrace;

namespace {

struct Sizes {
  int64_t m, k, n;
};

/// How the right side comes.
enum class Right { changes, steady, constant };

Shape matrix(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

}  // namespace

TEST_CASE(
    "small products agree with the reference for odd sizes, both transposes and any number of threads") {
  const auto provider = cpu::providers().at("small-matmul").make();
  for (const Sizes& s : std::vector<Sizes>{
           {1, 1, 1},     {2, 3, 5},       {5, 17, 16},   {7, 9, 33},  {13, 64, 48}, {6, 31, 64},
           {29, 14, 130}, {1, 33, 130},    {1, 128, 512}, {1, 65, 64}, {1, 35, 2},   {3, 18, 12},
           {1, 37, 12},   {5, 37, 20},     {7, 37, 5},    {1, 33, 77}, {2, 40, 77},  {256, 64, 2},
           {3, 256, 81},  {100, 100, 100}, {64, 257, 96}, {17, 5, 208}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const Right right : {Right::changes, Right::steady, Right::constant}) {
          const bool constant = right == Right::constant, steady = right == Right::steady;
          const std::vector<Array> inputs = {random_array({f32, matrix(s.m, s.k, transpose_a)}, 1),
                                             random_array({f32, matrix(s.k, s.n, transpose_b)}, 2)};
          Graph graph;
          const Value a = graph.input("a", inputs[0].type());
          const Value b = constant ? graph.constant(inputs[1]) : graph.input("b", inputs[1].type());
          const Value y =
              graph.add("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
          graph.set_outputs({y});
          CAPTURE(graph.str());
          REQUIRE(!provider->why_not(graph, graph.node(y)));
          KernelRequest request{graph, graph.node(y), {{}, {}}, {{}}};
          if (steady) request.steady = {0, 1};
          const auto built = provider->build(request), another = built->another();
          CHECK((another != nullptr) == steady);
          Kernel& kernel = another ? *another : *built;
          Array kept = Array::full(u8, Shape{std::max<int64_t>(kernel.kept_bytes(), 1)}, 255);
          if (steady) {
            void* const operands[] = {nullptr, const_cast<void*>(inputs[1].data())};
            ThreadPool pool(2);
            kernel.prepare(operands, kept.data(), nullptr, pool);
          }
          CodegenRun one, three;
          one.threads = 1;
          three.threads = 3;
          const std::vector<Array> got = run_kernel(kernel, graph, inputs, three);
          const std::vector<Array> given = constant ? std::vector<Array>{inputs[0]} : inputs;
          CHECK(test::difference(got[0], ref::evaluate(graph, given)[0]) < 1e-4);
          CHECK(run_kernel(kernel, graph, inputs, one)[0].identical(got[0]));
        }
}

TEST_CASE("a small product gives a row the same bits alone and in a batch") {
  const auto provider = cpu::providers().at("small-matmul").make();
  for (const int64_t n : {5, 12, 20, 64}) {
    const Array b = random_array({f32, {37, n}}, 2), rows = random_array({f32, {7, 37}}, 1);
    const auto product = [&](const Array& a) {
      Graph graph;
      graph.set_outputs({graph.add("matmul", {graph.input("a", a.type()), graph.constant(b)})});
      const auto kernel = provider->build({graph, graph.node(graph.outputs()[0]), {{}, {}}, {{}}});
      return run_kernel(*kernel, graph, std::vector<Array>{a})[0];
    };
    Array first(f32, {1, 37});
    for (int64_t k = 0; k < 37; ++k) first.set(k, rows.at(k));
    const Array all = product(rows), alone = product(first);
    for (int64_t i = 0; i < n; ++i) CHECK(alone.at(i) == all.at(i));
  }
}

TEST_CASE("small products leave others to oneDNN, and say why") {
  const auto provider = cpu::providers().at("small-matmul").make();
  const auto why = [&](DType dtype, const Shape& a, const Shape& b) {
    Graph graph;
    const Value y = graph.add("matmul", {graph.input("a", {dtype, a}), graph.input("b", {dtype, b})});
    return provider->why_not(graph, graph.node(y)).value_or("");
  };
  CHECK(why(f32, {1024, 1024}, {1024, 1024}) == "too large");
  CHECK(why(bf16, {4, 4}, {4, 4}) == "only f32, not bf16");
  CHECK(why(f32, {3, 4, 4}, {3, 4, 4}) == "several matrices");
  CHECK(why(f32, {4, 0}, {0, 4}) == "an operand or the result is empty");
  CHECK(why(f32, {4, 4}, {4, 4}).empty());
}
