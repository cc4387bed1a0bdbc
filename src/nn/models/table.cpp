// A multi-layer perceptron over the numbers of a table and embeddings of its categories.
#include <algorithm>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

/// Each category has embeddings of half as many numbers as it has ids, 2 to 32.
class Table final : public Module {
 public:
  Table(const ModelOptions& o, const Settings& /*settings*/) : numbers_(o.numbers) {
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
    mlp.append(std::make_shared<Linear>(width, o.classes));
    mlp_ = &mlp;
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    check_table_inputs(inputs, numbers_ > 0, !embeddings_.empty());
    std::vector<Tensor> parts;
    if (numbers_ > 0) parts.push_back(inputs[0]);
    // The columns are the last axis: rows of several samples may stand before it, too.
    const int columns = inputs.back().rank() - 1;
    for (size_t c = 0; c < embeddings_.size(); ++c)
      parts.push_back((*embeddings_[c])(select_index(inputs.back(), columns, static_cast<int64_t>(c))));
    return (*mlp_)(parts.size() == 1 ? parts[0] : concat(parts, columns));
  }

 private:
  int64_t numbers_;
  std::vector<Embedding*> embeddings_;
  Sequential* mlp_ = nullptr;
};

}  // namespace

MILLRACE_ARCHITECTURE(table){
    .name = "table",
    .doc = "layers over the numbers of a table and embeddings of its categories",
    .takes = "table",
    .settings = {width_setting(), depth_setting(), dropout_setting()},
    .make = table_model<Table>,
};

}  // namespace millrace::nn::models
