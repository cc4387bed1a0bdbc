// What a model's graph consists of: for people who look at it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/graph.h>
#include <millrace/session.h>

namespace millrace {

/// A node that depends on the model's inputs. Nodes that do not are computed once (weights that are turned,
/// cast, folded): they count as weights of whoever reads them.
struct SummaryRow {
  std::string operation;     // "conv2d"
  std::string name;          // where it comes from: the name in the ONNX model, the layer
  std::string types;         // "f32[1, 64, 112, 112]"
  std::vector<int> reads;    // rows
  std::vector<int> inputs;   // of the model
  std::vector<int> outputs;  // of the model: those that it computes
  int64_t parameters = 0;    // numbers in constants and weights that it is the first to read
  double flops = 0;          // as LaunchInfo::flops
  double bytes = 0;          // of operands and results
};

struct GraphSummary {
  std::vector<SummaryRow> rows;
  int64_t parameters = 0, parameter_bytes = 0;
  double flops = 0, bytes = 0;
};

/// Of a graph without named dimensions. `given`: so many of its inputs are the model's, others are weights.
GraphSummary summarise(const Graph& graph, int given);

/// Floats around 0; integers 0 and 1, which any table of embeddings has.
void fill_made_up(Array& array, uint64_t seed, uint64_t stream);

/// Sizes for the named dimensions of inputs that `sizes` lacks: 1 for those that stand first, 64 for others.
Bindings example_sizes(const std::vector<SessionValue>& inputs, Bindings sizes);

}  // namespace millrace
