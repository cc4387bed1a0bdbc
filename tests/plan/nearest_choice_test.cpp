#include "plan/nearest_choice.h"

#include <doctest/doctest.h>

using namespace millrace;

TEST_CASE("a problem that was never timed is chosen for as the one that is most like it") {
  const std::map<std::string, std::string> choices = {{"matmul f32[1, 768] f32[768, 768]", "small"},
                                                      {"matmul f32[128, 768] f32[768, 768]", "large"},
                                                      {"matmul f32[128, 768] f32[768, 3072]", "wide"},
                                                      {"conv2d f32[1, 3, 8, 8]", "conv"}};
  CHECK(nearest_choice(choices, "matmul f32[96, 768] f32[768, 768]") == "large");
  CHECK(nearest_choice(choices, "matmul f32[3, 768] f32[768, 768]") == "small");
  CHECK(nearest_choice(choices, "matmul f32[256, 768] f32[768, 3072]") == "wide");
  CHECK(nearest_choice(choices, "matmul f32[128, 768] f32[768, 768]") == "large");
  CHECK(nearest_choice(choices, "conv2d f32[0, 3, 8, 8]") == "conv");
  CHECK_FALSE(nearest_choice(choices, "matmul bf16[128, 768] f32[768, 768]"));
  CHECK_FALSE(nearest_choice(choices, "matmul f32[128, 768] f32[768, 768] constant"));
  CHECK_FALSE(nearest_choice(choices, "matmul f32[128, 768]"));
  CHECK_FALSE(nearest_choice({}, "matmul f32[128, 768] f32[768, 768]"));
}
