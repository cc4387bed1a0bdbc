// Gradient boosting of decision trees (Chen and Guestrin, arXiv 1603.02754), fitted by XGBoost; what is
// learnt is trees for the operator tree_ensemble.
#include <algorithm>

#include "base/format.h"
#include "base/thread_pool.h"
#include "nn/models/architecture.h"
#include "nn/models/boosted_round.h"
#include "nn/models/fitted.h"
#include "nn/models/models.h"
#include "ops/trees.h"

namespace millrace::nn::models {
namespace {

/// Trees for one sum each: of two classes one for the second's logit, the first's being 0.
int64_t boosted_outputs(Predicted predicted, int64_t width) {
  return predicted == Predicted::classes && width == 2 ? 1 : width;
}

class Boosting final : public Fitted {
 public:
  Boosting(ModelOptions options, Settings chosen)
      : settings(std::move(chosen)),
        options_(std::move(options)),
        column_(buffer("column", Array(i32, {1}))),
        threshold_(buffer("threshold", Array(f32, {1}))),
        left_(buffer("left", Array(i32, {1}))),
        missing_(buffer("missing", Array(boolean, {1}))),
        root_(buffer("root", Array(i32, {1}))),
        base_(buffer("base", Array(f32, {options_.classes}))) {}

  Tensor forward_many(std::span<const Tensor> inputs) override {
    const Tensor x = table_columns(inputs, options_);
    // Rows of queries are rows of the trees like any others.
    const bool queries = x.rank() == 3;
    const Shape& from = x.shape();
    const Tensor operands[] = {queries ? reshape(x, {from[0] * from[1], from[2]}) : x,
                               column_,
                               threshold_,
                               left_,
                               missing_,
                               root_,
                               base_};
    const Tensor sums = apply("tree_ensemble", operands)[0];
    if (queries) return reshape(sums, {from[0], from[1], base_.dim(0)});
    if (base_.dim(0) == Dim(options_.classes)) return sums;
    return concat(std::vector<Tensor>{Tensor::zeros(sums.shape()), sums}, 1);
  }

  std::unique_ptr<Fitting> fit(FitData data) override;

  void check() const override {
    const Shape nodes = column_.shape();
    const int64_t wide = base_.rank() == 1 ? base_.dim(0).size() : 0;
    const bool sound = column_.type() == Type{i32, nodes} && nodes.rank() == 1 &&
                       threshold_.type() == Type{f32, nodes} && left_.type() == Type{i32, nodes} &&
                       missing_.type() == Type{boolean, nodes} && root_.dtype() == i32 && root_.rank() == 1 &&
                       base_.dtype() == f32 &&
                       (wide == options_.classes || (wide == 1 && options_.classes == 2));
    if (!sound) fail<InputError>("the checkpoint's trees are not those of this data");
  }

  Array columns_of(const FitRows& rows) const {
    std::vector<Tensor> inputs;
    for (const Array& each : rows.inputs) inputs.emplace_back(each);
    return Tensor(table_columns(inputs, options_)).to_array();
  }

  /// The module's trees, one after the other.
  struct Grown {
    std::vector<int32_t> column, left, root;
    std::vector<float> threshold;
    std::vector<uint8_t> missing;

    void add(const BoostedTree& tree) {
      const auto first = static_cast<int32_t>(column.size());
      root.push_back(first);
      column.insert(column.end(), tree.column.begin(), tree.column.end());
      threshold.insert(threshold.end(), tree.threshold.begin(), tree.threshold.end());
      missing.insert(missing.end(), tree.missing.begin(), tree.missing.end());
      for (const int32_t child : tree.left) left.push_back(child == 0 ? 0 : first + child);
    }
    ops::Trees view(int64_t columns) const {
      return {column.data(), threshold.data(),   left.data(),      missing.data(),
              root.data(),   std::ssize(column), std::ssize(root), columns};
    }
  };

