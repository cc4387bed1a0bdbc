// Graphs that nodes carry (If, Loop, Scan): what rules of such operators ask the importer for.
#pragma once

#include <span>
#include <vector>

#include <millrace/graph.h>

#include "onnx/model.h"

namespace millrace::onnx {

class NestedGraphs {
 public:
  virtual ~NestedGraphs() = default;
  /// Writes a node's graph where the node stands, with these values as its inputs; its results. It may read
  /// values of the graphs around it.
  virtual std::vector<Value> inline_nested(const GraphProto& nested, std::span<const Value> arguments) = 0;
};

}  // namespace millrace::onnx
