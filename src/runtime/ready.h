// Compiling in two steps: the passes now, the kernels where and when it is run.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <millrace/program.h>

namespace millrace {

struct ReadyGraph {
  Graph graph;  // as the passes leave it
  std::map<std::string, std::string> choices;
};

/// Compiles, and gives what compile_ready() needs. As Executable::compile(); no donations, no limit of
/// memory.
ReadyGraph make_ready(const Graph& graph, const CompileOptions& options);
/// `options`: those of make_ready(), with its choices.
std::shared_ptr<const Executable> compile_ready(const Graph& graph, const CompileOptions& options);

}  // namespace millrace
