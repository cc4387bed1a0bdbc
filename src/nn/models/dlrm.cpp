// A click model: 13 numbers, and 26 categories with embeddings from one table (after Naumov et al., arXiv
// 1906.00091, without the interaction layer).
#include <algorithm>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

constexpr int64_t numbers = 13, categories = 26, buckets = 100'000, kVector = 32;

Array offsets() {
  Array array(i64, {categories});
  for (int64_t i = 0; i < categories; ++i) array.as<int64_t>()[i] = i * buckets;
  return array;
}

class Dlrm : public Module {
 public:
  Dlrm()
      : offset_(buffer("offset", offsets())),
        table_(make<Embedding>("emb", categories * buckets, kVector)),
        mlp_(make<Sequential>("mlp")) {
    mlp_.append(std::make_shared<Linear>(numbers + categories * kVector, 512));
    mlp_.append(nn::relu());
    mlp_.append(std::make_shared<Linear>(512, 256));
    mlp_.append(nn::relu());
    mlp_.append(std::make_shared<Linear>(256, 1));
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    if (inputs.size() != 2)
      fail<TypeError>("dlrm takes numbers and categories, {} inputs are given", inputs.size());
    const Tensor parts[] = {inputs[0], millrace::flatten(table_(inputs[1] + offset_), 1)};
    return select_index(mlp_(concat(parts, 1)), 1, 0);
  }

 private:
  Tensor& offset_;
  Embedding& table_;
  Sequential& mlp_;
};

Model dlrm(const std::string& kind, const ModelOptions& options) {
  const bool fits = options.numbers == numbers && options.ids.size() == categories &&
                    *std::max_element(options.ids.begin(), options.ids.end()) <= buckets;
  if ((options.numbers != 0 || !options.ids.empty()) && !fits)
    fail<InputError>(
        "{} takes {} numbers and {} categories of at most {} ids each; the model 'table' takes any", kind,
        numbers, categories, buckets);

  return {kind,
          std::make_shared<Dlrm>(),
          {{"x0", batch_of({numbers})}, {"x1", batch_of({categories}, i64), 0, static_cast<double>(buckets)}},
          Task::binary};
}

}  // namespace

MILLRACE_ARCHITECTURE(dlrm){
    .name = "dlrm",
    .doc = "clicks from 13 numbers and 26 categories",
    .takes = "table",
    .make = [](const Settings&, const ModelOptions& options) { return dlrm("dlrm", options); },
};

}  // namespace millrace::nn::models
