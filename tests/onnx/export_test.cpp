#include "onnx/export.h"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <set>

#include <millrace/narrow_types.h>
#include <millrace/nn.h>
#include <millrace/operator.h>
#include <millrace/optim.h>
#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "base/file.h"
#include "base/format.h"
#include "ir/operators.h"
#include "ops/scan.h"
#include "support/exported_network.h"
#include "support/samples.h"
#include "track/safetensors.h"

using namespace millrace;

// With MILLRACE_ONNX_DUMP=FOLDER every sample is also written there as a model with its inputs and the
// reference's result; tests/e2e/test_onnx_operators.py runs them in ONNX Runtime.
TEST_CASE("every operator that names an ONNX operator is exported, in all its samples") {
  const char* dump = std::getenv("MILLRACE_ONNX_DUMP");
  for (const Operator* op : library_operators()) {
    if (op->onnx.empty()) continue;
    CAPTURE(op->name);
    for (size_t i = 0; i < op->samples.size(); ++i) {
      const Graph graph = make_graph_of_one(*op, op->samples[i]);
      const std::vector<Array> inputs = make_inputs(*op, op->samples[i], 5);
      onnx::ExportOptions options;
      if (op->name == "tree_ensemble")  // ONNX has its trees as attributes
        for (size_t k = 1; k < inputs.size(); ++k) options.weights[static_cast<int>(k)] = inputs[k];
      const std::string model = onnx::export_model(graph, options);
      CHECK(model.size() > 20);
      // ONNX has some operators not for all of these types, and ONNX Runtime few kernels; import_test.cpp
      // reads them back.
      const auto rare = [](const Type& type) {
        const DType dtype = type.dtype;
        return is_narrow_float(dtype) || (dtype.is_int() && (dtype.bits < 8 || dtype.bits == 16)) ||
               dtype == u32 || dtype == u64;
      };
      if (!dump || std::any_of(op->samples[i].operands.begin(), op->samples[i].operands.end(), rare) ||
          rare(graph.type(graph.outputs()[0])))
        continue;
      const std::filesystem::path base = std::filesystem::path(dump) / fmt::format("{}.{}", op->name, i);
      track::NamedArrays arrays{{"result", ref::evaluate(graph, inputs)[0]}};
      for (size_t k = 0; k < inputs.size(); ++k) arrays.emplace_back(graph.input_names()[k], inputs[k]);
      write_file(base.string() + ".onnx", model);
      track::write_safetensors(base.string() + ".safetensors", arrays);
    }
  }
}

TEST_CASE("operators without a counterpart in ONNX are of training alone, or known to lack it") {
  std::vector<std::string> none;
  for (const Operator* op : library_operators())
    if (!op->onnx_rule && !op->body && op->onnx.empty() && !op->is_given() && op->op_class != OpClass::group)
      none.emplace_back(op->name);
  const std::vector<std::string> known = {
      // Of training.
      "after", "avg_pool2d_grad", "conv2d_weight_grad", "max_pool2d_grad", "random_bernoulli", "random_bits",
      "random_normal", "random_uniform", "round_stochastic",
      // Imported models may have them.
      "bitcast", "expm1", "first_occurrence", "log1p", "max_pool2d_positions", "non_max_suppression",
      "nonzero", "refuse", "scatter_add", "scatter_extreme", "scatter_rows", "shift_left", "shift_right",
      "unique"};
  CHECK(std::set(none.begin(), none.end()) == std::set(known.begin(), known.end()));
}

