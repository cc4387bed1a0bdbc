// Layers over the features of a sample: linear, embedding, flatten, dropout.
#include "base/format.h"
#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(linear){
    .name = "linear",
    .usage = "FEATURES [bias=1]",
    .doc = "each output is a weighted sum of all features",
    .most_numbers = 1,
    .options = {"bias"},
    .make = [](const LayerLine& line, const Tensor& x) -> std::shared_ptr<Module> {
      if (x.rank() > 2) line.error(fmt::format("the input is {}; put \"flatten\" before it", x.type().str()));
      return std::make_shared<Linear>(features_of(line, x, -1), line.whole(0, "number of features"),
                                      line.option("bias", 1) != 0);
    },
};

MILLRACE_LAYER(embedding){
    .name = "embedding",
    .usage = "ROWS WIDTH",
    .doc = "rows of a table by the numbers of tokens",
    .most_numbers = 2,
    .make = [](const LayerLine& line, const Tensor&) -> std::shared_ptr<Module> {
      return std::make_shared<Embedding>(line.whole(0, "number of rows"), line.whole(1, "width"));
    },
};

MILLRACE_LAYER(dropout){
    .name = "dropout",
    .usage = "PROBABILITY",
    .doc = "sets values to 0 at random in training",
    .most_numbers = 1,
    .make = [](const LayerLine& line, const Tensor&) -> std::shared_ptr<Module> {
      const double probability = line.number(0, "probability");
      if (!(probability >= 0 && probability < 1))
        line.error(fmt::format("the probability must be at least 0 and less than 1, not {}", probability));
      return std::make_shared<Dropout>(probability);
    },
};

MILLRACE_LAYER(flatten){
    .name = "flatten",
    .usage = "",
    .doc = "[batch, …] to [batch, features]",
    .make = [](const LayerLine&, const Tensor&) { return flatten(); },
};

}  // namespace millrace::nn::layers
