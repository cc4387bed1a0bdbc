// Graphs that nodes carry (If, Loop, Scan): what rules of such operators ask the importer for.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onnx/import/item.h"
#include "onnx/model.h"

namespace millrace::onnx {

/// A body of control flow: it takes its arguments, then what it reads of the graphs around it.
struct ControlBody {
  std::shared_ptr<const Graph> graph;
  std::vector<Value> captured;  // of the graph around it
};

/// What a body takes: its type, its name, and the values of the graph around it that it is computed from.
struct BodyArgument {
  Type type;
  std::string name;
  std::vector<Value> from;
};

class NestedGraphs {
 public:
  virtual ~NestedGraphs() = default;
  /// Writes a node's graph where the node stands, with these values as its inputs; its results. It may read
  /// values of the graphs around it.
  virtual Items inline_nested(const GraphProto& nested, std::span<const Item> arguments) = 0;
  /// Makes a graph of its own of what `write` writes, by inline_nested() above all, into the graph that it is
  /// handed. It is given the arguments and gives the outputs.
  virtual ControlBody body_of(
      std::span<const BodyArgument> arguments,
      const std::function<std::vector<Value>(Graph&, std::span<const Value>)>& write) = 0;
  /// What a name of the node's graph stands for.
  virtual Item look_up(const std::string& name) = 0;
};

}  // namespace millrace::onnx
