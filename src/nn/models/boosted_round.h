// One round of gradient boosting by XGBoost, which knows nothing of the rounds before but the margins that
// they gave: so a round is a function of its number, the margins and the data, and any round can be made
// again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/array.h>

namespace millrace::nn::models {

/// A tree as the operator tree_ensemble has it, its nodes counted from 0.
struct BoostedTree {
  std::vector<int32_t> column, left;
  std::vector<float> threshold;
  std::vector<uint8_t> missing;
};

/// The trees of a model that XGBoost saved as JSON.
std::vector<BoostedTree> boosted_trees(std::string_view json);

/// The samples as XGBoost keeps them.
class BoostedRows {
 public:
  /// x f32 [rows, columns], NaN where missing; `labels`: f32, `outputs` of each row. Error with XGBoost's
  /// words.
  BoostedRows(const Array& x, std::span<const float> labels, int64_t outputs, std::span<const float> weights);
  ~BoostedRows();
  BoostedRows(const BoostedRows&) = delete;

  using Parameters = std::vector<std::pair<std::string, std::string>>;
  /// A tree for each output, by an objective of XGBoost's at margins [rows, outputs].
  std::vector<BoostedTree> round(const Parameters& parameters, std::span<const float> margins);
  /// The same by gradients and second derivatives, both [rows, outputs].
  std::vector<BoostedTree> round(const Parameters& parameters, std::span<const float> gradients,
                                 std::span<const float> hessians);

 private:
  template <typename Update>
  std::vector<BoostedTree> trees(const Parameters& parameters, Update&& update);

  void* rows_ = nullptr;
  int64_t count_, outputs_;
};

}  // namespace millrace::nn::models
