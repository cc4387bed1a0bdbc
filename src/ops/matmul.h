// The matrix product, for those who know it by name: the algebra of chains and joins, and its kernels.
#pragma once

#include <optional>

#include <millrace/graph.h>

namespace millrace::ops {

struct Matmul {
  bool transpose_a, transpose_b;  // an operand is stored transposed
};
/// nullopt for any other operator.
std::optional<Matmul> matmul_of(const Node& node);

}  // namespace millrace::ops
