// What is computed while a model is imported.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "onnx/import/call.h"

namespace millrace::onnx {

/// Constants up to so many elements are constants of bodies, too: sizes and axes may come from them. Larger
/// ones of floats are what is computed with, and may be trained.
constexpr int64_t kSmallConstant = 16;

/// Writes a node into a graph, for operands that are in it.
using WriteNode = std::function<Items(Graph& graph, Items operands)>;

/// Whether all operands are constants of the graph that may be computed with.
bool all_known(const Graph& graph, const Items& operands);

/// What a node gives of operands that are known, as constants of their graph; nullopt when that would be much
/// work: it is left to the program, which computes it faster.
std::optional<Items> folded(Graph& graph, const Items& operands, const WriteNode& write);

/// What is computed from numbers between bounds (Item::between) is between bounds, too, if it grows with
/// them: the results that are get them.
void add_bounds(ImportCall& call, Items& results, const WriteNode& write);

}  // namespace millrace::onnx
