#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <tuple>
#include <vector>

#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "base/thread_pool.h"
#include "ops/build.h"
#include "support/graphs.h"
#include "support/random_graph.h"

using namespace millrace;

namespace {

void fill(Program& program, const std::vector<Array>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) program.input(static_cast<int>(i)).assign(inputs[i]);
}

/// layer_norm(x + residual) · scale → softmax, as one chain of rows.
Graph rows_graph(const Shape& shape) {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, shape}), residual = graph.input("residual", {f32, shape});
  const Value weight = graph.input("weight", {f32, {shape[shape.rank() - 1]}});
  const Value sum = b.add(x, residual);
  const Value normal =
      graph.add("layer_norm", {sum, weight, weight}, {{"axis", int64_t{shape.rank() - 1}}, {"eps", 1e-5}});
  graph.set_outputs({b.softmax(normal, shape.rank() - 1), b.mul(normal, normal)});
  return graph;
}

}  // namespace

TEST_CASE(
    "launches over the same rows follow each other row by row, with the values of the reference back end") {
  for (const Shape& shape :
       {Shape{1, 1}, Shape{1, 700}, Shape{7, 33}, Shape{64, 48}, Shape{2, 3, 130}, Shape{331, 257},
        Shape{4096, 64}, Shape{2099, 1024}}) {  // the last: more than caches hold
    CAPTURE(shape.str());
    const Graph graph = rows_graph(shape);
    const std::vector<Array> inputs = test::inputs_for(graph);
    const std::vector<Array> expected = ref::evaluate(graph, inputs);
    std::vector<Array> first;
    for (const int threads : {1, 2, 5}) {
      ThreadPool::set_default_threads(threads);
      Program program = Program::compile(graph);
      fill(program, inputs);
      for (const bool profiled : {false, true}) {
        program.set_profiling(profiled);
        program.run();
        for (int o = 0; o < 2; ++o) CHECK(test::difference(program.output(o), expected[o]) < 1e-5);
        if (first.empty()) first = {program.output(0).clone(), program.output(1).clone()};
        for (int o = 0; o < 2; ++o) CHECK(test::difference(program.output(o), first[o]) == 0);
      }
      if (shape.elements() == 4096 * 64) CHECK(test::links(program) >= 2);
    }
  }
  ThreadPool::set_default_threads(0);
}

TEST_CASE("what only a chain reads is never there as a whole") {
  const Shape shape{8192, 512};
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, shape});
  graph.set_outputs({b.softmax(x, 1)});
  Program program = Program::compile(graph);
  CHECK(test::links(program) >= 1);
  CHECK(program.arena_bytes() < 2 << 20);  // the exponentials would be 16 MB
}

TEST_CASE("a packed product is followed by what is added to it and by its activation") {
  for (const std::string& precision : test::precisions_here({"fp32", "bf16"}))
    for (const auto& [m, k, n] :
         {std::tuple{4096, 64, 256}, std::tuple{1000, 97, 130}, std::tuple{5003, 300, 50}}) {
      CAPTURE(m);
      CAPTURE(precision);
      Graph graph;
      ops::Build b(graph);
      const Value x = graph.input("x", {f32, {m, k}}), w = graph.input("w", {f32, {n, k}});
      const Value bias = graph.input("bias", {f32, {n}}), residual = graph.input("residual", {f32, {m, n}});
      const Value sum = b.add(b.matmul(x, w, false, true), b.broadcast(bias, {m, n}));
      graph.set_outputs({graph.add("gelu", {b.add(sum, residual)})});
      const std::vector<Array> inputs = test::inputs_for(graph);
      const std::vector<Array> expected = ref::evaluate(graph, inputs);
      double largest = 0;
      for (int64_t i = 0; i < expected[0].count(); ++i) largest = std::max(largest, expected[0].at(i));
      CompileOptions options;
      options.precision = precision;
      Array first;
      for (const int threads : {1, 2, 5}) {
        ThreadPool::set_default_threads(threads);
        Program program = Program::compile(graph, options);
        fill(program, inputs);
        program.run();
        program.run();
        CHECK(test::difference(program.output(0), expected[0]) <
              (precision == "fp32" ? 1e-6 : 1e-2) * largest);
        if (threads == 1) first = program.output(0).clone();
        CHECK(test::difference(program.output(0), first) == 0);
      }
    }
  ThreadPool::set_default_threads(0);
}

TEST_CASE("a chain may overwrite what it has read") {
  // x is replaced by softmax(x) + x, row after row.
  const Shape shape{600, 100};
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, shape});
  graph.set_outputs({b.add(b.softmax(x, 1), x)});
  CompileOptions options;
  options.donations = {{0, 0}};
  Program program = Program::compile(graph, options);
  Array now = test::values_for({f32, shape}, 1);
  fill(program, {now});
  for (int run = 0; run < 3; ++run) {
    program.run();
    now = ref::evaluate(graph, std::vector<Array>{now})[0];
    CHECK(test::difference(program.input(0), now) < 1e-5);
  }
}

TEST_CASE("a chain does not overwrite what an earlier member reads across its rows") {
  // m reads all of w for each row, as columns; the result replaces w.
  for (const int64_t size : {64, 512, 1100}) {
    const Shape shape{size, size};
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, shape}), w = graph.input("w", {f32, shape});
    const Value m = b.softmax(b.add(x, b.transpose(w, {1, 0})), 1);
    graph.set_outputs({b.add(b.mul(b.softmax(m, 1), 100.0), w)});
    CompileOptions options;
    options.donations = {{0, 1}};
    for (const int threads : {1, 4}) {
      ThreadPool::set_default_threads(threads);
      Program program = Program::compile(graph, options);
      std::vector<Array> now = test::inputs_for(graph);
      fill(program, now);
      for (int run = 0; run < 2; ++run) {
        program.run();
        now[1] = ref::evaluate(graph, now)[0];
        CHECK(test::difference(program.input(1), now[1]) < 1e-4);
      }
    }
  }
  ThreadPool::set_default_threads(0);
}

TEST_CASE("a transpose in tiles of rows is followed by what reads its rows") {
  for (const auto& [rows, columns] :
       {std::pair{64, 16}, std::pair{1000, 16}, std::pair{333, 16}, std::pair{5000, 16}, std::pair{64, 40}}) {
    CAPTURE(rows);
    Graph graph;
    ops::Build b(graph);
    const Value x = graph.input("x", {f32, {columns, rows}}), y = graph.input("y", {f32, {rows, columns}});
    const Value sum = b.add(b.transpose(x, {1, 0}), y);
    graph.set_outputs({graph.add("layer_norm", {sum}, {{"axis", int64_t{1}}}), sum});
    const std::vector<Array> inputs = test::inputs_for(graph);
    const std::vector<Array> expected = ref::evaluate(graph, inputs);
    for (const int threads : {1, 2, 5}) {
      ThreadPool::set_default_threads(threads);
      Program program = Program::compile(graph);
      CHECK(test::difference(test::run(program, inputs), expected) < 1e-5);
    }
  }
  ThreadPool::set_default_threads(0);
}
