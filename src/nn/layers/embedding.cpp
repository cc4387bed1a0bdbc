#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(embedding){
    .name = "embedding",
    .doc = "rows of a table by the numbers of tokens",
    .settings = {{"ROWS", "of the table: tokens are from 0 to one less", int64_t{1}, 1, most_width},
                 {"WIDTH", "numbers in a row", int64_t{1}, 1, most_width}},
    .make = [](const Settings& s, const Tensor&) -> std::shared_ptr<Module> {
      return std::make_shared<Embedding>(s.integer("ROWS"), s.integer("WIDTH"));
    },
};

}  // namespace millrace::nn::layers
