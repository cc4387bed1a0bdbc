// Constants whose sizes depend on a graph's: states that begin with zeros, places, tables that are cut,
// masks.
#pragma once

#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

namespace millrace {

/// Of what a constant of any size is made: its beginning along what `grows`, and that once more for each
/// place along what it `repeats` in.
struct SizedConstant {
  Array kept;  // empty: it is of one size, or cannot be had so
  bool grows = false, repeats = false;
};

/// What the constants of graphs for different sizes are made of, by their nodes, of which there is one in
/// each graph. Of what grows that of the graph `largest` is kept, of whose sizes none is larger in another
/// one. That they are alike for these sizes is no proof for others.
std::vector<SizedConstant> sized_constants(const std::vector<Graph>& graphs, size_t largest);

/// Writes a constant of this shape into a graph that has what was kept of it.
Value write_sized(Graph& graph, Value kept, const SizedConstant& from, const Shape& shape);

}  // namespace millrace
