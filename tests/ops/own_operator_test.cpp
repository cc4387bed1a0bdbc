// Operators that a program adds are treated like the library's own. They are defined through public headers
// alone.
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/onnx_rule.h>
#include <millrace/operator.h>
#include <millrace/program.h>
#include <millrace/tensor.h>

#include "autodiff/gradient.h"
#include "backend/ref/evaluate.h"
#include "onnx/export.h"
#include "passes/pass.h"
#include "support/codegen_support.h"
#include "support/random_graph.h"
#include "support/samples.h"

using namespace millrace;

namespace {

std::vector<Type> same_type(const TypeContext& c) {
  if (!c.operands[0].dtype.is_float()) c.error("dtype is not supported");
  return {c.operands[0]};
}

/// Element-wise: cap · tanh(x / cap).
Operator softcap(std::string_view name) {
  Operator op;
  op.name = name;
  op.op_class = OpClass::elementwise;
  op.doc = "x, bent so that it stays between −cap and cap";
  op.attributes = {{"cap", AttributeType::number, "the bound", {.low = 0, .above = true}}};
  op.types = same_type;
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node& node) {
    const Scalar cap = b.constant(b.dtype(x[0]), node.attributes.number("cap"));
    return b.mul(cap, b.unary(ScalarOp::tanh, b.div(x[0], cap)));
  };
  op.gradient = [](const GradientContext& c) {
    // g · (1 − (y / cap)²)
    Graph& graph = c.graph;
    const Type& type = c.type(c.operands[0]);
    const auto filled = [&](double value) {
      return graph.add("broadcast", {graph.scalar(type.dtype, value)}, {{"shape", type.shape}});
    };
    const Value share = graph.add("div", {c.results[0], filled(c.node.attributes.number("cap"))});
    const Value slope = graph.add("sub", {filled(1), graph.add("square", {share})});
    return std::vector<Value>{graph.add("mul", {c.result_gradients[0], slope})};
  };
  op.repeat = Repeat::costly;
  op.samples = {{.operands = {{f32, {3, 5}}}, .attributes = {{"cap", 1.5}}},
                {.operands = {{f64, {4}}}, .attributes = {{"cap", 0.5}}},
                {.operands = {{bf16, {2, 17}}}, .attributes = {{"cap", 2.0}}},
                {.operands = {{f16, {2, 17}}}, .attributes = {{"cap", 2.0}}},
                {.operands = {{f32, {0, 3}}}, .attributes = {{"cap", 1.0}}}};
  return op;
}

/// Movement: rows in the opposite order.
Operator reversed_rows() {
  Operator op;
  op.name = "test_reversed_rows";
  op.op_class = OpClass::movement;
  op.doc = "The operand's rows, last one first";
  op.types = [](const TypeContext& c) {
    if (c.operands[0].shape.rank() == 0) c.error("a scalar has no rows");
    return std::vector<Type>{c.operands[0]};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    std::vector<Scalar> at(index.begin(), index.end());
    at[0] = b.sub(b.integer(i64, c.operands[0].shape[0].size() - 1), index[0]);
    return b.load(0, at);
  };
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{c.graph.add(*c.node.op, {c.result_gradients[0]})};
  };
  for (const DType dtype : all_dtypes()) op.samples.push_back({.operands = {{dtype, {5, 3}}}});
  return op;
}

/// Composite; its gradient is that of its body.
Operator squared_sum() {
  Operator op;
  op.name = "test_squared_sum";
  op.op_class = OpClass::composite;
  op.doc = "The sum of all squares";
  op.types = [](const TypeContext& c) { return std::vector<Type>{{same_type(c)[0].dtype, {}}}; };
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes&) {
    return std::vector<Value>{graph.add("sum", {graph.add("square", {operands[0]})})};
  };
  for (const DType dtype : {f32, f64, bf16, f16}) op.samples.push_back({.operands = {{dtype, {3, 4}}}});
  return op;
}

/// Heavy: no back end has a kernel for it, so it runs as it is written here.
Operator running_sum() {
  Operator op;
  op.name = "test_running_sum";
  op.op_class = OpClass::heavy;
  op.doc = "The sums of the first 1, 2, 3 … elements";
  op.types = [](const TypeContext& c) {
    if (c.operands[0].shape.rank() != 1 || c.operands[0].dtype != f32)
      c.error("f32 of one dimension is needed");
    return std::vector<Type>{c.operands[0]};
  };
  op.flops = [](const Graph&, const Node& node) { return static_cast<double>(node.types[0].shape.count()); };
  op.evaluate = [](const Node& node, std::span<const Array> operands) {
    Array sums(node.types[0]);
    double sum = 0;
    for (int64_t i = 0; i < sums.count(); ++i) sums.set(i, sum += operands[0].at(i));
    return std::vector<Array>{sums};
  };
  op.gradient = [](const GradientContext& c) {
    const auto reversed = [&](Value x) { return c.graph.add("test_reversed_rows", {x}); };
    return std::vector<Value>{reversed(c.graph.add(*c.node.op, {reversed(c.result_gradients[0])}))};
  };
  op.samples = {{.operands = {{f32, {7}}}}, {.operands = {{f32, {0}}}}};
  return op;
}

