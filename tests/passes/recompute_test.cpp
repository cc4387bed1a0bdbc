#include <doctest/doctest.h>

#include <millrace/operator.h>

#include "autodiff/gradient.h"
#include "ops/build.h"
#include "passes/pass.h"

using namespace millrace;

namespace {

/// How many nodes of an operator are computed again.
int repeated(const Graph& graph, std::string_view op) {
  int count = 0;
  for (int i = 0; i < graph.size(); ++i)
    if (graph.node(i).op->name == op && graph.node(i).origin.again) ++count;
  return count;
}

}  // namespace

TEST_CASE("what is compared for equality is kept: the gradient of a maximum looks for that very value") {
  Graph graph;
  ops::Build b(graph);
  const Value x = graph.input("x", {f32, {256, 256}});
  const Value compared = b.unary("tanh", x), other = b.unary("sigmoid", x);
  const Value loss =
      b.add(b.mean(b.max(compared, {1}, false), {}, false), b.mean(b.matmul(other, x), {}, false));
  const Value wrt[] = {x};
  graph.set_outputs({gradients(graph, loss, wrt)});
  const Target target;
  PassContext context{target, "fp32", {}};
  context.drop_bytes = int64_t{1} << 40;
  const Graph result = passes().at("recompute").run(graph, context);
  result.verify();
  CHECK(repeated(result, "sigmoid") == 1);
  CHECK(repeated(result, "tanh") == 0);
}
