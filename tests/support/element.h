// Interprets an operator's element body on arrays, one element at a time: what a compiler of such bodies must
// compute.
#pragma once

#include <span>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

namespace millrace {

/// The result of the node from its operands, by its element body. Throws InternalError for a load outside an
/// operand.
Array interpret_element_body(const Node& node, std::span<const Array> operands);

}  // namespace millrace
