#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/session.h>

#include "base/file.h"
#include "ir/late_array.h"
#include "onnx/export.h"
#include "session/format.h"
#include "support/exported_network.h"
#include "support/random_graph.h"
#include "support/temp_folder.h"
#include "target/shared_constants.h"

using namespace millrace;

namespace {

/// Weights of a graph that come late and were not read yet; `all`: however often.
int late_constants(const Graph& graph, bool all = false) {
  int count = 0;
  for (int i = 0; i < graph.size(); ++i)
    if (const Array* constant = graph.constant_value({i, 0}))
      count += all ? LateArrays::digest(*constant) != nullptr : LateArrays::is_late(*constant);
  return count;
}

std::filesystem::path write_network(const testing::TempFolder& folder, const std::string& kind) {
  const nn::Model model = nn::make_model(kind);
  model.module->initialise(3);
  const auto [graph, options] = test::exported_network(model);
  write_file(folder / (kind + ".onnx"), onnx::export_model(graph, options));
  return folder / (kind + ".onnx");
}

}  // namespace

TEST_CASE("an ONNX model's weights are read once, whatever sizes it is compiled for") {
  testing::TempFolder folder;
  for (const std::string kind : {"mlp", "lenet", "lstm"}) {
    CAPTURE(kind);
    const SessionModel model = load_session_model(write_network(folder, kind));
    // The first graph's weights are there; of a later one none is read to compile it.
    Graph first = model.graph({{"batch", 2}});
    CHECK(late_constants(first, true) > 1);
    CHECK(late_constants(first) == 0);
    const auto one = Executable::compile(first, {.bindings = {{"batch", 2}}});
    first = Graph();
    const Graph second = model.graph({{"batch", 2}});
    const int late = late_constants(second);
    CHECK(late > 1);
    const int64_t bytes = shared_constant_bytes();
    // Of the same size, so that kernels are the same.
    const auto other =
        Executable::compile(second, {.bindings = {{"batch", 2}}, .choices = Program(one).choices()});
    CHECK(late_constants(second) == late);
    CHECK(shared_constant_bytes() < bytes + 4096);

    // It is the same model.
    Array rows(specialise(second, {{"batch", 2}}).type(second.inputs()[0]));
    for (int64_t i = 0; i < rows.count(); ++i) rows.set(i, static_cast<double>(i * 7 % 19) / 19 - 0.5);
    Program program(other);
    program.bind_input(0, rows);
    program.run();
    const Session fresh = Session::load(folder / (kind + ".onnx"));
    CHECK(test::difference(fresh.run({{rows}})[0], program.output(0)) < 1e-5);
  }
}
