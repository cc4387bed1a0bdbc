// A multi-layer perceptron over the numbers of a table and embeddings of its categories.
#include <algorithm>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

class Table final : public Module {
 public:
  Table(const ModelOptions& o, int64_t outputs) : numbers_(o.numbers) {
    int64_t width = o.numbers;
    for (size_t c = 0; c < o.ids.size(); ++c) {
      const int64_t own = std::clamp<int64_t>((o.ids[c] + 1) / 2, 2, 32);
      embeddings_.push_back(&make<Embedding>(fmt::format("emb{}", c), o.ids[c], own));
      width += own;
    }
    auto& mlp = make<Sequential>("mlp");
    for (int64_t d = 0; d < o.depth; ++d) {
      mlp.append(std::make_shared<Linear>(width, o.width));
      mlp.append(nn::relu());
      if (o.dropout > 0) mlp.append(std::make_shared<Dropout>(o.dropout));
      width = o.width;
    }
    mlp.append(std::make_shared<Linear>(width, outputs));
    mlp_ = &mlp;
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    const size_t wanted = (numbers_ > 0 ? 1 : 0) + (embeddings_.empty() ? 0 : 1);
    if (inputs.size() != wanted)
      fail<TypeError>("the model of this table takes {} inputs ({}), {} are given", wanted,
                      embeddings_.empty() ? "numbers"
                      : numbers_ > 0      ? "numbers and ids"
                                          : "ids",
                      inputs.size());
    std::vector<Tensor> parts;
    if (numbers_ > 0) parts.push_back(inputs[0]);
    for (size_t c = 0; c < embeddings_.size(); ++c)
      parts.push_back((*embeddings_[c])(select_index(inputs.back(), 1, static_cast<int64_t>(c))));
    return (*mlp_)(parts.size() == 1 ? parts[0] : concat(parts, 1));
  }

 private:
  int64_t numbers_;
  std::vector<Embedding*> embeddings_;
  Sequential* mlp_ = nullptr;
};

/// Each category has embeddings of half as many numbers as it has ids, 2 to 32.
Model table(const Settings& settings, const ModelOptions& given) {
  ModelOptions options = sized(given, settings);
  if (options.numbers < 0) fail<InputError>("a table cannot have {} columns of numbers", options.numbers);
  if (options.numbers == 0 && options.ids.empty()) options.numbers = usual_columns(options, "table");
  std::vector<InputSpec> inputs;
  if (options.numbers > 0) inputs.push_back({"numbers", batch_of({options.numbers})});
  if (!options.ids.empty()) {
    const int64_t least = *std::min_element(options.ids.begin(), options.ids.end());
    if (least < 1) fail<InputError>("each column of categories of a table needs ids, not {} of them", least);
    inputs.push_back(
        {"ids", batch_of({static_cast<int64_t>(options.ids.size())}, i64), 0, static_cast<double>(least)});
  }
  return {"table", std::make_shared<Table>(options, options.classes ? options.classes : 2), std::move(inputs),
          Task::classes};
}

}  // namespace

MILLRACE_ARCHITECTURE(table){
    .name = "table",
    .doc = "layers over the numbers of a table and embeddings of its categories",
    .takes = "table",
    .settings = {width_setting(), depth_setting(), dropout_setting()},
    .make = table,
};

}  // namespace millrace::nn::models
