// Where the sizes of tensors decide what a graph is.
#pragma once

#include <string>

#include "onnx/import/item.h"
#include "onnx/model.h"

namespace millrace::onnx {

/// Marks results of a node that are computed from sizes (Item::of_sizes). `graph` has the operands and the
/// results. Where the node makes more of sizes than sums and products, says what it was given; else empty.
std::string follow_sizes(const Graph& graph, const NodeProto& node, const Items& operands, Items& results);

/// Whether a node repeats something as often as sizes say, so that this is left to the program, not written
/// out: an Expand of numbers that are no sizes (the first token of a picture, for each), a Gather of one row
/// (BERT's types of tokens, where none are given).
bool repeats(const Graph& graph, const NodeProto& node, const Items& operands);

}  // namespace millrace::onnx