  /// The first trees of `from`; a leaf of 0 where there are none.
  void store(const Grown& from, int64_t trees, std::span<const float> base) {
    const auto count = static_cast<size_t>(trees);
    const size_t nodes =
        count < from.root.size() ? static_cast<size_t>(from.root[count]) : from.column.size();
    const auto put = [&]<typename T>(Tensor& to, DType dtype, const std::vector<T>& values, size_t wanted) {
      Array array(dtype, {static_cast<int64_t>(std::max<size_t>(wanted, 1))});
      std::copy_n(values.begin(), wanted, array.as<T>().begin());
      to = Tensor(std::move(array));
    };
    put(column_, i32, from.column, nodes);
    put(threshold_, f32, from.threshold, nodes);
    put(left_, i32, from.left, nodes);
    put(missing_, boolean, from.missing, nodes);
    put(root_, i32, from.root, count);
    put(base_, f32, std::vector<float>(base.begin(), base.end()), base.size());
  }
  Grown grown() const {
    const auto get = [](const Tensor& tensor, auto value) {
      const Array array = tensor.to_array();
      const auto values = array.as<decltype(value)>();
      return std::vector<decltype(value)>(values.begin(), values.end());
    };
    return {get(column_, int32_t()), get(left_, int32_t()), get(root_, int32_t()), get(threshold_, float()),
            get(missing_, uint8_t())};
  }

  const Settings settings;

 private:
  ModelOptions options_;
  Tensor &column_, &threshold_, &left_, &missing_, &root_, &base_;
};

class BoostingFitting final : public Fitting {
 public:
  BoostingFitting(Boosting& model, FitData data)
      : model_(model),
        data_(std::move(data)),
        outputs_(boosted_outputs(data_.predicted, data_.width)),
        training_(model.columns_of(data_.training)),
        base_(static_cast<size_t>(outputs_)) {
    if (data_.tests.count > 0) tests_ = model.columns_of(data_.tests);
    const std::vector<float> labels = labels_and_base();
    rows_ = std::make_unique<BoostedRows>(training_, labels, outputs_, data_.training.weights);
    set_parameters();
    begin_margins();
  }

  int64_t rounds() const override { return model_.settings.integer("rounds"); }

  void round() override {
    auto parameters = parameters_;
    // Random numbers of a round are those of its number alone.
    const int64_t number = std::ssize(trees_.root) / outputs_;
    const uint64_t seed = (data_.seed * 1'000'003 + static_cast<uint64_t>(number)) % 2'147'483'647;
    parameters.emplace_back("seed", fmt::format("{}", seed));
    for (const BoostedTree& tree :
         data_.gradient ? by_gradients(parameters) : rows_->round(parameters, margins_)) {
      trees_.add(tree);
      add_to_margins(std::ssize(trees_.root) - 1);
    }
  }

  void store(int64_t rounds) override { model_.store(trees_, rounds * outputs_, base_); }

  void resume(int64_t rounds) override {
    Boosting::Grown grown = model_.grown();
    if (std::ssize(grown.root) != rounds * outputs_ && rounds > 0)
      fail<InputError>("the checkpoint has {} trees, not {} of {} rounds", grown.root.size(),
                       rounds * outputs_, rounds);
    for (size_t tree = 0; tree < grown.root.size(); ++tree)
      if (grown.root[tree] < 0 || grown.root[tree] >= std::ssize(grown.column) ||
          (tree > 0 && grown.root[tree] <= grown.root[tree - 1]))
        fail<InputError>("the checkpoint's trees do not follow each other: tree {} is damaged", tree);
    trees_ = rounds > 0 ? std::move(grown) : Boosting::Grown();
    begin_margins();
    for (int64_t tree = 0; tree < std::ssize(trees_.root); ++tree) add_to_margins(tree);
  }

