#include "support/graphs.h"

#include <doctest/doctest.h>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "target/device.h"

namespace millrace::test {

int count(const Graph& graph, std::string_view op) {
  int n = 0;
  for (int i = 0; i < graph.size(); ++i) n += graph.node(i).op->name == op;
  return n;
}

Array values_for(const Type& type, uint64_t stream) {
  Array x(type);
  RandomStream random(5, stream);
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, random.uniform() * 2 - 1);
  return x;
}

bool computes_bf16() { return device_named("cpu").target().fast_bf16; }

std::vector<std::string> precisions_here(std::vector<std::string> all) {
  if (!computes_bf16() && std::erase(all, "bf16") > 0)
    MESSAGE("left out: bf16, which is fp32 on this CPU without units for it");
  return all;
}

std::vector<Array> inputs_for(const Graph& graph) {
  std::vector<Array> inputs;
  for (const Value& input : graph.inputs()) inputs.push_back(values_for(graph.type(input), inputs.size()));
  return inputs;
}

int links(const Program& program) {
  int n = 0;
  for (const LaunchInfo& launch : program.launches())
    n += launch.kernel.find("row by row") != std::string::npos;
  return n;
}

void check_forms(const Form& first, const Form& second) {
  first.graph.verify();
  second.graph.verify();
  REQUIRE(first.graph.outputs().size() == second.graph.outputs().size());
  for (size_t o = 0; o < first.graph.outputs().size(); ++o)
    CHECK(first.graph.type(first.graph.outputs()[o]) == second.graph.type(second.graph.outputs()[o]));
}

}  // namespace millrace::test
