// Mistakes that people make and that no check is named after: one of them must find each.
#include <doctest/doctest.h>

#include "subjects.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

const Shape planted_picture = {3, 6, 6};

std::vector<std::pair<std::string, check::Subject>> planted_kinds() {
  return {{"mlp", classes_subject(small_mlp())},
          {"convnet", classes_subject(small_convnet(), planted_picture)},
          {"number", number_subject(layers({"linear 16", "relu", "linear 1"}, {test_width}))},
          {"gpt", tokens_subject(small_gpt())}};
}

/// What a check makes of a mistake in each kind of model.
void is_found_everywhere(const std::string& name, const std::function<void(check::Subject&)>& plant) {
  for (auto& [kind, subject] : planted_kinds()) {
    CAPTURE(kind);
    plant(subject);
    CHECK_CAUGHT(name, subject);
  }
}

}  // namespace

TEST_CASE("check updates: clipping at next to nothing, a rate times the batch, decay above all") {
  is_found_everywhere("updates", [](check::Subject& s) {
    s.optimizer = optim::sgd({.momentum = 0.9, .common = {.clip_norm = 1e-9}});
    s.lr = 0.1;
  });
  is_found_everywhere("updates", [](check::Subject& s) { s.lr = 1e-3 * 512 * 8; });
  is_found_everywhere("updates", [](check::Subject& s) {
    s.optimizer = optim::adamw({.common = {.weight_decay = 500}});
    s.lr = 1e-3;
  });
  is_found_everywhere("updates", [](check::Subject& s) {
    s.optimizer = optim::sgd();
    s.lr = 1e-9;
  });
  for (const auto& [kind, subject] : planted_kinds()) {
    CAPTURE(kind);
    CHECK_PASSES("updates", subject);
  }
}

TEST_CASE("check batch-variety: batches of one class each, rows that are all the same") {
  for (auto& [kind, subject] : planted_kinds()) {
    CAPTURE(kind);
    CHECK_PASSES("batch-variety", subject);
    check::Subject alike = subject;  // a crop, or a cut, that leaves the same of all
    for (auto& batch : alike.batches) {
      const int64_t width = batch[0].count() / test_rows;
      for (int64_t i = width; i < batch[0].count(); ++i)
        if (batch[0].dtype().is_float())
          batch[0].set(i, batch[0].at(i % width));
        else
          batch[0].set_int(i, batch[0].int_at(i % width));
    }
    CHECK_CAUGHT("batch-variety", alike);
    if (kind == "number" || kind == "gpt") continue;
    check::Subject sorted = subject;
    for (size_t b = 0; b < sorted.batches.size(); ++b)
      for (int64_t r = 0; r < test_rows; ++r)
        sorted.batches[b][1].set_int(r, static_cast<int64_t>(b) % test_classes);
    CHECK_CAUGHT("batch-variety", sorted);
  }
}

TEST_CASE("check padding-leakage: a loss that is a mean over padding, too") {
  const auto padded = [](bool counted) {
    check::Subject s = tokens_subject(small_gpt());
    Array mask(boolean, {test_rows, test_length});
    for (int64_t r = 0; r < test_rows; ++r)
      for (int64_t p = test_length - r % 4; p < test_length; ++p) mask.set_int(r * test_length + p, 1);
    s.padding = {mask};
    s.loss = [=, inner = s.loss](nn::Module& model, std::span<const Tensor> in) {
      if (!counted) return inner(model, in);
      const Tensor logits = model(in[0]).reshape({test_rows * test_length, test_vocabulary});
      const Tensor real = (1 - cast(Tensor(mask), f32)).reshape({test_rows * test_length});
      const Tensor right = one_hot(in[1].reshape({test_rows * test_length}), test_vocabulary);
      const Tensor losses = -(log_softmax(logits, -1) * right).sum({1});
      return optim::StepResult{(losses * real).sum() / real.sum()};
    };
    return s;
  };
  CHECK_CAUGHT("padding-leakage", padded(false));
  CHECK_PASSES("padding-leakage", padded(true));
}

TEST_CASE(
    "check: a head of far too many classes, dropout of nearly all, and targets of other rows are found") {
  // Four classes, a head of 4,000: it loses more than one that knows nothing.
  CHECK_CAUGHT("initial-loss", classes_subject(layers({"linear 16", "relu", "linear 4000"}, {test_width})));
  CHECK_CAUGHT("initial-loss",
               classes_subject(layers({"flatten", "linear 4000"}, planted_picture), planted_picture));
  const auto dropped = [](Maker body) {
    return drawn([=] {
      auto module = std::make_shared<FunctionModule>([](FunctionModule& self, const Tensor& x) {
        return (*self.parts[0])(self.training() ? dropout(x, 0.97, next_random_key()) : x);
      });
      module->part("body", body());
      return module;
    });
  };
  const auto worst = [](const check::Subject& subject) {
    check::Verdict found = check::Verdict::pass;
    for (const char* name : {"ladder", "train-eval", "input-independent", "signal-scale"})
      if (const auto finding = finding_of(name, subject); finding.verdict != check::Verdict::does_not_apply)
        found = std::max(found, finding.verdict);
    return found;
  };
  CHECK(worst(classes_subject(dropped(small_mlp()))) >= check::Verdict::warn);
}
