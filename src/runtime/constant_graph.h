// Graphs whose inputs are known: what is computed while a model is read or compiled.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <millrace/graph.h>
#include <millrace/program.h>

namespace millrace {

/// Operations, and elements that are computed on the way.
double work_of(const Graph& graph);

/// The outputs of a graph for `options.inputs`, by a program that is run this once; `made` gets its choices.
std::vector<Array> run_once(const Graph& graph, const CompileOptions& options,
                            std::map<std::string, std::string>* made = nullptr);

/// The outputs of a graph without inputs: by the reference back end, or where that would take long by a
/// program, which does not keep what lies between.
std::vector<Array> evaluate_constant_graph(const Graph& graph);

}  // namespace millrace
