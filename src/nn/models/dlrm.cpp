// A click model: numbers, and categories with embeddings from one table (after Naumov et al., arXiv
// 1906.00091, without the interaction layer). Without a table of one's own: Criteo's 13 numbers and 26
// categories.
#include <numeric>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

constexpr int64_t usual_numbers = 13, usual_categories = 26, buckets = 100'000, usual_vector = 32;

/// Where each category's rows begin.
Array offsets(const std::vector<int64_t>& ids) {
  Array array(i64, {static_cast<int64_t>(ids.size())});
  std::exclusive_scan(ids.begin(), ids.end(), array.as<int64_t>().begin(), int64_t{0});
  return array;
}

class Dlrm : public Module {
 public:
  /// `outputs` 0: one logit for each row, [batch].
  Dlrm(int64_t numbers, const std::vector<int64_t>& ids, int64_t vector, int64_t outputs)
      : numbers_(numbers),
        outputs_(outputs),
        offset_(buffer("offset", offsets(ids))),
        table_(make<Embedding>("emb", std::accumulate(ids.begin(), ids.end(), int64_t{0}), vector)),
        mlp_(make<Sequential>("mlp")) {
    mlp_.append(std::make_shared<Linear>(numbers + std::ssize(ids) * vector, 512));
    mlp_.append(nn::relu());
    mlp_.append(std::make_shared<Linear>(512, 256));
    mlp_.append(nn::relu());
    mlp_.append(std::make_shared<Linear>(256, std::max<int64_t>(1, outputs)));
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    check_table_inputs(inputs, numbers_ > 0, true);
    std::vector<Tensor> parts(inputs.begin(), inputs.end());
    parts.back() = millrace::flatten(table_(inputs.back() + offset_), 1);
    const Tensor logits = mlp_(parts.size() == 1 ? parts[0] : concat(parts, 1));
    return outputs_ == 0 ? select_index(logits, 1, 0) : logits;
  }

 private:
  int64_t numbers_, outputs_;
  Tensor& offset_;
  Embedding& table_;
  Sequential& mlp_;
};

Model dlrm(const std::string& kind, const Settings& settings, const ModelOptions& options) {
  const int64_t vector = settings.integer("vector");
  if (options.numbers == 0 && options.ids.empty())
    return {kind,
            std::make_shared<Dlrm>(usual_numbers, std::vector<int64_t>(usual_categories, buckets), vector, 0),
            {{"x0", batch_of({usual_numbers})},
             {"x1", batch_of({usual_categories}, i64), 0, static_cast<double>(buckets)}},
            Task::binary};
  if (options.ids.empty())
    fail<InputError>(
        "dlrm is for tables with categories, and this one has none; the model 'table' takes any");
  const ModelOptions columns = table_columns_of(options, kind);
  return {kind,
          std::make_shared<Dlrm>(columns.numbers, columns.ids, vector, options.classes ? options.classes : 2),
          inputs_of_table(columns)};
}

}  // namespace

MILLRACE_ARCHITECTURE(dlrm){
    .name = "dlrm",
    .doc =
        "clicks from numbers and categories: vectors of all categories from one table, and layers over them",
    .takes = "table",
    .settings = {{"vector", "numbers of the vector of a category", usual_vector, 1, 1 << 12}},
    .make = dlrm,
};

}  // namespace millrace::nn::models
