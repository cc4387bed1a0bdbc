// Layer normalisation written as simpler operators.
#pragma once

#include <optional>

#include <millrace/graph.h>

namespace millrace::ops {

/// (x − mean) / sqrt(variance + eps) along the last axis.
struct CentredNorm {
  Value x;
  double eps;
};
/// nullopt where `value` is not that.
std::optional<CentredNorm> centred_norm(const Graph& graph, Value value);

}  // namespace millrace::ops
