// Small models of several kinds, to be checked: healthy, or with a mistake put in.
#pragma once

#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/check.h>
#include <millrace/random.h>
#include <millrace/tensor.h>

namespace millrace::testing {

/// A module that is one function of its input and of parameters that it is given.
class FunctionModule : public nn::Module {
 public:
  using Forward = std::function<Tensor(FunctionModule&, const Tensor&)>;
  explicit FunctionModule(Forward forward) : forward_(std::move(forward)) {}
  Tensor forward(const Tensor& x) override { return forward_(*this, x); }
  Tensor& weight(const std::string& name, const Shape& shape, nn::Initialiser initialiser) {
    return parameter(name, shape, std::move(initialiser));
  }
  std::vector<std::shared_ptr<nn::Module>> parts;
  template <typename M>
  M& part(const std::string& name, std::shared_ptr<M> module) {
    parts.push_back(child(name, module));
    return *module;
  }

 private:
  Forward forward_;
};

inline Array random_array(const Type& type, uint64_t seed, double low = -1, double high = 1) {
  Array array(type);
  RandomStream random(seed, 77);
  for (int64_t i = 0; i < array.count(); ++i)
    if (type.dtype.is_float())
      array.set(i, low + (high - low) * random.uniform());
    else
      array.set_int(i, static_cast<int64_t>(low) + random.below(static_cast<uint32_t>(high - low)));
  return array;
}

constexpr int64_t test_rows = 9, test_width = 6, test_classes = 4;

using Maker = std::function<std::shared_ptr<nn::Module>()>;

/// The module with its weights drawn.
inline Maker drawn(Maker make) {
  return [make = std::move(make)] {
    auto module = make();
    module->initialise(3);
    return module;
  };
}

inline Maker layers(const std::vector<std::string>& lines, const Shape& sample) {
  return drawn([=] { return nn::make_layers(lines, sample).module; });
}

/// Rows of numbers, or pictures, of classes that can be told from them.
inline check::Subject classes_subject(Maker make, const Shape& sample = {test_width}) {
  check::Subject s;
  s.make = std::move(make);
  s.ignorance = std::log(static_cast<double>(test_classes));
  Shape shape = sample;
  shape.insert(shape.begin(), Dim(test_rows));
  s.inputs = {{"x", {f32, shape}}, {"target", {i64, {test_rows}}}};
  for (uint64_t b = 0; b < 4; ++b) {
    Array x = random_array({f32, shape}, b),
          target = random_array({i64, {test_rows}}, 100 + b, 0, test_classes);
    const int64_t width = x.count() / test_rows;
    for (int64_t r = 0; r < test_rows; ++r)
      for (int64_t i = target.int_at(r); i < width; i += test_classes)
        x.set(r * width + i, x.at(r * width + i) + 2);
    s.batches.push_back({std::move(x), std::move(target)});
  }
  s.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{cross_entropy(model(in[0]), in[1])};
  };
  s.lr = 1e-2;
  return s;
}

/// Rows of numbers with a number to be predicted, [rows, 1].
inline check::Subject number_subject(Maker make) {
  check::Subject s = classes_subject(std::move(make));
  s.inputs[1].type = {f32, {test_rows, 1}};
  for (size_t b = 0; b < s.batches.size(); ++b) {
    const Array& x = s.batches[b][0];
    Array target(f32, {test_rows, 1});
    for (int64_t r = 0; r < test_rows; ++r) target.set(r, x.at(r * test_width) - x.at(r * test_width + 1));
    s.batches[b][1] = target;
  }
  double sum = 0, squares = 0, count = 0;
  for (const auto& batch : s.batches)
    for (const double x : batch[1].to_doubles()) {
      sum += x;
      squares += x * x;
      ++count;
    }
  s.ignorance = squares / count - sum * sum / count / count;
  s.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{mse_loss(model(in[0]), in[1])};
  };
  return s;
}

constexpr int64_t test_length = 8, test_vocabulary = 12;

/// Rows of tokens, in which each is the one before plus one, whose next token is predicted.
inline check::Subject tokens_subject(Maker make) {
  check::Subject s;
  s.make = std::move(make);
  s.ignorance = std::log(static_cast<double>(test_vocabulary));
  s.causal = true;
  const Type type{i64, {test_rows, test_length}};
  s.inputs = {{"tokens", type}, {"targets", type}};
  for (uint64_t b = 0; b < 4; ++b) {
    Array tokens(type), targets(type);
    const Array first = random_array({i64, {test_rows}}, b, 0, test_vocabulary);
    for (int64_t r = 0; r < test_rows; ++r)
      for (int64_t i = 0; i < test_length; ++i) {
        tokens.set_int(r * test_length + i, (first.int_at(r) + i) % test_vocabulary);
        targets.set_int(r * test_length + i, (first.int_at(r) + i + 1) % test_vocabulary);
      }
    s.batches.push_back({std::move(tokens), std::move(targets)});
  }
  s.loss = [](nn::Module& model, std::span<const Tensor> in) {
    const Tensor logits = model(in[0]);
    return optim::StepResult{cross_entropy(reshape(logits, {test_rows * test_length, logits.shape().back()}),
                                           reshape(in[1], {test_rows * test_length}))};
  };
  s.lr = 1e-2;
  return s;
}

inline Maker small_gpt() {
  return drawn([] {
    return nn::make_model(
               "gpt",
               {.input = {test_length}, .vocabulary = test_vocabulary, .width = 16, .depth = 1, .heads = 2})
        .module;
  });
}

inline Maker small_mlp() { return layers({"linear 16", "relu", "linear 4"}, {test_width}); }
inline Maker small_convnet() {
  return layers({"conv 8 3 padding=1", "batch-norm", "relu", "global-avg-pool", "linear 4"}, {3, 6, 6});
}

/// What one check makes of it.
inline check::Finding finding_of(const std::string& name, const check::Subject& subject) {
  check::Options options;
  options.only = {name};
  const auto findings = check::check(subject, options);
  REQUIRE(findings.size() == 1);
  return findings[0];
}
inline std::string verdict_of(const std::string& name, const check::Subject& subject) {
  const check::Finding finding = finding_of(name, subject);
  INFO(finding.saw);
  return check::verdict_name(finding.verdict);
}

}  // namespace millrace::testing

/// That a check finds the mistake, or nothing where nothing is.
#define CHECK_CAUGHT(NAME, SUBJECT)                                  \
  do {                                                               \
    const auto caught_finding = finding_of(NAME, SUBJECT);           \
    CAPTURE(caught_finding.saw);                                     \
    CHECK(caught_finding.verdict >= check::Verdict::warn);           \
    CHECK(caught_finding.verdict != check::Verdict::does_not_apply); \
    CHECK(!caught_finding.advice.empty());                           \
  } while (0)
#define CHECK_PASSES(NAME, SUBJECT)                        \
  do {                                                     \
    const auto passed_finding = finding_of(NAME, SUBJECT); \
    CAPTURE(passed_finding.saw);                           \
    CHECK(passed_finding.verdict == check::Verdict::pass); \
  } while (0)
