#include <cstring>
#include <doctest/doctest.h>

#include <millrace/operator.h>
#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "support/random_graph.h"
#include "support/samples.h"

using namespace millrace;

TEST_CASE("operators that move or choose rows give on cpu the bits of ref, and are kernels there") {
  for (const char* name :
       {"scatter_rows", "first_occurrence", "top_k", "nonzero", "non_max_suppression", "unique", "refuse"}) {
    const Operator& op = get_operator(name);
    for (const Sample& sample : op.samples) {
      CAPTURE(describe(op, sample));
      const Graph graph = make_graph(op, sample);
      const std::vector<Array> inputs = make_inputs(op, sample);
      Program program = Program::compile(graph);
      if (sample.operands[0].shape.count() > 0)
        CHECK(program.explain().find("kernels: ") != std::string::npos);
      const std::vector<Array> expected = ref::evaluate(graph, inputs), found = test::run(program, inputs);
      for (size_t o = 0; o < expected.size(); ++o) CHECK(found[o].identical(expected[o]));
    }
  }
}

TEST_CASE("keys that all hash to one place are told apart") {
  // Multiples of 2^60: the hash's high bits, which choose the place, are few.
  Graph graph;
  const int64_t count = 5000;
  const Value x = graph.input("x", {i64, {count}});
  graph.set_outputs({graph.add("first_occurrence", {x})});
  Program program = Program::compile(graph);
  for (int64_t i = 0; i < count; ++i)
    program.input(0).set_int(i, static_cast<int64_t>(static_cast<uint64_t>(i % 16) << 60));
  program.run();
  for (int64_t i = 0; i < count; ++i) CHECK(program.output(0).int_at(i) == i % 16);
}

TEST_CASE("scatter_rows writes into a donated table and leaves its other rows where they are") {
  Graph graph;
  const Value table = graph.input("table", {f32, {1000, 3}}), rows = graph.input("rows", {f32, {4, 3}}),
              indices = graph.input("indices", {i32, {4}});
  graph.set_outputs({graph.add("scatter_rows", {table, indices, rows})});
  CompileOptions options;
  options.donations = {{0, 0}};
  Program program = Program::compile(graph, options);
  CHECK(program.arena_bytes() <= 64);
  for (int64_t i = 0; i < 3000; ++i) program.input(0).set(i, static_cast<double>(i));
  for (int64_t i = 0; i < 12; ++i) program.input(1).set(i, -1 - static_cast<double>(i));
  const int32_t at[] = {7, -1, 999, 7};
  std::memcpy(program.input(2).data(), at, sizeof at);
  program.run();
  CHECK(program.output(0).data() == program.input(0).data());
  for (int64_t row = 0; row < 1000; ++row)
    for (int64_t k = 0; k < 3; ++k) {
      const double expected = row == 7     ? -1 - static_cast<double>(k)
                              : row == 999 ? -7 - static_cast<double>(k)
                                           : static_cast<double>(row * 3 + k);
      CHECK(program.input(0).at(row * 3 + k) == expected);
    }
}