  std::optional<Array> logits(bool tests) override {
    const std::vector<float>& margins = tests ? test_margins_ : margins_;
    Array logits(f32, {std::ssize(margins) / outputs_, data_.width});
    const auto to = logits.as<float>();
    if (outputs_ == data_.width)
      std::copy(margins.begin(), margins.end(), to.begin());
    else
      for (size_t row = 0; row < margins.size(); ++row) to[2 * row + 1] = margins[row];
    return logits;
  }

 private:
  /// What XGBoost takes for labels; trees of numbers begin at their mean.
  std::vector<float> labels_and_base() {
    const Array targets = data_.training.targets.converted(f32);
    std::vector<float> labels(std::as_const(targets).as<float>().begin(),
                              std::as_const(targets).as<float>().end());
    if (data_.predicted != Predicted::numbers) return labels;
    const auto wide = static_cast<size_t>(outputs_);
    std::vector<double> sums(wide);
    double all = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      const double weight = data_.training.weights.empty() ? 1 : data_.training.weights[i / wide];
      sums[i % wide] += weight * labels[i];
      all += i % wide == 0 ? weight : 0;
    }
    for (size_t k = 0; k < wide; ++k) base_[k] = static_cast<float>(sums[k] / all);
    return labels;
  }

  void set_parameters() {
    const Settings& s = model_.settings;
    const auto number = [&](const char* ours, const char* theirs) {
      parameters_.emplace_back(theirs, fmt::format("{}", s.number(ours)));
    };
    const auto whole = [&](const char* key) {
      parameters_.emplace_back(key, fmt::format("{}", s.integer(key)));
    };
    const auto word = [&](const char* key) { parameters_.emplace_back(key, s.text(key)); };
    for (const char* key : {"learning_rate", "min_child_weight", "gamma", "max_delta_step", "subsample",
                            "colsample_bytree", "colsample_bylevel", "colsample_bynode", "lambda", "alpha"})
      number(key, key);
    for (const char* key : {"max_depth", "max_leaves", "max_bin"}) whole(key);
    for (const char* key : {"tree_method", "grow_policy"}) word(key);
    // Its threads spin while they wait for each other: with few rows one is as fast, and leaves the others'
    // CPUs to them.
    constexpr int64_t worth_a_thread = 20'000;
    int64_t cells = 0;
    for (const Array& each : data_.training.inputs) cells += each.count();
    const int64_t threads = std::min<int64_t>(cells / worth_a_thread + 1, ThreadPool::global().threads());
    parameters_.emplace_back("nthread", fmt::format("{}", threads));
    parameters_.emplace_back("verbosity", "0");
    const bool several = data_.predicted == Predicted::classes && outputs_ > 1;
    const bool of_classes = data_.predicted == Predicted::classes || data_.predicted == Predicted::labels;
    parameters_.emplace_back("objective", several      ? "multi:softprob"
                                          : of_classes ? "binary:logistic"
                                                       : "reg:squarederror");
    if (several) parameters_.emplace_back("num_class", fmt::format("{}", outputs_));
  }

  void begin_margins() {
    const auto begin = [&](std::vector<float>& margins, int64_t rows) {
      margins.clear();
      for (int64_t row = 0; row < rows; ++row) margins.insert(margins.end(), base_.begin(), base_.end());
    };
    begin(margins_, data_.training.count);
    begin(test_margins_, data_.tests.count);
  }

  /// A tree to the margins of all rows, in the order in which tree_ensemble adds.
  void add_to_margins(int64_t tree) {
    const auto add = [&](const Array& x, std::vector<float>& margins) {
      const int64_t rows = std::ssize(margins) / outputs_;
      if (rows == 0) return;
      const int64_t columns = x.shape()[1].size();
      const ops::Trees trees = trees_.view(columns);
      const float* const values = x.as<float>().data();
      for (int64_t row = 0; row < rows; ++row)
        margins[static_cast<size_t>(row * outputs_ + tree % outputs_)] +=
            trees.threshold[trees.leaf(tree, values + row * columns)];
    };
    add(training_, margins_);
    add(tests_, test_margins_);
  }

