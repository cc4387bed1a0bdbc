// Constants of each channel of pictures.
#pragma once

#include <optional>

#include <millrace/graph.h>

namespace millrace {

/// The constant per channel that `value` (of shape [N, C, H, W]) is a broadcast of, reshaped to [C]; also
/// scalars. What it needs is added to `graph`.
std::optional<Value> per_channel(Graph& graph, Value value);

}  // namespace millrace
