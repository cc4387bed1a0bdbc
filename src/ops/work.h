// What a node costs: operations and bytes, whichever kernel computes it.
#pragma once

#include <vector>

#include <millrace/graph.h>

namespace millrace::ops {

/// Floating-point operations of one node: a multiply-add is two, exp or a division is one, comparisons,
/// integers and moving data are none. Heavy operators say it themselves, all others are counted from their
/// bodies. Padding of convolutions is not counted. All shapes must be static.
double flops(const Graph& graph, const Node& node);
/// Of all nodes.
double flops(const Graph& graph);

/// Bytes of operand `k` that the node has to read at least, and of result `r` that it has to write: all of
/// it, or what its operator says. `in_place`: the first result lies in the first operand's memory.
double bytes_read(const Graph& graph, const Node& node, int k, bool in_place = false);
double bytes_written(const Graph& graph, const Node& node, int r, bool in_place = false);

/// The bits of the numbers that the node's arithmetic takes in: 16 for products of bf16, else 32 or 64. Of a
/// loop those of its body's most work.
int arithmetic_bits(const Graph& graph, const Node& node);

}  // namespace millrace::ops
