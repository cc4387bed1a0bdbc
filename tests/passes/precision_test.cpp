#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/graph.h>
#include <millrace/operator.h>
#include <millrace/program.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "passes/pass.h"
#include "support/cache_variable.h"
#include "support/codegen_support.h"
#include "support/graphs.h"
#include "support/random_graph.h"

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
  CHECK_THROWS_WITH_AS((void)product("cpu", "bf8", used),
                       "there is no precision 'bf8'; choose fp32, bf16, bf16-pure or fp16", InputError);
}

TEST_CASE("casts between bf16 and f32 stand beside the element-wise operators, not beyond a reshape") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {4, 8, 32}}), w = graph.input("w", {f32, {32, 16}});
  const Value rows = b.reshape(b.unary("tanh", x), {32, 32});
  const Value product = graph.add("matmul", {rows, w}, {{"transpose_a", false}, {"transpose_b", false}});
  graph.set_outputs({b.unary("tanh", b.reshape(product, {4, 8, 16}))});
  const Graph narrow = passes().at("precision").run(graph, {Target{}, "bf16", {}});
  narrow.verify();
  const auto producer = [&](Value v) -> const Node& { return narrow.node(v); };
  const Node& last = producer(narrow.outputs()[0]);
  const Node& widened = producer(last.operands[0]);
  CHECK(widened.op->name == "cast");
  const Node& shaped = producer(widened.operands[0]);
  REQUIRE(shaped.op->name == "reshape");
  CHECK(shaped.types[0].dtype == bf16);
  const Node& matmul = producer(shaped.operands[0]);
  REQUIRE(matmul.op->name == "matmul");
  const Node& left = producer(matmul.operands[0]);
  REQUIRE(left.op->name == "reshape");
  CHECK(producer(left.operands[0]).op->name == "cast");
}

namespace {

/// Two layers, of which the second one's matrix is small.
Graph two_layers() {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {256, 512}});
  const Value first = b.matmul(x, graph.input("v", {f32, {512, 64}}));
  graph.set_outputs({b.matmul(b.unary("tanh", first), graph.input("w", {f32, {64, 8}}))});
  return graph;
}

/// The graph narrowed, where everybody who asks is told that f32 is faster, or that it is not.
Graph narrowed_as_told(const Graph& graph, bool wide, std::vector<std::string>& problems,
                       bool exact = false) {
  static const Target target;
  PassContext context{target, "bf16", {}, exact};
  context.faster = [&](const std::string& problem, const Form& narrow, const Form& other) {
    problems.push_back(problem);
    test::check_forms(narrow, other);
    CHECK(narrow.name == "bf16");
    CHECK(other.name == "f32");
    return wide;
  };
  Graph result = passes().at("precision").run(graph, context);
  result.verify();
  return result;
}

/// The dtype of operand 0 of each matrix product, in order.
std::vector<DType> multiplied(const Graph& graph) {
  std::vector<DType> all;
  for (int i = 0; i < graph.size(); ++i)
    if (graph.node(i).op->name == "matmul") all.push_back(graph.type(graph.node(i).operands[0]).dtype);
  return all;
}

}  // namespace

TEST_CASE("products stay in f32 where that is faster; what is too small to be measured is bf16") {
  std::vector<std::string> problems;
  const Graph graph = two_layers();
  CHECK(multiplied(narrowed_as_told(graph, true, problems)) == std::vector<DType>{f32, bf16});
  CHECK(problems == std::vector<std::string>{"bf16 or f32: matmul [256, 512] of f32 [512, 64] of f32"});
  CHECK(multiplied(narrowed_as_told(graph, false, problems)) == std::vector<DType>{bf16, bf16});
  CHECK(problems.size() == 2);
  // Programs that must keep the order of sums ask nobody.
  CHECK(multiplied(narrowed_as_told(graph, true, problems, true)) == std::vector<DType>{bf16, bf16});
  CHECK(problems.size() == 2);
}

TEST_CASE("a problem says which operands must be cast for one form alone") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {256, 64}}),
              w = graph.constant(test::values_for({f32, {64, 64}}, 1));
  const Value first = b.matmul(x, w);
  const Value second = b.matmul(b.reshape(first, {256, 64}), w);
  const Value third = b.matmul(b.unary("tanh", second), w);
  const Value alone = b.matmul(graph.input("y", {f32, {256, 64}}), w);
  graph.set_outputs({third, alone, b.matmul(x, w, false, true)});
  std::vector<std::string> problems;
  narrowed_as_told(graph, false, problems);
  CHECK(problems == std::vector<std::string>{// x is read twice, the result by a product alone
                                             "bf16 or f32: matmul [256, 64] [64, 64] to bf16",
                                             "bf16 or f32: matmul [256, 64] of bf16 [64, 64]",
                                             "bf16 or f32: matmul [256, 64] [64, 64]",
                                             "bf16 or f32: matmul [256, 64] of f32 [64, 64]",
                                             "bf16 or f32: matmul [256, 64] [64, 64] transpose_b"});
}

