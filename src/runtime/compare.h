// Which of two graphs runs faster here.
#pragma once

#include <map>
#include <string>

#include <millrace/graph.h>

namespace millrace {

/// Compiles both in fp32 (their dtypes say what they compute in), with these choices, and runs them in turns: true when
/// the first is faster by more than chance.
bool runs_faster(const Graph& graph, const Graph& other, const std::map<std::string, std::string>& choices);

}  // namespace millrace