void register_all() {
  [[maybe_unused]] static const bool once = [] {
    Operator cap = softcap("test_softcap");
    cap.arithmetic = Arithmetic::follows;
    cap.onnx_rule = [](const OnnxCall& c) {
      const std::string bound = c.scalar(c.attributes().number("cap"));
      const std::string bent = c.onnx.node("Tanh", {c.onnx.node("Div", {c.operands[0], bound})});
      return c.one("Mul", {bent, bound});
    };
    register_operator(std::move(cap));
    register_operator(softcap("test_plain_softcap"));
    register_operator(reversed_rows());
    register_operator(squared_sum());
    register_operator(running_sum());
    return true;
  }();
}

/// The gradient of a network in which each of them stands.
Graph network() {
  register_all();
  Graph graph;
  const Value x = graph.input("x", {f32, {24, 16}}), w = graph.input("w", {f32, {16, 8}});
  graph.set_origin("bent");
  const Value bent = graph.add("test_softcap", {graph.add("matmul", {x, w})}, {{"cap", 1.5}});
  const Value turned = graph.add("test_reversed_rows", {bent});
  const Value sums =
      graph.add("test_running_sum", {graph.add("mean", {turned}, {{"axes", std::vector<int64_t>{1}}})});
  const Value loss = graph.add("test_squared_sum", {sums});
  const Value wrt[] = {x, w};
  std::vector<Value> outputs = gradients(graph, loss, wrt);
  outputs.push_back(loss);
  graph.set_outputs(outputs);
  return graph;
}

std::string operators(const Graph& graph) {
  std::string text;
  for (int i = 0; i < graph.size(); ++i) {
    text += std::string(graph.node(i).op->name) + " ";
    if (graph.node(i).op->op_class == OpClass::group) text += operators(*graph.node(i).body);
  }
  return text;
}

}  // namespace

TEST_CASE("a program's own operators have gradients, and compile to what the reference computes") {
  const Graph graph = network();
  CHECK(Graph::parse(graph.str()) == graph);
  const std::vector<Array> inputs = {random_array({f32, {24, 16}}, 1, -1, 1),
                                     random_array({f32, {16, 8}}, 2, -1, 1)};
  const std::vector<Array> expected = ref::evaluate(graph, inputs);
  for (const char* target : {"ref", "cpu"}) {
    CAPTURE(target);
    Program program = Program::compile(graph, {.target = target});
    CHECK(test::difference(test::run(program, inputs), expected) < 1e-5);
    if (target == std::string("cpu")) CHECK(program.explain().find("test_softcap") != std::string::npos);
  }
  for (const char* name : {"test_softcap", "test_reversed_rows", "test_squared_sum"}) {
    const Operator& op = get_operator(name);
    for (const Sample& sample : op.samples) {
      CAPTURE(describe(op, sample));
      if (sample.operands[0].dtype.is_float()) CHECK(check_gradient(op, sample).value_or("") == "");
    }
  }
}

TEST_CASE("a program's own movement is interpreted wherever the element lies") {
  register_all();
  Graph graph;
  const Shape shape{150, 3};
  graph.set_outputs({graph.add("test_reversed_rows", {graph.input("x", {f32, shape})})});
  Array x(Type{f32, shape});
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, static_cast<double>(i));
  const Array reversed = ref::evaluate(graph, std::vector<Array>{x})[0];
  for (int64_t row = 0; row < 150; ++row)
    for (int64_t k = 0; k < 3; ++k)
      CHECK(reversed.at(row * 3 + k) == static_cast<double>((149 - row) * 3 + k));
}

TEST_CASE("a composite that is given one value twice gives its whole gradient once") {
  Graph graph;
  const Value x = graph.input("x", {f64, {1, 2, 1, 1}}), p = graph.input("p", {f64, {2}}),
              mean = graph.input("mean", {f64, {2}}), variance = graph.input("variance", {f64, {2}});
  const Value y = graph.add("batch_norm_inference", {x, mean, variance, p, p}, {{"eps", 0.0}});
  const Value loss = graph.add("sum", {y}), wrt[] = {p};
  graph.set_outputs(gradients(graph, loss, wrt));
  // y = p (x − mean) / √variance + p
  const auto numbers = [](const Shape& shape, double a, double b) {
    return Array::of(f64, shape, std::vector<double>{a, b});
  };
  const std::vector<Array> found =
      ref::evaluate(graph, std::vector<Array>{numbers({1, 2, 1, 1}, 5, 9), numbers({2}, 3, 4),
                                              numbers({2}, 1, 1), numbers({2}, 4, 16)});
  CHECK(found[0].to_doubles() == std::vector<double>{3, 3});
}