TEST_CASE("whether products are faster in f32 is measured, recorded, and taken from the record") {
  const testing::CacheVariable cache;
  const Graph graph = two_layers();
  std::vector<std::string> problems;
  narrowed_as_told(graph, false, problems);
  REQUIRE(problems.size() == 1);
  const Program measured = Program::compile(graph, {.precision = "bf16"});
  if (measured.precision() != "bf16") return;
  REQUIRE(measured.choices().contains(problems[0]));
  for (const std::string choice : {"bf16", "f32"}) {
    CompileOptions options{.precision = "bf16"};
    options.choices[problems[0]] = choice;
    const Program program = Program::compile(graph, options);
    CHECK(program.choices().at(problems[0]) == choice);
    int narrow = 0;
    for (const LaunchInfo& launch : program.launches())
      narrow += launch.operation == "matmul" && launch.bits == 16;
    CHECK(narrow == (choice == "bf16" ? 2 : 1));
  }
  // A budget that suffices changes nothing; for exact results nothing is asked.
  CHECK(Program::compile(graph, {.precision = "bf16", .memory = 10'000'000}).choices() == measured.choices());
  CHECK(!Program::compile(graph, {.precision = "bf16", .exact = true}).choices().contains(problems[0]));
}

TEST_CASE("attention and its gradient multiply bf16, and keep statistics and masks in f32") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {2, 8, 12, 16}}), mask = graph.input("mask", {f32, {8, 8}});
  const Value packed = graph.add("self_attention", {x, mask}, {{"heads", int64_t{4}}, {"causal", true}});
  const Value q = graph.input("q", {f32, {2, 4, 8, 16}});
  const Value y = graph.add("attention", {q, q, q}, {{"causal", true}});
  const Value loss =
      b.add(b.mean(b.unary("square", packed), {}, false), b.mean(b.unary("square", y), {}, false));
  const Value wrt[] = {x, q};
  std::vector<Value> outputs = gradients(graph, loss, wrt);
  outputs.push_back(packed);
  graph.set_outputs(outputs);
  const Graph narrow = passes().at("precision").run(graph, {Target{}, "bf16", {}});
  narrow.verify();
  int seen = 0;
  for (int i = 0; i < narrow.size(); ++i) {
    const Node& node = narrow.node(i);
    const std::string_view name = node.op->name;
    if (name != "attention" && name != "attention_grad" && name != "self_attention" &&
        name != "self_attention_grad")
      continue;
    ++seen;
    for (const Value& operand : node.operands) {
      const Type& type = narrow.type(operand);
      CHECK(type.dtype == (type.shape.rank() == 4 ? bf16 : f32));
    }
    for (const Type& type : node.types) CHECK(type.dtype == (type.shape.rank() == 4 ? bf16 : f32));
  }
  CHECK(seen == 4);
  for (const Value& output : narrow.outputs()) CHECK(narrow.type(output).dtype == f32);
}

namespace {

/// The type that the value read by two sums is stored in: y = f(x as f32), its sums over rows and over
/// columns.
DType stored_type(const std::string& precision, const char* reader, DType from, DType times = f32) {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {from, {64, 128}});
  const Value w = graph.input("w", {times, times == f32 ? Shape{128} : Shape{64, 128}});
  const auto widened = [&](Value v) {
    return graph.type(v).dtype == f32 ? v : graph.add("cast", {v}, {{"dtype", f32}});
  };
  const Value y = b.unary("tanh", b.mul(widened(x), widened(w)));
  graph.set_outputs({b.sum(y, {0}, false), b.sum(b.unary(reader, y), {1}, false)});
  Target target;
  target.fuses = true;
  const PassContext context{target, precision, {}};
  const Graph result = passes().at("store-bf16").run(passes().at("fuse").run(graph, context), context);
  result.verify();
  for (int i = 0; i < result.size(); ++i)
    for (const Type& type : result.node(i).types)
      if (!result.is_input({i, 0}) && type.shape.count() == 64 * 128) return type.dtype;
  return boolean;
}

}  // namespace

TEST_CASE("what was computed from bf16 is stored as bf16, unless a reader would amplify the rounding") {
  CHECK(stored_type("bf16", "neg", bf16) == bf16);
  CHECK(stored_type("bf16", "exp", bf16) == f32);
  CHECK(stored_type("bf16", "sin", bf16) == f32);
  CHECK(stored_type("bf16", "neg", f32) == f32);
  CHECK(stored_type("fp32", "neg", bf16) == f32);
  // Masks and counts lose nothing; what comes from more digits than bf16 has does.
  CHECK(stored_type("bf16", "neg", bf16, boolean) == bf16);
  CHECK(stored_type("bf16", "neg", bf16, f64) == f32);
  CHECK(stored_type("bf16", "neg", bf16, f16) == f32);
}

