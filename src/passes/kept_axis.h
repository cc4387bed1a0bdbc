// Where an axis of an operand goes.
#pragma once

#include <span>

#include <millrace/graph.h>

namespace millrace {

/// The axis of the node's first result whose positions are made of the positions of an operand's axis, each
/// of the same one, all of them in order; -1: there is none, or it cannot be told.
int kept_axis(const Node& node, std::span<const Type> operands, int operand, int axis);

}  // namespace millrace
