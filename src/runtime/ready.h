// Compiling in two steps: the passes now, the kernels where and when it is run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <millrace/program.h>

namespace millrace {

/// What a kernel made of a constant when it was built (shared_form()).
struct PackedConstant {
  Array constant;  // of the graph
  std::string form;
  Array array;
};

struct ReadyGraph {
  Graph graph;  // as the passes leave it
  std::map<std::string, std::string> choices;
  std::vector<PackedConstant> packed;
};

/// Compiles, and gives what can be compiled with CompileOptions::ready, the same options and these choices:
/// of a problem that has none the nearest one's is taken. As Executable::compile(); no donations, no limit
/// of memory.
ReadyGraph make_ready(const Graph& graph, const CompileOptions& options);
/// The graph alone, as passes leave it where nothing is timed: for sizes that nobody runs now.
Graph make_ready_untimed(const Graph& graph, const CompileOptions& options);

}  // namespace millrace