TEST_CASE("a program's own operators are fused, and stored with as few bits as they say they may") {
  register_all();
  Target target;
  target.fuses = true;
  const auto stored = [&](const char* name) {
    Graph graph;
    const Value x = graph.input("x", {f32, {64, 128}}), w = graph.input("w", {f32, {128, 128}});
    Value y = graph.add("matmul", {x, w});
    y = graph.add(name, {y}, {{"cap", 2.0}});
    // Read twice, so that it is stored.
    graph.set_outputs(
        {graph.add("matmul", {y, w}), graph.add("sum", {graph.add("test_reversed_rows", {y})})});
    const Graph lowered = run_passes(graph, {target, "bf16", ref::evaluate_node});
    CHECK(operators(lowered).find(std::string("fused input ")) != std::string::npos);
    for (int i = 0; i < lowered.size(); ++i) {
      const Node& node = lowered.node(i);
      if (node.body && operators(*node.body).find(name) != std::string::npos) return node.types.list();
    }
    return std::vector<Type>{};
  };
  const std::vector<Type> follows = stored("test_softcap"), full = stored("test_plain_softcap");
  REQUIRE(!follows.empty());
  for (const Type& type : follows) CHECK(type.dtype == bf16);
  CHECK(std::any_of(full.begin(), full.end(), [](const Type& type) { return type.dtype == f32; }));
}

TEST_CASE(
    "a program's own operators are computed again under a memory budget, but not for one that looks at the "
    "last bit") {
  register_all();
  const auto repeats = [](std::string_view reader) {
    Graph graph;
    const Value x = graph.input("x", {f32, {256, 256}});
    const Value bent = graph.add("test_softcap", {x}, {{"cap", 1.5}});
    Value y = graph.add("sum", {graph.add("matmul", {graph.add("matmul", {x, x}), x})});
    graph.set_origin({"", Phase::backward});
    const Value read = graph.add(reader, {bent, x});
    graph.set_outputs({graph.add("sum", {graph.add("cast", {read}, {{"dtype", f32}})}), y});
    const Target target;
    PassContext context{target, "fp32", {}};
    context.drop_bytes = int64_t{1} << 40;
    const Graph result = passes().at("recompute").run(graph, context);
    int again = 0;
    for (int i = 0; i < result.size(); ++i)
      again += result.node(i).op->name == "test_softcap" && result.node(i).origin.again;
    return again;
  };
  CHECK(repeats("mul") == 1);
  CHECK(repeats("equal") == 0);
}

TEST_CASE("a program's own operators are exported by their rule, or through their body") {
  register_all();
  const auto exported = [](const char* name, Attributes attributes) {
    Graph graph;
    const Value x = graph.input("x", {f32, {3, 4}});
    graph.set_outputs({graph.add(name, {x}, std::move(attributes))});
    return onnx::export_model(graph, {});
  };
  const std::string capped = exported("test_softcap", {{"cap", 1.5}});
  for (const char* part : {"Div", "Tanh", "Mul"}) CHECK(capped.find(part) != std::string::npos);
  CHECK(exported("test_squared_sum", {}).find("ReduceSum") != std::string::npos);
  CHECK_THROWS_WITH_AS(exported("test_reversed_rows", {}),
                       "the operator test_reversed_rows has no counterpart in ONNX", InputError);
}

TEST_CASE("a program's own operators work on tensors, and errors name them") {
  register_all();
  const Tensor x = Tensor::of({3}, {-1, 0, 4});
  const Array y = apply("test_softcap", std::vector<Tensor>{x}, {{"cap", 2.0}})[0].to_array();
  for (int64_t i = 0; i < 3; ++i)
    CHECK(y.at(i) == doctest::Approx(2 * std::tanh(x.to_array().at(i) / 2)).epsilon(1e-5));
  Graph graph;
  const Value flags = graph.input("flags", {boolean, {3}});
  CHECK_THROWS_WITH_AS(graph.add("test_softcap", {flags}, {{"cap", 1.0}}),
                       "test_softcap(bool[3]): dtype is not supported", TypeError);
  CHECK_THROWS_WITH_AS(graph.add("test_softcap", {flags}, {{"cap", 0.0}}),
                       "attribute 'cap' of test_softcap must be more than 0, not 0", TypeError);
  CHECK_THROWS_WITH_AS(get_operator("test_softcup"),
                       "there is no operator 'test_softcup'; the nearest is 'test_softcap'", InputError);
}

TEST_CASE("an operator that is incomplete or there already is refused") {
  register_all();
  CHECK_THROWS_WITH_AS(register_operator(softcap("add")), "there is an operator 'add' already", InputError);
  CHECK_THROWS_WITH_AS(register_operator(softcap("test_softcap")),
                       "there is an operator 'test_softcap' already", InputError);
  Operator op = softcap("test_broken");
  op.scalar = nullptr;
  op.gradient = nullptr;
  CHECK_THROWS_WITH_AS(
      register_operator(op),
      "the operator is incomplete: test_broken lacks a scalar body; test_broken lacks a gradient, or "
      "differentiable = false",
      InputError);
  CHECK(find_operator("test_broken") == nullptr);
  op = softcap("test_random");
  op.random = true;
  CHECK_THROWS_AS(register_operator(op), InputError);
}