  std::vector<BoostedTree> by_gradients(const BoostedRows::Parameters& parameters) {
    auto [gradients, hessians] = data_.gradient(*logits(false));
    const auto first = std::as_const(gradients).as<float>(), second = std::as_const(hessians).as<float>();
    std::vector<float> g, h;
    const auto wide = static_cast<size_t>(data_.width);
    for (size_t i = 0; i < first.size(); ++i) {
      // Of two classes the second's logit is learnt alone.
      if (outputs_ == 1 && wide == 2 && i % 2 == 0) continue;
      const float weight = data_.training.weights.empty() ? 1 : data_.training.weights[i / wide];
      g.push_back(weight * first[i]);
      h.push_back(weight * second[i]);
    }
    return rows_->round(parameters, g, h);
  }

  Boosting& model_;
  FitData data_;
  int64_t outputs_;
  Array training_, tests_;
  std::vector<float> base_;
  std::unique_ptr<BoostedRows> rows_;
  BoostedRows::Parameters parameters_;
  std::vector<float> margins_, test_margins_;
  Boosting::Grown trees_;
};

std::unique_ptr<Fitting> Boosting::fit(FitData data) {
  if (data.predicted == Predicted::classes && data.width < 2)
    fail<InputError>("there is only one class, so that boosting has nothing to learn");
  MILLRACE_CHECK(data.predicted != Predicted::ranks || data.gradient, "ranks have no loss of their own");
  return std::make_unique<BoostingFitting>(*this, std::move(data));
}

/// XGBoost's names, ranges and usual values, but for rounds (num_boost_round) and tree_method.
std::vector<Setting> boosting_settings() {
  return {
      {"rounds", "trees that follow each other, of each class or number that is predicted", int64_t{100}, 1,
       1e6},
      {"learning_rate", "how much of each tree counts", 0.3, 1e-6, 1.0},
      {"max_depth", "of a tree; 0: any, by max_leaves", int64_t{6}, 0, 60},
      {"min_child_weight", "the least sum of second derivatives in a leaf (of numbers: of weights of rows)",
       1.0, 0, 1e18},
      {"gamma", "the least gain of a split", 0.0, 0, 1e18},
      {"max_delta_step", "the most that a leaf may say; 0: any", 0.0, 0, 1e18},
      {"subsample", "share of the rows that a round looks at", 1.0, 1e-6, 1.0},
      {"colsample_bytree", "share of the columns that a tree looks at", 1.0, 1e-6, 1.0},
      {"colsample_bylevel", "of these, that a level of it looks at", 1.0, 1e-6, 1.0},
      {"colsample_bynode", "of these, that a split looks at", 1.0, 1e-6, 1.0},
      {"lambda", "squares of leaves in the loss (L2)", 1.0, 0, 1e18},
      {"alpha", "sizes of leaves in the loss (L1)", 0.0, 0, 1e18},
      {"max_leaves", "of a tree; 0: any", int64_t{0}, 0, 1 << 20},
      {"max_bin", "different values of a column that splits are chosen from, by hist and approx",
       int64_t{256}, 2, 1 << 16},
      {"grow_policy",
       "level by level, or where the loss falls most",
       std::string("depthwise"),
       -1e18,
       1e18,
       {"depthwise", "lossguide"}},
      {"tree_method",
       "how splits are looked for",
       std::string("hist"),
       -1e18,
       1e18,
       {"hist", "approx", "exact"}},
  };
}

}  // namespace

MILLRACE_ARCHITECTURE(boosting){
    .name = "boosting",
    .doc = "gradient boosting of decision trees, by XGBoost; fitted, not stepped",
    .takes = "table",
    .settings = boosting_settings(),
    .fitted = true,
    .make = table_model<Boosting>,
};

}  // namespace millrace::nn::models
