// Decision trees as the operator tree_ensemble has them, for those who walk them and those who write them
// down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/onnx_rule.h>

namespace millrace::ops {

/// The arrays of one ensemble: nodes of all trees, and where each begins.
struct Trees {
  const int32_t* column = nullptr;
  const float* threshold = nullptr;
  const int32_t* left = nullptr;
  const uint8_t* missing = nullptr;
  const int32_t* root = nullptr;
  int64_t nodes = 0, trees = 0, columns = 0;

  /// Children come after their parent, which is what ends every walk; a column that is not there makes a
  /// leaf, too.
  bool is_leaf(int64_t node) const {
    return left[node] <= node || left[node] >= nodes - 1 || column[node] < 0 || column[node] >= columns;
  }
  /// The leaf of tree t for a row; -1 where the tree is not there.
  int64_t leaf(int64_t tree, const float* row) const {
    int64_t node = root[tree];
    if (node < 0 || node >= nodes) return -1;
    while (!is_leaf(node)) {
      const float x = row[column[node]];
      const bool right = x != x ? missing[node] == 0 : !(x < threshold[node]);
      node = left[node] + (right ? 1 : 0);
    }
    return node;
  }
};

/// Of the operands of a tree_ensemble, whose rows have so many columns.
Trees trees_of(const Array& column, const Array& threshold, const Array& left, const Array& missing,
               const Array& root, int64_t columns);

/// ONNX's TreeEnsembleRegressor, whose trees are attributes: none where their values are not known.
std::vector<std::string> trees_as_onnx(const OnnxCall& call);

}  // namespace millrace::ops
