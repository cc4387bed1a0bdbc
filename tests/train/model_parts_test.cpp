#include "train/model_parts.h"

#include <doctest/doctest.h>

using namespace millrace::train;
using Names = std::vector<std::string>;

TEST_CASE("parts are as fine as their number allows") {
  const Names names = {"embed.weight",        "blocks.0.attn.q.weight", "blocks.0.attn.q.bias",
                       "blocks.0.mlp.weight", "blocks.1.attn.q.weight", "scale"};
  CHECK(model_parts(names, 9) ==
        Names{"embed", "blocks.0.attn.q", "blocks.0.attn.q", "blocks.0.mlp", "blocks.1.attn.q", "scale"});
  CHECK(model_parts(names, 5) == model_parts(names, 9));
  CHECK(model_parts(names, 4) == Names{"embed", "blocks.0", "blocks.0", "blocks.0", "blocks.1", "scale"});
  CHECK(model_parts(names, 3) == Names{"embed", "blocks", "blocks", "blocks", "blocks", "scale"});
  CHECK(model_parts(names, 1) == model_parts(names, 3));
  CHECK(model_parts(Names{}, 3).empty());
}
