// Which of two graphs runs faster here.
#pragma once

#include <map>
#include <string>

#include <millrace/graph.h>

namespace millrace {

/// Compiles both for a device in fp32 (their dtypes say what they compute in), with these choices, and runs
/// them in turns:
/// true when the first is faster by more than chance. Where both copy as many of their inputs and outputs
/// into other layouts, which in a larger graph their neighbours would write and read, these copies do not
/// count.
bool runs_faster(const Graph& graph, const Graph& other, const std::string& device,
                 const std::map<std::string, std::string>& choices);

}  // namespace millrace
