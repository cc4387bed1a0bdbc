#include "plan/constants.h"

#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <vector>

#include <millrace/graph.h>
#include <millrace/operator.h>
#include <millrace/program.h>
#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "target/shared_constants.h"

using namespace millrace;

namespace {

constexpr int64_t kDepth = 256, kColumns = 1024;  // rows that no kernel reads as they are

Array constants_numbers(const Shape& shape, uint64_t seed) {
  Array array(f32, shape);
  RandomStream random(12, 1, seed);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, random.uniform() - 0.5);
  return array;
}

/// x · w, large enough that kernels pack w; and w times something else where `reads` says so.
Graph product_of(int64_t rows, bool reads) {
  Graph graph;
  const Value x = graph.input("x", {f32, {rows, kDepth}}),
              w = graph.constant(constants_numbers({kDepth, kColumns}, 1));
  std::vector<Value> outputs = {graph.add("matmul", {x, w})};
  // Not folded: it depends on an input.
  if (reads) outputs.push_back(graph.add("mul", {w, graph.input("s", {f32, {kDepth, kColumns}})}));
  graph.set_outputs(outputs);
  return graph;
}

int64_t bytes_of(const Executable& executable) {
  int64_t bytes = 0;
  for (const Array& array : executable.constants()) bytes += array.bytes();
  return bytes;
}

void check_against_reference(const Graph& graph, const std::shared_ptr<const Executable>& executable) {
  Program program(executable);
  std::vector<Array> inputs;
  for (int i = 0; i < program.input_count(); ++i) {
    inputs.push_back(constants_numbers(program.input(i).shape(), static_cast<uint64_t>(10 + i)));
    program.bind_input(i, inputs.back());
  }
  program.run();
  const std::vector<Array> right = ref::evaluate(graph, inputs);
  for (size_t o = 0; o < right.size(); ++o)
    for (int64_t i = 0; i < right[o].count(); i += 97)
      REQUIRE(program.output(static_cast<int>(o)).at(i) == doctest::Approx(right[o].at(i)).epsilon(1e-4));
}

}  // namespace

TEST_CASE("of a constant that is packed everywhere only the packed form is kept") {
  const Graph graph = product_of(256, false);
  const auto executable = Executable::compile(graph);
  constexpr int64_t plain = 4 * kDepth * kColumns;
  CHECK(bytes_of(*executable) >= plain);
  CHECK(bytes_of(*executable) < plain + plain / 4);
  check_against_reference(graph, executable);
}

TEST_CASE("a constant that another launch reads stays beside its packed form") {
  const Graph graph = product_of(256, true);
  const auto executable = Executable::compile(graph);
  CHECK(bytes_of(*executable) >= 2 * 4 * kDepth * kColumns);
  check_against_reference(graph, executable);
}

TEST_CASE("executables for other shapes share what they keep") {
  const int64_t before = shared_constant_bytes();
  {
    const auto one = Executable::compile(product_of(256, false)),
               two = Executable::compile(product_of(256, false));
    const std::vector<Array> ones = one->constants(), twos = two->constants();
    REQUIRE(ones.size() == twos.size());
    for (size_t i = 0; i < ones.size(); ++i) CHECK(ones[i].shares_memory(twos[i]));
    check_against_reference(product_of(256, false), one);
    check_against_reference(product_of(256, false), two);
  }
  CHECK(shared_constant_bytes() == before);
}

TEST_CASE("constants that others may write to are copied, a body's too, and no others") {
  Graph part;
  part.set_outputs({part.constant(constants_numbers({64, 64}, 2))});
  Graph given;
  const Value a = given.constant(constants_numbers({64, 64}, 1));
  const Value b = given.add_with_body(get_operator("fused"), {}, {}, std::make_shared<const Graph>(part));
  given.set_outputs({a, b});
  Graph lowered;  // as passes leave it, which have computed one
  const Value c = lowered.constant(constants_numbers({64, 64}, 3));
  lowered.set_outputs({lowered.constant(*given.constant_value(a)),
                       lowered.constant(*part.constant_value(part.outputs()[0])), c});
  const Graph shared = share_constants(lowered, &given), own = share_constants(lowered);
  CHECK(shared == lowered);
  for (size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const Array& before = *lowered.constant_value(lowered.outputs()[i]);
    CHECK(shared.constant_value(shared.outputs()[i])->shares_memory(before) == (i == 2));
  }
  CHECK(own.constant_value(own.outputs()[2])->shares_memory(*lowered.constant_value(c)));
}

TEST_CASE("equal constants of a graph become one") {
  Graph graph;
  const Value a = graph.constant(constants_numbers({64, 64}, 1)),
              b = graph.constant(constants_numbers({64, 64}, 1)), small = graph.scalar(f32, 2);
  graph.set_outputs({a, b, small});
  const Graph shared = share_constants(graph);
  CHECK(shared == graph);
  CHECK(
      shared.constant_value(shared.outputs()[0])->shares_memory(*shared.constant_value(shared.outputs()[1])));
  CHECK(shared.constant_value(shared.outputs()[2])->shares_memory(*graph.constant_value(small)));
}
