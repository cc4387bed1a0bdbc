#include "runtime/profile.h"

#include <doctest/doctest.h>

#include <millrace/nn.h>
#include <millrace/optim.h>

#include "ops/build.h"

using namespace millrace;

namespace {

/// Two launches of 4 kB in and 4 kB out each.
Program two_launches() {
  Graph graph;
  ops::Build b(graph);
  graph.set_origin("first");
  const Value y = b.unary("exp", graph.input("x", {f32, {1024}}));
  graph.set_origin("second.part");
  graph.set_outputs({b.unary("neg", y)});
  CompileOptions options;
  options.target = "ref";  // does not fuse
  return Program::compile(graph, options);
}

Machine machine() {
  Machine m;
  m.fp32_gflops = 1;
  m.levels = {{"L2", 10000, 4}, {"RAM", int64_t{1} << 30, 1}};
  return m;
}

LaunchInfo launch(const std::string& operation, Origin origin, double flops, double bytes) {
  LaunchInfo info;
  info.operation = operation;
  info.origin = std::move(origin);
  info.flops = flops;
  info.traffic = {{bytes, 1e9, false}};
  return info;
}

}  // namespace

TEST_CASE("launches say what they are, what they compute and move, and how far back they were used") {
  const Program program = two_launches();
  const std::vector<LaunchInfo> launches = program.launches();
  REQUIRE(launches.size() == 2);
  CHECK(launches[0].operation == "exp");
  CHECK(launches[0].origin.layer == "first");
  CHECK(launches[0].flops == 1024);
  CHECK(launches[0].bytes() == 8192);
  REQUIRE(launches[1].traffic.size() == 2);
  CHECK(launches[0].traffic[0].distance == 16384);  // the input: once a step
  CHECK(launches[0].traffic[1].distance == 8192);   // read by the next launch
  CHECK(launches[1].traffic[0].distance == 8192);
  CHECK(launches[1].traffic[1].distance == 16384);
}

TEST_CASE("rows written into a donated table count as rows, into a new one as all of it") {
  for (const bool donated : {true, false}) {
    Graph graph;
    const Value table = graph.input("table", {f32, {1000, 8}}), index = graph.input("index", {i64, {3}}),
                rows = graph.input("rows", {f32, {3, 8}});
    graph.set_outputs({graph.add("scatter_rows", {table, index, rows})});
    CompileOptions options;
    if (donated) options.donations = {{0, 0}};
    const std::vector<LaunchInfo> launches = Program::compile(graph, options).launches();
    REQUIRE(launches.size() == 1);
    CHECK(launches[0].bytes() == 3 * 8 + 3 * 8 * 4 + (donated ? 3 * 8 * 4 : 2 * 1000 * 8 * 4));
  }
}

TEST_CASE("rows written into what an earlier launch made count as rows") {
  Graph graph;
  Value table = graph.input("table", {f32, {1000, 8}});
  const Value rows = graph.input("rows", {f32, {3, 8}});
  for (const char* index : {"first", "second", "third"})
    table = graph.add("scatter_rows", {table, graph.input(index, {i64, {3}}), rows});
  graph.set_outputs({table});
  const std::vector<LaunchInfo> launches = Program::compile(graph).launches();
  REQUIRE(launches.size() == 3);
  const double moved = 3 * 8 + 3 * 8 * 4, whole = 1000 * 8 * 4;
  CHECK(launches[0].bytes() == moved + 2 * whole);
  CHECK(launches[1].bytes() == moved + 3 * 8 * 4);  // in the same memory of the arena
  CHECK(launches[2].bytes() == moved + 2 * whole);
}

TEST_CASE("profiling records every run while it is on, in order") {
  Program program = two_launches();
  CHECK(program.run_times().empty());
  program.set_profiling(true);
  for (int i = 0; i < 200; ++i) program.run();
  const auto runs = program.run_times();
  REQUIRE(runs.size() == 200);
  int64_t last = 0;
  for (const auto& run : runs) {
    REQUIRE(run.size() == 4);
    for (const int64_t at : run) {
      CHECK(at >= last);
      last = at;
    }
  }
  program.set_profiling(true);
  program.run();
  CHECK(program.run_times().size() == 1);
  program.set_profiling(false);
  program.run();
  CHECK(program.run_times().empty());
}

