// A multi-layer perceptron over the numbers of a table and embeddings of its categories.
#include "nn/models/table.h"

#include <algorithm>

#include "base/format.h"

namespace millrace::nn::models {
namespace {

class Table final : public Module {
 public:
  explicit Table(const TableModel& o) : numbers_(o.numbers) {
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
    std::vector<Tensor> parts;
    if (numbers_ > 0) parts.push_back(inputs[0]);
    const size_t at = numbers_ > 0 ? 1 : 0;
    for (size_t c = 0; c < embeddings_.size(); ++c)
      parts.push_back((*embeddings_[c])(select_index(inputs[at], 1, static_cast<int64_t>(c))));
    return (*mlp_)(parts.size() == 1 ? parts[0] : concat(parts, 1));
  }

 private:
  int64_t numbers_;
  std::vector<Embedding*> embeddings_;
  Sequential* mlp_ = nullptr;
};

}  // namespace

Model table(const TableModel& options) {
  std::vector<InputSpec> inputs;
  if (options.numbers > 0) inputs.push_back({"numbers", batch_of({options.numbers})});
  if (!options.ids.empty())
    inputs.push_back({"ids", batch_of({static_cast<int64_t>(options.ids.size())}, i64), 0, 1});
  return {"table", std::make_shared<Table>(options), std::move(inputs), Task::classes};
}

}  // namespace millrace::nn::models
