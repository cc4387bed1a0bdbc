#include "onnx/import/import.h"

#include <doctest/doctest.h>
#include <set>
#include <string>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/operator.h>
#include <millrace/optim.h>
#include <millrace/random.h>
#include <millrace/session.h>

#include "backend/ref/evaluate.h"
#include "base/file.h"
#include "ir/operators.h"
#include "onnx/export.h"
#include "support/exported_network.h"
#include "support/random_graph.h"
#include "support/refusal.h"
#include "support/samples.h"
#include "support/temp_folder.h"

using namespace millrace;

namespace {

bool has_negatives(const Array& numbers) {
  for (int64_t i = 0; i < numbers.count(); ++i)
    if (numbers.at(i) < 0) return true;
  return false;
}

/// A model of one node y = Op(x), x f32[2, 3].
std::string model_of(const std::string& op, const std::string& input = "x") {
  Graph graph;
  const Value x = graph.input("x", {f32, {2, 3}});
  graph.set_outputs({graph.add("tanh", {x})}, {"y"});
  std::string bytes = onnx::export_model(graph, {});
  const auto replace = [&](const std::string& from, const std::string& to) {
    REQUIRE(from.size() == to.size());
    const size_t at = bytes.find(from);
    REQUIRE(at != std::string::npos);
    bytes.replace(at, from.size(), to);
  };
  if (op != "Tanh") replace(std::string("\x22\x04Tanh"), std::string("\x22\x04") + op);
  if (input != "x") replace(std::string("\x0a\x01x\x12"), std::string("\x0a\x01") + input + "\x12");
  return bytes;
}

std::string refusal(const std::string& bytes) {
  return testing::refusal([&] { (void)onnx::import_model(onnx::parse_model(bytes, "m.onnx"), {}); });
}

}  // namespace

TEST_CASE("what operators write as ONNX is read back as the same function") {
  // What has no rule on its way in yet.
  const std::set<std::string> waiting{"tree_ensemble", "resize"};
  for (const Operator* op : library_operators()) {
    if (op->onnx.empty() || waiting.contains(std::string(op->name))) continue;
    CAPTURE(op->name);
    for (size_t i = 0; i < op->samples.size(); ++i) {
      const std::vector<Array> inputs = make_inputs(*op, op->samples[i], 5);
      if (op->name == "gather" && has_negatives(inputs[1])) continue;  // ONNX counts those from the end
      CAPTURE(i);
      // How large the stacks of a Loop are, depends on data.
      const Graph graph = make_graph_of_one(*op, op->samples[i], op->name != "while_loop");
      const std::string bytes = onnx::export_model(graph, {});
      const onnx::Imported imported = onnx::import_model(onnx::parse_model(bytes, "sample"), {});
      REQUIRE(imported.graph.input_names() == graph.input_names());
      const Array should = ref::evaluate(graph, inputs)[0], is = ref::evaluate(imported.graph, inputs)[0];
      const double allowed = should.dtype().bits == 16 ? 2e-2 : 1e-4;
      CHECK(test::difference(is, should) < allowed);
    }
  }
}

TEST_CASE("networks that were exported answer in a session as they did before, at any batch") {
  testing::TempFolder folder;
  for (const std::string kind : {"lenet", "mlp", "lstm", "resnet18_cifar", "mobilenet_v2"}) {
    CAPTURE(kind);
    const nn::Model model = nn::make_model(kind);
    model.module->initialise(3);
    const auto [graph, options] = test::exported_network(model);
    write_file(folder / (kind + ".onnx"), onnx::export_model(graph, options));

    const Session session = Session::load(folder / (kind + ".onnx"));
    REQUIRE(session.inputs().size() == 1);
    CHECK(session.inputs()[0].type == graph.type(graph.inputs()[0]));
    for (const int64_t batch : {1, 3}) {
      Array input(specialise(graph, {{"batch", batch}}).type(graph.inputs()[0]));
      RandomStream random(1, static_cast<uint64_t>(batch));
      for (int64_t i = 0; i < input.count(); ++i) input.set(i, 2 * random.uniform() - 1);
      Program program = Program::compile(graph, {.bindings = {{"batch", batch}}});
      program.bind_input(0, input);
      for (const auto& [i, weight] : options.weights) program.bind_input(i, weight);
      program.run();
      CHECK(test::difference(session.run({{input}})[0], program.output(0)) < 1e-3);
    }
  }
}

TEST_CASE("a mean over windows of all that there is is a mean over axes, of others one over windows") {
  const auto operators = [](const Shape& x, std::vector<int64_t> kernel, std::vector<int64_t> pads) {
    Graph graph;
    graph.set_outputs({graph.add("avg_pool2d", {graph.input("x", {f32, x})},
                                 {{"kernel", std::move(kernel)}, {"pads", std::move(pads)}})});
    const std::string bytes = onnx::export_model(graph, {});
    std::set<std::string> names;
    const Graph read = onnx::import_model(onnx::parse_model(bytes, "m.onnx"), {}).graph;
    for (int i = 0; i < read.size(); ++i) names.emplace(read.node(i).op->name);
    return names;
  };
  // Else its gradient has as many terms as the window has elements, written out.
  CHECK(operators({2, 3, 40, 50}, {40, 50}, {0, 0, 0, 0}) == std::set<std::string>{"input", "mean"});
  CHECK(operators({2, 3, 40, 50}, {40, 49}, {0, 0, 0, 0}).contains("avg_pool2d"));
  CHECK(operators({2, 3, 4, 5}, {4, 5}, {1, 0, 0, 0}).contains("avg_pool2d"));
}

TEST_CASE("a refusal names the node, its operator and the reason") {
  CHECK(refusal(model_of("Tanh")).empty());
  CHECK(refusal(model_of("Tenh")).find("(Tenh): Millrace does not know this operator") != std::string::npos);
  CHECK(refusal(model_of("Tenh")).find("did you mean 'Tanh'") != std::string::npos);
  CHECK(refusal(model_of("Tanh", "z")).find("'z', an input, is given by no node before") !=
        std::string::npos);
  const onnx::Model model = onnx::parse_model(model_of("Tanh"), "m.onnx");
  CHECK_THROWS_WITH_AS(onnx::import_model(model, {.inputs = {{"X", {f32, {2}}}}}),
                       doctest::Contains("has no input 'X'; did you mean 'x'?"), InputError);
}

TEST_CASE("a damaged model is refused or computes something, but nothing worse") {
  const std::string bytes = model_of("Tanh");
  for (size_t size = 0; size < bytes.size(); ++size) {
    try {
      (void)onnx::import_model(onnx::parse_model(bytes.substr(0, size), "cut"), {});
    } catch (const Error&) {
    }
  }
  RandomStream random(7, 7);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k)
      damaged[static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size())))] =
          static_cast<char>(random.below(256));
    try {
      (void)onnx::import_model(onnx::parse_model(damaged, "damaged"), {});
    } catch (const Error&) {
    }
  }
}
