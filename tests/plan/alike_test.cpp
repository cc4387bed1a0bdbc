#include "plan/alike.h"

#include <doctest/doctest.h>

using namespace millrace;

TEST_CASE("problems of nearly the same sizes are alike") {
  const std::string asked = alike_problem("matmul f32[1, 97, 768]012 f32[768, 3072] constant transpose_b");
  CHECK(asked == "matmul f32[1, 128, 768]012 f32[768, 3072] constant transpose_b");
  CHECK(alike_problem("matmul f32[1, 128, 768]012 f32[768, 3072] constant transpose_b") == asked);
  CHECK(alike_problem("matmul f32[1, 129, 768]012 f32[768, 3072] constant transpose_b") != asked);
  CHECK(alike_problem("matmul f32[2, 97, 768]012 f32[768, 3072] constant transpose_b") != asked);
  // Small sizes, layouts and windows stand as they are.
  CHECK(alike_problem("conv2d bf16[5, 15, 17, 1000]0231 f32[7, 3] stride=2,2 pads=31,31") ==
        "conv2d bf16[5, 15, 24, 1024]0231 f32[7, 3] stride=2,2 pads=31,31");
  CHECK(alike_problem("") == "");
}
