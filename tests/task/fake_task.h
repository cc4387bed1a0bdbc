// Kinds of inputs and outputs made for tests of what goes on between them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/tensor.h>

#include "eval/metric.h"
#include "task/model.h"
#include "task/task.h"

namespace millrace::testing {

inline Dim batch_dim() { return Dim::named("batch"); }

/// A section of a kind, as it is once it is settled.
inline task::Section fake_section(const std::string& name, const std::string& kind, double weight = 1) {
  task::Section section;
  section.name = name;
  section.kind = kind;
  section.settings = Settings(std::vector<Setting>{{"weight", "of the loss", 1.0}});
  section.settings.set("weight", weight);
  return section;
}

/// Numbers f32 [batch, …], as they are.
class FakeInput : public task::Input {
 public:
  FakeInput(const std::string& name, const Shape& sample)
      : Input(fake_section(name, "numbers")), type_{f32, {batch_dim()}} {
    type_.shape.insert(type_.shape.end(), sample.begin(), sample.end());
  }
  std::string encoding() const override { return R"({"fake":1})"; }
  std::vector<data::Field> fields() const override { return {{"x", type_}}; }
  std::vector<Tensor> graph(std::span<const Tensor> fields, bool) const override {
    return {fields.begin(), fields.end()};
  }
  void describe(nn::ModelOptions& options) const override { options.numbers = type_.shape.back().size(); }
  std::vector<std::string> architectures() const override { return {"table"}; }
  std::string gives() const override { return "table"; }
  std::shared_ptr<const data::Part> part(const task::Reading&, task::Purpose) const override {
    return nullptr;
  }
  std::string text(std::span<const Array>) const override { return ""; }

 private:
  Type type_;
};

/// One of `width` classes; where `from` is an input, at each place of its rows.
class FakeClass : public task::Output {
 public:
  FakeClass(const std::string& name, int64_t width, double weight = 1, const task::Input* from = nullptr)
      : Output(fake_section(name, from ? "tokens" : "class", weight)), width_(width), from_(from) {}
  std::string encoding() const override { return "{}"; }
  double ignorance() const override { return 0; }
  int64_t width() const override { return width_; }
  bool at_places() const override { return from_; }
  const task::Input* from() const override { return from_; }
  std::shared_ptr<const data::Part> part(const task::Reading&) const override { return nullptr; }
  std::vector<std::string> classes() const override {
    std::vector<std::string> names;
    for (int64_t c = 0; c < width_ && !from_; ++c) names.push_back("class" + std::to_string(c));
    return names;
  }
  Tensor loss(const Tensor& logits, const Tensor& targets, bool mean) const override {
    ++(mean ? means : rows);
    if (mean) return cross_entropy(logits, targets, smoothing);
    return apply("cross_entropy", std::vector<Tensor>{logits, targets},
                 {{"label_smoothing", smoothing}, {"reduction", "none"}})[0];
  }
  Tensor predictions(const Tensor& logits) const override { return softmax(logits); }
  std::string predictions_name() const override { return "probabilities"; }
  void judge(std::span<const float> logits, std::span<const std::byte> targets, int64_t,
             const std::vector<char>& counts, double, eval::Measurement& into) const override {
    const auto* labels = reinterpret_cast<const int64_t*>(targets.data());
    for (size_t row = 0; row < counts.size(); ++row)
      if (counts[row]) {
        const auto width = static_cast<size_t>(width_);
        into.update({logits.subspan(row * width, width), 1, width_, {labels + row, 1}, {}, 0});
      }
    judged.push_back(counts);
  }
  task::Prediction predict(std::span<const float>, int64_t) const override { return {}; }
  std::string target_text(std::span<const std::byte>) const override { return ""; }

  double smoothing = 0;                           // of labels
  mutable int means = 0, rows = 0;                // calls of loss()
  mutable std::vector<std::vector<char>> judged;  // rows that counted, of each batch

 private:
  int64_t width_;
  const task::Input* from_;
};

/// One number, by its squared error.
class FakeNumber : public FakeClass {
 public:
  explicit FakeNumber(const std::string& name, double weight = 1) : FakeClass(name, 1, weight) {
    section_.kind = "number";
  }
  std::vector<std::string> classes() const override { return {}; }
  Tensor loss(const Tensor& logits, const Tensor& targets, bool mean) const override {
    const Tensor off = logits - targets, each = (off * off).mean({1});
    return mean ? each.mean() : each;
  }
  Tensor predictions(const Tensor& logits) const override { return logits * 10; }
  std::string predictions_name() const override { return "values"; }
};

template <typename Kind, typename Parts, typename... Arguments>
Kind& put(Parts& parts, Arguments&&... arguments) {
  auto made = std::make_unique<Kind>(std::forward<Arguments>(arguments)...);
  Kind& kind = *made;
  parts.push_back(std::move(made));
  return kind;
}

}  // namespace millrace::testing
