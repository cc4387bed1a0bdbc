// The lists of passes, rules and providers, and a program's own among them.
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/operator.h>
#include <millrace/program.h>

#include "passes/pass.h"
#include "passes/rules/rule.h"
#include "target/provider.h"

using namespace millrace;

namespace {

std::vector<std::string> library_names(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return name.starts_with("test-"); });
  return names;
}

/// x · 7 becomes x · 8 in a layer that no other test has.
Graph sevens_are_eights(const Graph& graph, const PassContext&) {
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (node.origin.layer != "sevens" || node.op->name != "mul") return false;
    Graph& to = rewrite.graph();
    rewrite.set({i, 0}, to.add("mul", {rewrite[node.operands[0]], to.scalar(f32, 8)}));
    return true;
  });
  return rewrite.finish();
}

/// As the reference computes it: the operand.
Operator kept() {
  Operator op;
  op.name = "test_kept";
  op.op_class = OpClass::heavy;
  op.doc = "The operand";
  op.types = [](const TypeContext& c) { return std::vector<Type>{c.operands[0]}; };
  op.flops = [](const Graph&, const Node&) { return 1.0; };
  op.evaluate = [](const Node&, std::span<const Array> operands) { return std::vector<Array>{operands[0]}; };
  op.differentiable = false;
  return op;
}

/// As the own provider computes it: 42.
class FortyTwo final : public Kernel {
 public:
  explicit FortyTwo(int64_t count) : count_(count) {}
  void run(void* const*, void* const* results, void*, DeviceContext) override {
    std::fill_n(static_cast<float*>(results[0]), count_, 42.0f);
  }
  std::string description() const override { return "the answer"; }

 private:
  int64_t count_;
};

class OwnProvider final : public OperatorProvider {
 public:
  OwnProvider()
      : OperatorProvider("only test_kept",
                         {{"test_kept", [](const KernelRequest& request) -> std::unique_ptr<Kernel> {
                             return std::make_unique<FortyTwo>(request.operand_type(0).shape.count());
                           }}}) {}
  std::string name() const override { return "test-own"; }
  bool contested(const Graph&, const Node&) const override { return true; }
};

/// The results of a program for x = 3.
std::vector<double> run_own(bool with_kept) {
  Graph graph;
  const Value x = graph.input("x", {f32, {}});
  graph.set_origin({"sevens"});
  const Value product = graph.add("mul", {x, graph.scalar(f32, 7)});
  std::vector<Value> outputs = {product};
  if (with_kept) outputs.push_back(graph.add("test_kept", {x}));
  graph.set_outputs(outputs);
  Program program = Program::compile(graph, {});
  CHECK(program.choices().empty());  // the reference is not timed beside others
  program.input(0).set(0, 3);
  program.run();
  std::vector<double> results;
  for (int o = 0; o < program.output_count(); ++o) results.push_back(program.output(o).at(0));
  return results;
}

}  // namespace

TEST_CASE("passes, rules and providers come in the order of their places") {
  const std::vector<std::string> in_order = {"scan",
                                             "simplify-whole",
                                             "recognise-attention",
                                             "recognise-norms",
                                             "inline",
                                             "simplify",
                                             "reassociate",
                                             "fold",
                                             "fold-scale",
                                             "fuse-epilogue",
                                             "widen-products",
                                             "precision",
                                             "round-f16",
                                             "refold",
                                             "hoist",
                                             "simplify-hoisted",
                                             "cse",
                                             "sum-rounded",
                                             "rescan",
                                             "sparse",
                                             "dce",
                                             "widen-again",
                                             "join-products",
                                             "keep-copies",
                                             "recompute",
                                             "fuse",
                                             "store-bf16"};
  CHECK(library_names(passes().names()) == in_order);
  const std::vector<std::string> rules_in_order = {"reshape-of-reshape",
                                                   "broadcast-of-broadcast",
                                                   "transpose-of-transpose",
                                                   "no-op",
                                                   "widened-and-back",
                                                   "reduce-nothing",
                                                   "add-zero",
                                                   "multiply-by-one",
                                                   "negative-of-negative",
                                                   "add-of-negative",
                                                   "select-of-constant",
                                                   "small-power",
                                                   "divide-by-power-of-two",
                                                   "extreme-of-broadcast",
                                                   "gather-of-cast",
                                                   "matmul-of-transpose",
                                                   "divide-by-constant",
                                                   "sum-of-broadcast",
                                                   "log-of-softmax",
                                                   "stable-log-sum-exp",
                                                   "concat-of-many",
                                                   "transposed-convolution-of-patches",
                                                   "large-window"};
  CHECK(library_names(rules().names()) == rules_in_order);
  const std::vector<std::string> by_preference = {"depthwise",
                                                  "few-channels",
                                                  "winograd",
                                                  "thin-product",
                                                  "small-matmul",
                                                  "gemm",
                                                  "onednn",
                                                  "attention-by-tiles",
                                                  "attention",
                                                  "paged-attention",
                                                  "layer-norm",
                                                  "scatter-add",
                                                  "scatter-extreme",
                                                  "scatter-rows",
                                                  "first-occurrence",
                                                  "nonzero",
                                                  "non-max-suppression",
                                                  "unique",
                                                  "refuse",
                                                  "top-k",
                                                  "tree-ensemble",
                                                  "resize",
                                                  "mel",
                                                  "codegen"};
  CHECK(library_names(cpu::providers().names()) == by_preference);
}

