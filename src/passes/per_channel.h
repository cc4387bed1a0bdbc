// Constants of each channel of pictures.
#pragma once

#include <optional>

#include <millrace/graph.h>

namespace millrace {

/// Whether `value` (of shape [N, C, H, W]) is the broadcast of a constant per channel or of a scalar one.
bool is_per_channel(const Graph& graph, Value value);
/// That constant as [C], if there is one. What it needs is added to `graph`.
std::optional<Value> per_channel(Graph& graph, Value value);

}  // namespace millrace
