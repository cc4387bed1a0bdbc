// scan: a loop in the graph.
#pragma once

#include <memory>
#include <vector>

#include <millrace/graph.h>

namespace millrace::ops {

/// How the operands, the results and the body of a scan divide.
struct Scan {
  int carries = 0, sequences = 0, invariants = 0;  // operands and body inputs, in this order
  int outputs = 0;                                 // stacked results, after the carries
  Dim length;                                      // steps
  bool reverse = false;
};
Scan scan_of(const Node& node);

/// What a scan runs over.
struct ScanOperands {
  std::vector<Value> carries, sequences, invariants;
  Dim length;
  bool reverse = false;
};

/// Appends a scan; returns its first result. Throws TypeError when the body does not fit the operands.
Value add_scan(Graph& graph, const ScanOperands& operands, std::shared_ptr<const Graph> body);

}  // namespace millrace::ops