TEST_CASE("what is widened for windows that lie over each other is read as it is, not copied") {
  Graph graph;
  const Value x = graph.input("x", {bf16, {2, 16, 32, 32}});
  const std::vector<int64_t> three{3, 3}, two{2, 2}, ones{1, 1, 1, 1};
  const Value wide = graph.add("cast", {x}, {{"dtype", f32}});
  graph.set_outputs({graph.add("max_pool2d", {wide}, {{"kernel", three}, {"strides", two}, {"pads", ones}})});
  Target target;
  target.fuses = true;
  const Graph lowered = run_passes(graph, {target, "bf16", ref::evaluate_node});
  int groups = 0;
  for (int i = 0; i < lowered.size(); ++i) groups += lowered.node(i).op->op_class == OpClass::group;
  CHECK(groups == 1);
  const Array values = random_array(graph.type(x), 7, -1, 1);
  CHECK(ref::evaluate(lowered, std::span(&values, 1))[0].identical(
      ref::evaluate(graph, std::span(&values, 1))[0]));
}

TEST_CASE("the gradient of a maximum finds its element, though values between kernels are bf16") {
  Graph graph;
  ops::Build b(graph);
  const Type type{bf16, {64, 128}};
  const Value x = graph.add("cast", {graph.input("x", type)}, {{"dtype", f32}});
  const Value largest = b.max(b.unary("tanh", x), {1}, false);
  const Value wrt[] = {x};
  graph.set_outputs({gradients(graph, b.mean(largest, {}, false), wrt)});
  Target target;
  target.fuses = true;
  const Array values = random_array(type, 7, -1, 1);
  const Array exact = ref::evaluate(graph, std::span(&values, 1))[0];
  const Graph lowered = run_passes(graph, {target, "bf16", ref::evaluate_node});
  const Array result = ref::evaluate(lowered, std::span(&values, 1))[0];
  double worst = 0;
  for (int64_t i = 0; i < exact.count(); ++i)
    worst = std::max(worst, std::isfinite(result.at(i)) ? std::abs(result.at(i) - exact.at(i)) : HUGE_VAL);
  CHECK(worst < 1e-4);
}

TEST_CASE("a parameter stored as bf16 is widened for each phase by itself") {
  Graph graph;
  const Value x = graph.input("x", {f32, {16, 32}}), w = graph.input("w", {bf16, {32, 32}});
  graph.set_origin("w");
  const Value wide = graph.add("cast", {w}, {{"dtype", f32}});
  graph.set_origin("layer");
  const Value y = graph.add("matmul", {graph.add("matmul", {x, wide}), wide});
  graph.set_origin({"layer", Phase::backward});
  const Value back = graph.add("matmul", {y, wide}, {{"transpose_b", true}});
  graph.set_outputs({y, back});
  const Graph result = passes().at("widen-again").run(graph, {Target{}, "fp32", {}});
  result.verify();
  std::vector<Origin> casts;
  for (int i = 0; i < result.size(); ++i)
    if (result.node(i).op->name == "cast") casts.push_back(result.node(i).origin);
  CHECK(casts == std::vector<Origin>{{"w"}, Origin("w").repeated(Phase::backward)});
  const std::vector<Array> inputs = {random_array({f32, {16, 32}}, 1, -1, 1),
                                     random_array({bf16, {32, 32}}, 2, -1, 1)};
  const auto before = ref::evaluate(graph, inputs), after = ref::evaluate(result, inputs);
  for (size_t o = 0; o < 2; ++o) CHECK(before[o].identical(after[o]));
}

TEST_CASE("fp16 products read and give what f16 holds, overflows included") {
  for (const std::string target : {"ref", "cpu"}) {
    CAPTURE(target);
    std::string used;
    const Array exact = product("ref", "fp32", used), result = product(target, "fp16", used);
    CHECK(used == "fp16");
    double largest = 0;
    for (int64_t i = 0; i < result.count(); ++i) {
      CHECK(result.at(i) == f16_to_float(float_to_f16(static_cast<float>(result.at(i)))));
      largest = std::max(largest, std::abs(result.at(i) - exact.at(i)));
    }
    CHECK(largest > 1e-5);
    CHECK(largest < 0.02);
    Graph graph;
    const Value a = graph.input("a", {f32, {1, 1}}), b = graph.input("b", {f32, {1, 1}});
    graph.set_outputs({graph.add("matmul", {a, b})});
    Program program = Program::compile(graph, {.target = target, .precision = "fp16"});
    const auto times = [&](double x, double y) {
      program.input(0).set(0, x);
      program.input(1).set(0, y);
      program.run();
      return program.output(0).at(0);
    };
    CHECK(times(256, 255) == 65280);
    CHECK(std::isinf(times(256, 256)));   // the product
    CHECK(std::isinf(times(7e4, 1e-3)));  // an operand
    CHECK(times(1e-8, 1e4) == 0);
  }
}

TEST_CASE("random graphs in fp16 agree with the reference") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const test::RandomGraph made = test::random_graph(seed, 25);
    std::vector<Program> programs;
    for (const char* target : {"ref", "cpu"})
      programs.push_back(Program::compile(made.graph, {.target = target, .precision = "fp16"}));
    for (Program& program : programs) {
      for (int i = 0; i < program.input_count(); ++i) program.bind_input(i, made.inputs[i].clone());
      program.run();
    }
    for (int o = 0; o < programs[0].output_count(); ++o)
      if (programs[0].output(o).dtype().is_float())
        CHECK(test::difference(programs[1].output(o), programs[0].output(o)) < 2e-2);
  }
}
