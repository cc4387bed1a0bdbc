// scan and while_loop: loops in the graph.
#pragma once

#include <memory>
#include <vector>

#include <millrace/graph.h>
#include <millrace/operator.h>

namespace millrace::ops {

/// How the operands, the results and the body of a loop divide.
struct Scan {
  int carries = 0, sequences = 0, invariants = 0;  // operands and body inputs, in this order
  int outputs = 0;                                 // stacked results, after the carries
  Dim length;                                      // steps; conditional: at most
  bool reverse = false;
  /// A while_loop: carry 0 says before each step whether it is run; stacks are zero where it was not.
  bool conditional = false;
};
Scan scan_of(const Node& node);

/// What a loop runs over.
struct ScanOperands {
  std::vector<Value> carries, sequences, invariants;
  Dim length;
  bool reverse = false, conditional = false;
};

/// Appends a scan or a while_loop; returns its first result. Throws TypeError when the body does not fit the
/// operands.
Value add_scan(Graph& graph, const ScanOperands& operands, std::shared_ptr<const Graph> body);

/// The type rule of loops of so many carries and sequences.
std::vector<Type> loop_types(const TypeContext& context, int64_t carries, int64_t sequences);
/// Operations of all steps.
double loop_flops(const Graph& graph, const Node& node);

}  // namespace millrace::ops
