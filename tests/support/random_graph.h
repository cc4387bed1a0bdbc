// Random graphs of tame values, for comparing back ends.
#pragma once

#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>
#include <millrace/program.h>

namespace millrace::test {

struct RandomGraph {
  Graph graph;
  std::vector<Array> inputs;
};

/// A graph of about `nodes` operators drawn from element-wise, movement, reduction, heavy and composite ones;
/// the same for the same seed. Values stay within about ±10.
RandomGraph random_graph(uint64_t seed, int nodes);

/// The largest |a − b| / (1 + |b|) over all elements; infinite where one is NaN and the other is not or types
/// differ.
double difference(const Array& a, const Array& b);
/// Of all arrays; infinite where one has more.
double difference(const std::vector<Array>& a, const std::vector<Array>& b);

/// What a program gives for these inputs, which are copied into its own.
std::vector<Array> run(Program& program, const std::vector<Array>& inputs);

}  // namespace millrace::test