TEST_CASE("the parts of a step add up to it, over the faster half of the runs") {
  std::vector<LaunchInfo> launches = {launch("matmul", "a", 100, 10),
                                      launch("exp", {"a", Phase::backward}, 1, 200),
                                      launch("exp", {"a.weight", Phase::update}, 1, 50)};
  // Steps of 1,000 and of 3,000 ns; the latter must not count.
  std::vector<std::vector<int64_t>> runs;
  std::vector<StepMarks> marks;
  for (int r = 0; r < 4; ++r) {
    const int64_t begin = 10000 * r, scale = r % 2 == 0 ? 1 : 3;
    const auto at = [&](int64_t t) { return begin + scale * t; };
    marks.push_back({at(0), at(100), at(150), at(950), at(1000)});
    runs.push_back({at(200), at(500), at(800), at(900), at(910)});
  }
  const Profile p = make_profile(launches, runs, marks, machine());
  CHECK(p.runs == 4);
  CHECK(p.counted == 2);
  CHECK(p.seconds == doctest::Approx(1000e-9));
  CHECK(p.data == doctest::Approx(100e-9));
  CHECK(p.phases[0] == doctest::Approx(300e-9));
  CHECK(p.phases[1] == doctest::Approx(300e-9));
  CHECK(p.phases[2] == doctest::Approx(100e-9));
  CHECK(p.data + p.host + p.phases[0] + p.phases[1] + p.phases[2] == doctest::Approx(p.seconds));
  // Roofs: 100 operations at 1 GFLOP/s; 200 bytes at 1 GB/s.
  CHECK(p.launches[0].roof.seconds() == doctest::Approx(100e-9));
  CHECK(!p.launches[0].roof.memory_bound());
  CHECK(p.launches[1].roof.seconds() == doctest::Approx(200e-9));
  CHECK(p.launches[1].share() == doctest::Approx(2.0 / 3));
  CHECK(p.typical_times.size() == 5);
  const auto layers = group_launches(p.launches, [](const LaunchInfo& info) { return layer_of(info, 0); });
  REQUIRE(layers.size() == 1);  // the weight's update is the layer's
  CHECK(layers[0].launches == 3);
  const auto advice = advise(p);
  REQUIRE(advice.size() == 5);
  CHECK(advice[0].seconds == doctest::Approx(200e-9));  // the product, 300 ns instead of 100
  CHECK(advice[0].text.starts_with("matmul, forward"));
}

TEST_CASE("runs are of the steps that they were in, though other steps ran other programs") {
  const std::vector<LaunchInfo> launches = {launch("matmul", "a", 100, 10)};
  // Steps of 1,000 ns; this program ran in the second and the fourth.
  std::vector<std::vector<int64_t>> runs;
  std::vector<StepMarks> marks;
  for (int64_t r = 0; r < 4; ++r) {
    const int64_t begin = 1000 * r, longer = r % 2 == 0 ? 0 : 500;
    marks.push_back({begin, begin + 100, begin + 150, begin + 400 + longer, begin + 450 + longer});
    if (r % 2 == 1) runs.push_back({begin + 200, begin + 800});
  }
  const Profile p = make_profile(launches, runs, marks, machine());
  CHECK(p.runs == 2);
  CHECK(p.seconds == doctest::Approx(950e-9));
  CHECK(p.host == doctest::Approx(250e-9));
  CHECK(p.data + p.host + p.phases[0] + p.phases[1] + p.phases[2] == doctest::Approx(p.seconds));
}

TEST_CASE("bytes count at the rate of the memory that still holds them") {
  LaunchInfo info = launch("exp", "a", 0, 1000);
  info.traffic.push_back({1000, 9999, true});
  CHECK(roof_of(info, machine()).seconds() == doctest::Approx(1000e-9 + 250e-9));
}

TEST_CASE("layers are cut to a depth, and kinds named") {
  const LaunchInfo info = launch("fused(add)", {"blocks.0.conv.weight", Phase::update}, 10, 1);
  CHECK(layer_of(info, 0) == "blocks.0.conv");
  CHECK(layer_of(info, 1) == "blocks");
  CHECK(layer_of(info, 2) == "blocks.0");
  CHECK(layer_of(info, 9) == "blocks.0.conv");
  CHECK(layer_of(launch("add", "", 1, 1), 0) == "(no layer)");
  CHECK(kind_of(info) == "fused element-wise");
  CHECK(kind_of(launch("fused(transpose)", "", 0, 1)) == "data movement");
  CHECK(kind_of(launch("conv2d", "", 1, 1)) == "conv2d");
}

TEST_CASE("a training step knows forward, backward and update, through all passes") {
  auto model = std::make_shared<nn::Sequential>();
  model->append(std::make_shared<nn::Linear>(64, 32));
  model->append(nn::relu());
  model->append(std::make_shared<nn::Linear>(32, 16));
  model->initialise(1);
  optim::TrainStep step(
      model, {{"x", {f32, {128, 64}}}, {"y", {i64, {128}}}},
      [](nn::Module& module, std::span<const Tensor> x) {
        return optim::StepResult{cross_entropy(module(x[0]), x[1])};
      },
      optim::adamw());
  std::map<Phase, double> products;
  bool updates = false;
  for (const LaunchInfo& info : step.program().launches()) {
    if (info.operation == "matmul") products[info.origin.phase] += info.flops;
    updates = updates || (info.origin.phase == Phase::update && info.origin.layer == "0.weight");
  }
  const double first = 2.0 * 128 * 64 * 32, second = 2.0 * 128 * 32 * 16;
  CHECK(products[Phase::forward] == first + second);
  CHECK(products[Phase::backward] == first + 2 * second);  // the input needs no gradient
  CHECK(products[Phase::update] == 0);
  CHECK(updates);
}
