#include "task/told.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/utf8.h"
#include "task/calibrated.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

using data::ColumnKind;

/// Row `row` of a result as T.
template <typename T>
std::span<const T> row_of(const Array& result, int64_t row) {
  const int64_t width = result.count() / result.shape()[0].size();
  return result.as<T>().subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
}

std::vector<Tensor> most_probable_of(const Tensor& probabilities, int64_t count) {
  return millrace::apply("top_k", {&probabilities, 1}, {{"k", count}});
}

/// Something of classes, and the probability of each if asked.
class ToldProbabilities : public Told {
 public:
  ToldProbabilities(const Output& output, const TellOptions& options)
      : output_(output), names_(output.classes()), options_(options) {
    for (std::string& name : names_) name = stored_text(name);
  }

 protected:
  void add_columns_of_all(std::vector<data::Column>& list) const {
    if (!options_.all) return;
    for (const std::string& name : names_) list.push_back({output_.prefix() + "p." + name, ColumnKind::real});
  }
  void add_all(std::span<const float> probabilities, std::vector<data::Value>& into) const {
    if (!options_.all) return;
    for (const float p : probabilities) into.emplace_back(double{p});
  }

  const Output& output_;
  std::vector<std::string> names_;
  TellOptions options_;
};

/// One of several classes: the most probable ones, and the one that a threshold decides.
class ToldClass final : public ToldProbabilities {
 public:
  ToldClass(const Output& output, const TellOptions& options)
      : ToldProbabilities(output, options), top_(std::clamp<int64_t>(options.top, 1, std::ssize(names_))) {}

  std::vector<Tensor> graph(const Tensor& logits) const override {
    const Tensor probabilities = output_.predictions(logits);
    std::vector<Tensor> results = most_probable_of(probabilities, top_);
    if (options_.all) results.push_back(probabilities);
    if (Tensor decided = decisions(output_, logits); decided.defined()) results.push_back(std::move(decided));
    return results;
  }

  std::vector<data::Column> columns() const override {
    std::vector<data::Column> list;
    for (int64_t i = 1; i <= top_; ++i) {
      const std::string end = i == 1 ? "" : fmt::format("_{}", i);
      list.push_back({output_.prefix() + "class" + end, ColumnKind::text});
      list.push_back({output_.prefix() + "probability" + end, ColumnKind::real});
    }
    add_columns_of_all(list);
    return list;
  }

  void values(std::span<const Array> results, int64_t row, int64_t,
              std::vector<data::Value>& into) const override {
    const auto weights = row_of<float>(results[0], row);
    const auto ids = row_of<int64_t>(results[1], row);
    const auto tell = [&](size_t i) {
      const bool told = weights[i] >= options_.threshold;
      into.push_back(told ? data::Value(names_[static_cast<size_t>(ids[i])]) : data::Value());
      into.push_back(told ? data::Value(double{weights[i]}) : data::Value());
    };
    // Of two classes the other one may be what the threshold decides.
    const size_t decision = options_.all ? 3 : 2;
    const bool swapped =
        results.size() > decision && ids.size() == 2 && results[decision].int_at(row) != ids[0];
    for (size_t i = 0; i < ids.size(); ++i) tell(swapped ? 1 - i : i);
    if (options_.all) add_all(row_of<float>(results[2], row), into);
  }

 private:
  int64_t top_;
};

/// Labels: those that hold, the most probable first.
class ToldLabels final : public ToldProbabilities {
 public:
  using ToldProbabilities::ToldProbabilities;

  std::vector<Tensor> graph(const Tensor& logits) const override {
    std::vector<Tensor> results = {output_.predictions(logits)};
    if (Tensor decided = decisions(output_, logits); decided.defined() && options_.threshold == 0)
      results.push_back(std::move(decided));
    return results;
  }

  std::vector<data::Column> columns() const override {
    std::vector<data::Column> list = {{output_.prefix() + "classes", ColumnKind::text},
                                      {output_.prefix() + "probabilities", ColumnKind::text}};
    add_columns_of_all(list);
    return list;
  }

