// A picture of a model's graph.
#pragma once

#include <string>

#include "session/summary.h"

namespace millrace::cli {

/// Operators from top to bottom, each below all that it reads, with lines for what goes from one to the
/// other; the redder, the more of the model's operations.
std::string graph_svg(const GraphSummary& summary, const std::vector<SessionValue>& inputs,
                      const std::vector<SessionValue>& outputs, const std::string& title);

}  // namespace millrace::cli