// The same for whole networks, with the batch a named dimension.
TEST_CASE("architectures are exported whole, normalisation included") {
  const char* dump = std::getenv("MILLRACE_ONNX_DUMP");
  for (const std::string kind :
       {"lenet", "convnet", "airbench", "resnet18_cifar", "mobilenet_v2", "mlp", "minilm", "lstm"}) {
    CAPTURE(kind);
    nn::Model model = nn::make_model(kind);
    if (kind == "convnet" || kind == "airbench")
      model = kind == "convnet" ? nn::normalised(std::move(model), {0.5}, {0.25})
                                : nn::normalised(std::move(model), {0.5, 0.4, 0.6}, {0.25, 0.2, 0.3});
    model.module->initialise(3);
    const auto [graph, options] = test::exported_network(model);
    const std::string bytes = onnx::export_model(graph, options);
    CHECK(bytes.size() > 10'000);
    if (!dump) continue;

    Array input(specialise(graph, {{"batch", 2}}).type(graph.inputs()[0]));
    RandomStream random(1, 1);
    for (int64_t i = 0; i < input.count(); ++i) {
      if (input.dtype().is_float())
        input.set(i, 2 * random.uniform() - 1);
      else
        input.set_int(i, random.below(250));
    }
    Program program = Program::compile(graph, {.bindings = {{"batch", 2}}});
    program.bind_input(0, input);
    for (const auto& [i, weight] : options.weights) program.bind_input(i, weight);
    program.run();
    const std::filesystem::path base = std::filesystem::path(dump) / ("network." + kind);
    write_file(base.string() + ".onnx", bytes);
    track::write_safetensors(base.string() + ".safetensors", {{"x0", input}, {"result", program.output(0)}});
  }
}

TEST_CASE("weights become initialisers and named dimensions stay named") {
  Graph graph;
  const Value x = graph.input("pictures", {f32, {Dim::named("batch"), 4}});
  const Value w = graph.input("head.weight", {f32, {4, 3}});
  graph.set_origin("head");
  graph.set_outputs({graph.add("matmul", {x, w})}, {"logits"});
  const Array weight = Array::full(f32, {4, 3}, 0.5);
  const std::string model =
      onnx::export_model(graph, {.weights = {{1, weight}}, .metadata = {{"classes", "a,b,c"}}});
  const auto has = [&](const std::string& text) { return model.find(text) != std::string::npos; };
  CHECK(has("batch"));
  CHECK(has("head.weight"));
  CHECK(has("head/Gemm"));
  CHECK(has("classes"));
  CHECK(has(std::string(static_cast<const char*>(weight.data()), static_cast<size_t>(weight.bytes()))));
  CHECK(onnx::export_model(graph, {.weights = {{1, weight}}, .metadata = {{"classes", "a,b,c"}}}) == model);
}

TEST_CASE(
    "a transposed convolution keeps pads that differ from side to side, and says what its stride leaves "
    "over") {
  Graph graph;
  const std::vector<int64_t> strides{2, 2}, pads{1, 0, 2, 1};
  const Value g = graph.input("g", {f32, {1, 2, 5, 4}}), w = graph.input("w", {f32, {2, 3, 3, 3}});
  graph.set_outputs({graph.add("conv2d_input_grad", {g, w},
                               {{"strides", strides}, {"pads", pads}, {"input_shape", Shape{1, 3, 8, 9}}})});
  const std::string model = onnx::export_model(graph, {});
  // An attribute is its name (field 1) and its numbers (field 8).
  const auto has = [&](const std::string& name, const std::vector<char>& numbers) {
    std::string text = "\x0a" + std::string(1, static_cast<char>(name.size())) + name;
    for (const char number : numbers) text += {'\x40', number};
    return model.find(text) != std::string::npos;
  };
  CHECK(has("pads", {1, 0, 2, 1}));
  // 8 rows = (5 − 1) · 2 + 3 − 1 − 2, and 9 columns = (4 − 1) · 2 + 3 − 0 − 1 + 1.
  CHECK(has("output_padding", {0, 1}));
}

TEST_CASE("a loop that runs backwards is exported as one") {
  for (const bool reverse : {false, true}) {
    auto body = std::make_shared<Graph>();
    const Value sum = body->input("sum", {f32, {2}}), x = body->input("x", {f32, {2}});
    const Value next = body->add("add", {sum, x});
    body->set_outputs({next, next});
    Graph graph;
    const Value start = graph.input("start", {f32, {2}}), xs = graph.input("xs", {f32, {5, 2}});
    const Value last = ops::add_scan(graph, {{start}, {xs}, {}, 5, reverse}, body);
    graph.set_outputs({last, {last.node, 1}});
    const std::string model = onnx::export_model(graph, {});
    for (const std::string name : {"scan_input_directions", "scan_output_directions"})
      CHECK(model.find(name + std::string{'\x40', static_cast<char>(reverse)}) != std::string::npos);
  }
}

TEST_CASE("an operator that ONNX does not have is named with its layer") {
  Graph graph;
  const Value g = graph.input("g", {f32, {1, 2, 4, 4}}), x = graph.input("x", {f32, {1, 3, 6, 6}});
  graph.set_origin("blocks.0.conv");
  graph.set_outputs({graph.add("conv2d_weight_grad", {x, g}, {{"weight_shape", Shape{2, 3, 3, 3}}})});
  CHECK_THROWS_WITH_AS(onnx::export_model(graph, {}),
                       doctest::Contains("conv2d_weight_grad (of blocks.0.conv)"), InputError);
}