  void values(std::span<const Array> results, int64_t row, int64_t,
              std::vector<data::Value>& into) const override {
    const auto probabilities = row_of<float>(results[0], row);
    std::vector<size_t> hold;
    const double least = options_.threshold > 0 ? options_.threshold : 0.5;
    for (size_t i = 0; i < probabilities.size(); ++i)
      if (results.size() > 1 ? row_of<int64_t>(results[1], row)[i] != 0 : probabilities[i] >= least)
        hold.push_back(i);
    std::stable_sort(hold.begin(), hold.end(),
                     [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
    std::string labels, weights;
    for (const size_t i : hold) {
      labels += (labels.empty() ? "" : "|") + names_[i];
      weights += fmt::format("{}{:.6g}", weights.empty() ? "" : "|", probabilities[i]);
    }
    into.emplace_back(std::move(labels));
    into.emplace_back(std::move(weights));
    add_all(probabilities, into);
  }
};

/// What the numbers of an output are called; empty where it predicts none. As the exported model's metadata
/// say.
std::vector<std::string> value_names(const Output& output) {
  std::vector<std::string> names;
  if (output.predictions_name() != "values") return names;
  const nlohmann::json encoding = nlohmann::json::parse(output.encoding());
  for (const auto& column : encoding.at("columns")) names.push_back(column.at("name").get<std::string>());
  return names;
}

/// Numbers, each in its column.
class ToldNumbers final : public Told {
 public:
  explicit ToldNumbers(const Output& output) : output_(output) {}
  std::vector<Tensor> graph(const Tensor& logits) const override {
    return {cast(output_.predictions(logits), f64)};
  }
  std::vector<data::Column> columns() const override {
    std::vector<data::Column> list;
    for (const std::string& name : value_names(output_))
      list.push_back({output_.prefix() + stored_text(name), ColumnKind::real});
    return list;
  }
  void values(std::span<const Array> results, int64_t row, int64_t,
              std::vector<data::Value>& into) const override {
    for (const double value : row_of<double>(results[0], row)) into.emplace_back(value);
  }

 private:
  const Output& output_;
};

/// What the output makes of its logits itself, in JSON: rankings, duels.
class ToldJson final : public Told {
 public:
  ToldJson(const Output& output, const TellOptions& options) : output_(output), options_(options) {
    const std::vector<float> none(static_cast<size_t>(output.width()), 0);
    for (const auto& [key, value] : output.predict(none, options.top).json) keys_.push_back(key);
  }
  std::vector<Tensor> graph(const Tensor& logits) const override { return {cast(logits, f32)}; }
  std::vector<data::Column> columns() const override {
    std::vector<data::Column> list;
    for (const std::string& key : keys_) list.push_back({output_.prefix() + key, ColumnKind::text});
    return list;
  }
  void values(std::span<const Array> results, int64_t row, int64_t rows,
              std::vector<data::Value>& into) const override {
    auto logits = row_of<float>(results[0], row);
    // Of a sample of several rows there is something at each; what pads it says nothing.
    if (rows > 0) logits = logits.first(static_cast<size_t>(rows * output_.width()));
    const Prediction told = output_.predict(logits, options_.top);
    for (const std::string& key : keys_) {
      const auto found = std::find_if(told.json.begin(), told.json.end(),
                                      [&](const auto& field) { return field.first == key; });
      into.push_back(found == told.json.end() ? data::Value() : data::Value(found->second));
    }
  }

 private:
  const Output& output_;
  TellOptions options_;
  std::vector<std::string> keys_;
};

/// A row of numbers: what the exported model gives.
class ToldRow final : public Told {
 public:
  explicit ToldRow(const Output& output) : output_(output) {
    if (output.at_places() || (output.classes().empty() && value_names(output).empty()))
      fail<InputError>("{} is no row of numbers for each sample: write .csv, .jsonl or .parquet",
                       output_key(output.section()));
  }
  std::vector<Tensor> graph(const Tensor& logits) const override {
    return {cast(output_.predictions(logits), f32)};
  }
  std::vector<data::Column> columns() const override { return {}; }
  void values(std::span<const Array> results, int64_t row, int64_t,
              std::vector<data::Value>& into) const override {
    for (const float value : row_of<float>(results[0], row)) into.emplace_back(double{value});
  }
  int64_t width() const override { return output_.width(); }

 private:
  const Output& output_;
};

}  // namespace

std::unique_ptr<Told> told_of(const Output& output, const TellOptions& options) {
  if (options.top < 1) fail<InputError>("--top {}: at least one class is named", options.top);
  if (!(options.threshold >= 0 && options.threshold <= 1))
    fail<InputError>("--threshold {}: a probability, from 0 to 1", options.threshold);
  if (options.rows) return std::make_unique<ToldRow>(output);
  if (!output.classes().empty() && output.link() == eval::Link::softmax && !output.at_places())
    return std::make_unique<ToldClass>(output, options);
  if (!output.classes().empty() && output.link() == eval::Link::sigmoid)
    return std::make_unique<ToldLabels>(output, options);
  if (!value_names(output).empty()) return std::make_unique<ToldNumbers>(output);
  return std::make_unique<ToldJson>(output, options);
}

}  // namespace millrace::task
