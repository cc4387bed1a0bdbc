// Dynamic loss scaling as part of a training step's graph.
#pragma once

#include <span>
#include <vector>

#include <millrace/optim.h>

namespace millrace::optim {

/// The scale stops growing here, or it would become infinite where gradients are zero.
constexpr double kLargestLossScale = 1 << 24;

/// Gradients that are not finite at such a scale are not the scale's fault: its inverse is the smallest
/// normal f16.
constexpr double kLeastLossScale = 0x1p-14;

/// InputError for a scaling that cannot be.
void check_scaling(const LossScaling& scaling);

/// The state of loss scaling, as values of the graph: scale f32, good and skipped steps i64.
struct ScaleState {
  Value scale, good, skipped;
};

/// Gradients divided by the scale.
std::vector<Value> unscaled(Graph& graph, std::vector<Value> gradients, Value scale);
/// Whether all elements of all gradients are finite.
Value all_finite(Graph& graph, std::span<const Value> gradients);
/// The state after a step whose gradients were finite or not, and whose update was made or not.
ScaleState next_scale(Graph& graph, const ScaleState& old, Value finite, Value made,
                      const LossScaling& scaling);

}  // namespace millrace::optim
