// Walks through trees whose arrays come from a file.
#include "ops/trees.h"

#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace millrace;

namespace {

/// The leaf of one tree of three nodes for a row with 1, where the first node's left child is number `left`.
int64_t leaf_of(int32_t left) {
  const std::vector<int32_t> column = {0, -1, -1}, children = {left, 0, 0}, root = {0};
  const std::vector<float> threshold = {0.5F, 1, 2}, row = {1};
  const std::vector<uint8_t> missing = {0, 0, 0};
  const ops::Trees trees{.column = column.data(),
                         .threshold = threshold.data(),
                         .left = children.data(),
                         .missing = missing.data(),
                         .root = root.data(),
                         .nodes = 3,
                         .trees = 1,
                         .columns = 1};
  return trees.leaf(0, row.data());
}

}  // namespace

TEST_CASE("trees: a node whose children are not there is a leaf") {
  CHECK(leaf_of(1) == 2);
  CHECK(leaf_of(2) == 0);  // the right child would be the first beyond all
  CHECK(leaf_of(3) == 0);
  CHECK(leaf_of(0) == 0);
  CHECK(leaf_of(-5) == 0);
  CHECK(leaf_of(std::numeric_limits<int32_t>::max()) == 0);
}