TEST_CASE("a pass leaves a graph's inputs and outputs as they are, also those of bodies") {
  Graph graph;
  const Value x = graph.input("x", {f32, {2}}), y = graph.input("y", {f32, {2}});
  graph.set_outputs({graph.add("add", {x, y})});
  const auto refused = [&](Graph (*run)(const Graph&, const PassContext&), const char* what) {
    const Pass pass{.name = "test-bad", .doc = "none", .place = 1, .run = run};
    CHECK_THROWS_WITH_AS(run_pass(pass, graph, {Target{}, "fp32", {}}), doctest::Contains(what), InputError);
  };
  refused([](const Graph&, const PassContext&) { return Graph(); }, "the pass 'test-bad' changes the inputs");
  refused(
      [](const Graph& given, const PassContext&) {
        Graph other = given;
        other.input("z", {f32, {1}});
        return other;
      },
      "changes the inputs of a graph, their number or types (2 of them were given, 3 came back)");
  refused(
      [](const Graph& given, const PassContext&) {
        Graph other = given;
        other.set_outputs({});
        return other;
      },
      "changes the outputs");
  refused(
      [](const Graph& given, const PassContext&) {
        Graph other = given;
        other.set_outputs({other.add("cast", {other.outputs()[0]}, {{"dtype", f64}})});
        return other;
      },
      "changes the outputs");
}

namespace {

bool spoils = false;

Graph spoil(const Graph& given, const PassContext&) {
  Graph graph = given;
  if (!spoils) return graph;
  const Value unused = graph.add("neg", {graph.outputs()[0]});
  const_cast<Node&>(graph.node(unused)).types = std::vector<Type>{{f64, {2}}};
  return graph;
}

}  // namespace

TEST_CASE("a graph that a pass spoils is not compiled") {
  Graph graph;
  graph.set_outputs({graph.add("neg", {graph.input("x", {f32, {2}})})});
  register_pass({.name = "test-spoil", .doc = "a node of a wrong type", .place = 900, .run = spoil});
  (void)Program::compile(graph);
  spoils = true;
  CHECK_THROWS_WITH_AS(Program::compile(graph), doctest::Contains("its rule gives f32[2]"), InternalError);
  spoils = false;
}

TEST_CASE("a program's own pass and provider are used by what is compiled afterwards") {
  register_operator(kept());
  CHECK(run_own(true) == std::vector<double>{21, 3});
  register_pass({.name = "test-sevens", .doc = "x · 7 = x · 8", .place = 5, .run = sevens_are_eights});
  register_provider(
      {.name = "test-own", .doc = "test_kept", .place = 125, .make = make_provider<OwnProvider>});
  CHECK(run_own(true) == std::vector<double>{24, 42});
  setenv("MILLRACE_DISABLE", "test-sevens", 1);
  CHECK(run_own(false) == std::vector<double>{21});
  unsetenv("MILLRACE_DISABLE");
  CHECK_THROWS_WITH_AS(register_pass({.name = "fuse", .run = sevens_are_eights}),
                       "there is a pass 'fuse' already", InputError);
  CHECK_THROWS_WITH_AS(register_provider({.name = "gemm", .make = make_provider<OwnProvider>}),
                       "there is a provider 'gemm' already", InputError);
  CHECK_THROWS_WITH_AS(register_pass({.name = "test-nothing"}), "the pass 'test-nothing' lacks its `run`",
                       InputError);
}
