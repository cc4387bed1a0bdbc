#include "train/auto_batch.h"

#include <doctest/doctest.h>
#include <vector>

using namespace millrace::train;

TEST_CASE("of batches the smallest that is nearly as fast as the fastest is taken") {
  const std::vector<TriedBatch> tried = {{16, 100}, {32, 170}, {64, 196}, {128, 200}, {256, 199}};
  CHECK(best_batch(tried) == 64);
  CHECK(best_batch(std::vector<TriedBatch>{{16, 100}}) == 16);
  CHECK(best_batch(std::vector<TriedBatch>{{16, 100}, {32, 104}}) == 32);
}

TEST_CASE("larger batches are tried until two in a row are no faster") {
  std::vector<TriedBatch> tried = {{16, 100}, {32, 98}};
  CHECK_FALSE(no_faster(tried));
  tried.push_back({64, 90});
  CHECK(no_faster(tried));
  tried = {{16, 100}, {32, 90}, {64, 150}};
  CHECK_FALSE(no_faster(tried));
  tried = {{16, 100}, {32, 150}, {64, 149}};
  CHECK_FALSE(no_faster(tried));
  tried.push_back({128, 140});
  CHECK(no_faster(tried));
}
