// Small things that tests of graphs need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>
#include <millrace/program.h>

#include "passes/pass.h"

namespace millrace::test {

/// How many nodes compute `op`.
int count(const Graph& graph, std::string_view op);

/// Numbers in [−1, 1), the same for each stream.
Array values_for(const Type& type, uint64_t stream);

/// Whether the CPU has units for bf16, and products in it are not in fp32.
bool computes_bf16();

/// Those of the precisions in which this machine computes unlike in the others: bf16 is fp32 where the CPU
/// has no units for it.
std::vector<std::string> precisions_here(std::vector<std::string> all);

/// Values for all inputs, each of a stream of its own.
std::vector<Array> inputs_for(const Graph& graph);

/// How many launches run row by row with the one before.
int links(const Program& program);

/// Two forms of a problem are sound, and give as many results of the same types.
void check_forms(const Form& first, const Form& second);

}  // namespace millrace::test
