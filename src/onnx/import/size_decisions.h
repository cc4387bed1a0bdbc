// Where the sizes of tensors decide what a graph is.
#pragma once

#include <string>

#include "onnx/import/item.h"
#include "onnx/model.h"

namespace millrace::onnx {

/// Marks results of a node that are computed from sizes (Item::of_sizes). `graph` has the operands and the
/// results. Where the node makes more of sizes than sums and products, says what it was given; else empty.
std::string follow_sizes(const Graph& graph, const NodeProto& node, const Items& operands, Items& results);

}  // namespace millrace::onnx
