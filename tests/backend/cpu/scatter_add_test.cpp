#include <doctest/doctest.h>

#include <millrace/operator.h>
#include <millrace/program.h>
#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "support/random_graph.h"

using namespace millrace;

TEST_CASE("scatter_add adds repeated indices in order and skips those outside, on every axis") {
  for (const int64_t axis : {0, 1, -1}) {
    Graph graph;
    const Shape base = {300, 70, 9};
    const auto a = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    Shape updates = base;
    updates[a] = 50;
    const Value b = graph.input("base", {f32, base}), i = graph.input("indices", {i64, {50}});
    graph.set_outputs(
        {graph.add("scatter_add", {b, i, graph.input("updates", {f32, updates})}, {{"axis", axis}})});
    std::vector<Array> inputs;
    RandomStream random(4, 2);
    for (const Value& input : graph.inputs()) {
      Array array(graph.type(input));
      for (int64_t k = 0; k < array.count(); ++k)
        if (array.dtype() != i64)
          array.set(k, random.uniform());
        else  // repeated ones, and some beside which kernels divide the axis
          array.set_int(k, k % 2 ? static_cast<int64_t>(random.below(12)) - 2
                                 : base[a].size() * (k / 2 % 8) / 8 - k / 16 % 2);
      inputs.push_back(array);
    }
    Program program = Program::compile(graph);
    CHECK(program.explain().find("kernels: scatter_add") != std::string::npos);
    for (int k = 0; k < 3; ++k)
      std::memcpy(program.input(k).data(), inputs[k].data(), static_cast<size_t>(inputs[k].bytes()));
    program.run();
    CHECK(test::difference(program.output(0), ref::evaluate(graph, inputs)[0]) < 1e-6);
  }
}
