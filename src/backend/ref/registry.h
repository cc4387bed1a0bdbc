// How a file of the reference back end hands over its functions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

namespace millrace::ref {

/// Computes a node's results from its operands' values.
using Function = std::vector<Array> (*)(const Node& node, std::span<const Array> operands);

/// The function of an operator, or null: element-wise ones run their scalar body, composites their body,
/// reductions reduce(), and views are their operand.
Function find_function(std::string_view op);

/// The element body of a movement or generator, element by element: for those that have no function (a
/// program's own), and for what judges bodies.
std::vector<Array> interpret_element_body(const Node& node, std::span<const Array> operands);

/// Any reduction operator. max and min of nothing are the dtype's lowest and highest value, infinite for
/// floats; NaN wins against everything; argmax and argmin give the first of equals.
std::vector<Array> reduce(const Node& node, std::span<const Array> operands);

}  // namespace millrace::ref

/// Defines the function of operator NAME, at the beginning of a line of a file here; `node` and `operands`
/// are its arguments.
#define MILLRACE_REF(NAME)                           \
  ::std::vector<::millrace::Array> ref_##NAME(       \
      [[maybe_unused]] const ::millrace::Node& node, \
      [[maybe_unused]] ::std::span<const ::millrace::Array> operands)
