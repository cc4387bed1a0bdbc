// Graphs that nodes carry (If, Loop, Scan): what rules of such operators ask the importer for.
#pragma once

#include <span>
#include <string>

#include "onnx/import/item.h"
#include "onnx/model.h"

namespace millrace::onnx {

class NestedGraphs {
 public:
  virtual ~NestedGraphs() = default;
  /// Writes a node's graph where the node stands, with these values as its inputs; its results. It may read
  /// values of the graphs around it.
  virtual Items inline_nested(const GraphProto& nested, std::span<const Item> arguments) = 0;
  /// What a name of the node's graph stands for.
  virtual Item look_up(const std::string& name) = 0;
};

}  // namespace millrace::onnx
