#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/graph.h>
#include <millrace/program.h>

using namespace millrace;

namespace {

/// A product of two matrices, as a program on a back end, run.
Array product(const std::string& target, const std::string& precision, std::string& used) {
  Graph graph;
  const Value a = graph.input("a", {f32, {16, 32}}), b = graph.input("b", {f32, {32, 16}});
  graph.set_outputs({graph.add("matmul", {a, b}, {{"transpose_a", false}, {"transpose_b", false}})});
  Program program = Program::compile(graph, {.target = target, .precision = precision});
  for (int input = 0; input < 2; ++input)
    for (int64_t i = 0; i < program.input(input).count(); ++i)
      program.input(input).set(i, std::sin(static_cast<double>(7 * i + input)));
  program.run();
  used = program.precision();
  return program.output(0).clone();
}

}  // namespace

TEST_CASE(
    "bf16 products differ from f32 ones by their rounding, and only where the machine has units for them") {
  std::string used;
  const Array exact = product("ref", "fp32", used);
  CHECK(used == "fp32");
  for (const std::string target : {"ref", "cpu"}) {
    CAPTURE(target);
    const Array result = product(target, "bf16", used);
    double largest = 0;
    for (int64_t i = 0; i < exact.count(); ++i)
      largest = std::max(largest, std::abs(result.at(i) - exact.at(i)));
    CHECK(largest < 0.1);  // 32 products of 8 bits each
    if (target == "ref") CHECK(used == "bf16");
    if (used == "bf16")
      CHECK(largest > 1e-4);
    else
      CHECK(largest < 1e-4);
  }
  CHECK_THROWS_WITH_AS((void)product("cpu", "bf8", used), "there is no precision 'bf8'; choose fp32 or bf16",
                       InputError);
}
