// Mistakes in loops, and in models that only show while they are trained.
#include <doctest/doctest.h>

#include "subjects.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

const Shape loop_picture = {3, 6, 6};

Maker frozen_where(Maker make, std::function<bool(const std::string&)> which) {
  return [=] {
    auto module = make();
    module->set_trainable(which, false);
    return module;
  };
}

/// An MLP that does something of its own in forward().
Maker mlp_with(std::function<Tensor(FunctionModule&, const Tensor&)> forward,
               std::function<void(FunctionModule&)> more = {}) {
  return drawn([=] {
    auto module = std::make_shared<FunctionModule>(forward);
    module->part("body", nn::make_layers({"linear 16", "relu", "linear 4"}, {test_width}).module);
    if (more) more(*module);
    return module;
  });
}

class Buffered : public nn::Module {
 public:
  explicit Buffered(Array initial,
                    std::function<Tensor(const Tensor& x, Tensor& buffer, bool training)> forward)
      : body_(make<nn::Linear>("body", test_width, test_classes)),
        buffer_(buffer("count", std::move(initial))),
        forward_(std::move(forward)) {}
  Tensor forward(const Tensor& x) override { return body_(forward_(x, buffer_, training())); }

 private:
  nn::Linear& body_;
  Tensor& buffer_;
  std::function<Tensor(const Tensor&, Tensor&, bool)> forward_;
};

/// Plain descent by a rule with a mistake.
class OddRule : public optim::Optimizer {
 public:
  explicit OddRule(std::function<double(int64_t step)> factor) : Optimizer({}), factor_(std::move(factor)) {}
  std::vector<std::string> state_names() const override { return {}; }
  std::vector<double> scalars(int64_t step) const override { return {factor_(step)}; }
  Value update(optim::Update& u) const override {
    Graph& g = u.graph;
    const auto wide = [&](Value v) {
      return g.add("broadcast", {v}, {{"shape", g.type(u.parameter).shape}});
    };
    const Value rate = g.add("mul", {u.lr, u.scalars[0]});
    return g.add("sub", {u.parameter, g.add("mul", {wide(rate), u.gradient})});
  }

 private:
  std::function<double(int64_t)> factor_;
};

}  // namespace

TEST_CASE("check: healthy models pass what looks at the loop") {
  for (const check::Kind& kind : check::kinds()) {
    if (kind.group != "loop" || kind.name == "sums" || kind.name == "test-agreement" ||
        kind.name == "schedule")
      continue;
    for (const auto& [name, subject] :
         {std::pair<std::string, check::Subject>{"mlp", classes_subject(small_mlp())},
          {"convnet", classes_subject(small_convnet(), loop_picture)},
          {"gpt", tokens_subject(small_gpt())}}) {
      const check::Finding finding = finding_of(kind.name, subject);
      CAPTURE(name);
      CAPTURE(kind.name);
      CAPTURE(finding.saw);
      CHECK(finding.verdict == check::Verdict::pass);
    }
  }
}

TEST_CASE("check frozen: statistics that go on, what is thawed by the loss") {
  const auto first = [](const std::string& name) { return name.starts_with("0.") || name.starts_with("1."); };
  CHECK_CAUGHT("frozen", classes_subject(frozen_where(small_convnet(), first), loop_picture));
  CHECK_CAUGHT("frozen", classes_subject(frozen_where(
                             layers({"linear 16", "batch-norm", "relu", "linear 4"}, {test_width}), first)));
  check::Subject thawed = classes_subject(frozen_where(small_mlp(), first));
  thawed.loss = [](nn::Module& model, std::span<const Tensor> in) {
    model.set_trainable([](const std::string&) { return true; }, true);
    return optim::StepResult{cross_entropy(model(in[0]), in[1])};
  };
  CHECK_CAUGHT("frozen", thawed);
  CHECK_PASSES("frozen", classes_subject(frozen_where(small_mlp(), first)));
}

TEST_CASE("check train-eval: dropout left on, statistics that do not follow, tiny batches") {
  const auto noisy = [](FunctionModule& self, const Tensor& x) {
    return (*self.parts[0])(dropout(x, 0.3, next_random_key()));
  };
  CHECK_CAUGHT("train-eval", classes_subject(mlp_with(noisy)));
  CHECK_CAUGHT("train-eval",
               classes_subject(drawn([] {
                                 auto module = std::make_shared<FunctionModule>([](FunctionModule& self,
                                                                                   const Tensor& x) {
                                   return (*self.parts[0])(x + random_normal(x.shape(), next_random_key()));
                                 });
                                 module->part("body", small_convnet()());
                                 return module;
                               }),
                               loop_picture));
  // Running statistics that never move are far from the batches'.
  check::Subject far = classes_subject(drawn([] {
    auto module = std::make_shared<FunctionModule>(
        [](FunctionModule& self, const Tensor& x) { return (*self.parts[0])(x * 100 + 300); });
    auto layers = std::make_shared<nn::Sequential>();
    layers->append(std::make_shared<nn::BatchNorm>(test_width, nn::BatchNormOptions{.momentum = 1e-4}));
    layers->append(nn::make_layers({"linear 16", "relu", "linear 4"}, {test_width}).module);
    module->part("body", layers);
    return module;
  }));
  CHECK_CAUGHT("train-eval", far);
  check::Subject tiny = classes_subject(small_convnet(), loop_picture);
  for (auto& batch : tiny.batches)
    for (Array& array : batch) {
      Shape shape = array.shape();
      shape[0] = 2;
      Array part(array.dtype(), shape);
      for (int64_t i = 0; i < part.count(); ++i) part.set(i, array.at(i));
      array = part;
    }
  CHECK_CAUGHT("train-eval", tiny);
}

TEST_CASE("check ladder: what cannot learn a batch by heart") {
  // Gradients that go up.
  check::Subject up = classes_subject(small_mlp());
  up.optimizer = std::make_shared<OddRule>([](int64_t) { return -1.0; });
  CHECK_CAUGHT("ladder", up);
  // A rate that is far too small.
  check::Subject still = classes_subject(small_convnet(), loop_picture);
  still.lr = 1e-9;
  CHECK_CAUGHT("ladder", still);
  // Outputs that do not depend on the inputs.
  CHECK_CAUGHT(
      "ladder",
      tokens_subject(mlp_with(
          [](FunctionModule& self, const Tensor& ids) {
            return reshape(relu(*self.find("bias")) * 0, {1, 1, test_vocabulary}) +
                   cast(reshape(ids, {test_rows, test_length, 1}), f32) * 0;
          },
          [](FunctionModule& self) { self.weight("bias", {test_vocabulary}, nn::init::constant(1)); })));
}

TEST_CASE("check input-independent: inputs that do not arrive") {
  CHECK_CAUGHT("input-independent", classes_subject(mlp_with([](FunctionModule& self, const Tensor& x) {
                 return (*self.parts[0])(x * 0);
               })));
  CHECK_CAUGHT("input-independent", classes_subject(drawn([] {
                                                      auto module = std::make_shared<FunctionModule>(
                                                          [](FunctionModule& self, const Tensor& x) {
                                                            return (*self.parts[0])(clamp(x, -1e-9, 1e-9));
                                                          });
                                                      module->part("body", small_convnet()());
                                                      return module;
                                                    }),
                                                    loop_picture));
  // Ids that a mistake makes the same.
  CHECK_CAUGHT("input-independent", tokens_subject(drawn([] {
                 auto module = std::make_shared<FunctionModule>([](FunctionModule& self, const Tensor& ids) {
                   return (*self.parts[0])(minimum(ids, 0));
                 });
                 module->part("gpt", small_gpt()());
                 return module;
               })));
}

TEST_CASE("check reproducible: counters outside of the model, other seeds") {
  auto calls = std::make_shared<int>(0);
  check::Subject counted = classes_subject(small_mlp());
  counted.loss = [calls](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{cross_entropy(model(in[0]), in[1]) * (1 + 0.01 * ++*calls)};
  };
  CHECK_CAUGHT("reproducible", counted);
  auto seed = std::make_shared<uint64_t>(1);
  check::Subject unseeded = tokens_subject([seed] {
    auto module = small_gpt()();
    module->initialise(++*seed);
    return module;
  });
  CHECK_CAUGHT("reproducible", unseeded);
  auto steps = std::make_shared<int>(0);
  check::Subject rule = classes_subject(small_convnet(), loop_picture);
  rule.optimizer = std::make_shared<OddRule>([steps](int64_t) { return 1 + 0.1 * ++*steps; });
  CHECK_CAUGHT("reproducible", rule);
}

TEST_CASE("check checkpoint: weights and state that are not registered") {
  // A weight drawn anew for each model.
  auto seed = std::make_shared<uint64_t>(1);
  const auto loose = [seed](const Shape& shape) { return Tensor(random_array({f32, shape}, ++*seed)); };
  CHECK_CAUGHT("checkpoint", classes_subject(drawn([loose] {
                 const Tensor weight = loose({test_width, test_width});
                 auto module =
                     std::make_shared<FunctionModule>([weight](FunctionModule& self, const Tensor& x) {
                       return (*self.parts[0])(matmul(x, weight));
                     });
                 module->part("body", std::make_shared<nn::Linear>(test_width, test_classes));
                 return module;
               })));
  CHECK_CAUGHT("checkpoint", tokens_subject(drawn([loose] {
                 const Tensor table = loose({test_vocabulary, 16});
                 auto module =
                     std::make_shared<FunctionModule>([table](FunctionModule& self, const Tensor& ids) {
                       return (*self.parts[0])(embedding(table, ids));
                     });
                 module->part("head", std::make_shared<nn::Linear>(16, test_vocabulary));
                 return module;
               })));
  // Another name each time.
  auto made = std::make_shared<int>(0);
  CHECK_CAUGHT("checkpoint", classes_subject(drawn([made] {
                 auto module = std::make_shared<FunctionModule>(
                     [](FunctionModule& self, const Tensor& x) { return (*self.parts[0])(x); });
                 module->part("body" + std::to_string(++*made),
                              std::make_shared<nn::Linear>(test_width, test_classes));
                 return module;
               })));
}

TEST_CASE("check resume: rules that count for themselves") {
  auto calls = std::make_shared<int64_t>(0);
  check::Subject counting = classes_subject(small_mlp());
  counting.optimizer =
      std::make_shared<OddRule>([calls](int64_t) { return 1.0 / static_cast<double>(++*calls); });
  CHECK_CAUGHT("resume", counting);
  auto last = std::make_shared<int64_t>(0);
  check::Subject remembering = tokens_subject(small_gpt());
  remembering.optimizer = std::make_shared<OddRule>([last](int64_t step) {
    *last = std::max(*last, step);
    return 1.0 / static_cast<double>(*last);
  });
  CHECK_CAUGHT("resume", remembering);
  auto phase = std::make_shared<bool>(false);
  check::Subject alternating = classes_subject(small_convnet(), loop_picture);
  alternating.optimizer =
      std::make_shared<OddRule>([phase](int64_t) { return (*phase = !*phase) ? 1.0 : 0.1; });
  CHECK_CAUGHT("resume", alternating);
  // By the step alone is well.
  check::Subject decaying = classes_subject(small_mlp());
  decaying.optimizer =
      std::make_shared<OddRule>([](int64_t step) { return 1.0 / static_cast<double>(step); });
  CHECK_PASSES("resume", decaying);
}

TEST_CASE("check evaluation-order: what depends on the row or the neighbours") {
  const auto rows = [](const Shape& shape) { return cast(iota(test_rows), f32).reshape(shape); };
  CHECK_CAUGHT("evaluation-order", classes_subject(mlp_with([=](FunctionModule& self, const Tensor& x) {
                 return (*self.parts[0])(x + rows({test_rows, 1}));
               })));
  CHECK_CAUGHT("evaluation-order", tokens_subject(drawn([=] {
                 auto module = std::make_shared<FunctionModule>([=](FunctionModule& self, const Tensor& ids) {
                   return (*self.parts[0])(ids)*rows({test_rows, 1, 1});
                 });
                 module->part("gpt", small_gpt()());
                 return module;
               })));
  // The one before, as a state that was kept.
  CHECK_CAUGHT("evaluation-order", classes_subject(mlp_with([](FunctionModule& self, const Tensor& x) {
                 const Tensor before = pad(slice(x, 0, 0, test_rows - 1), {{1, 0}, {0, 0}});
                 return (*self.parts[0])(x + before);
               })));
}

TEST_CASE("check sums: 16 bits, long loops, counters in floating point") {
  check::Subject narrow = classes_subject(small_mlp());
  narrow.loss = [](nn::Module& model, std::span<const Tensor> in) {
    const Tensor wide =
        broadcast_to(reshape(model(in[0]), {1, test_rows, test_classes}), {64, test_rows, test_classes});
    return optim::StepResult{cross_entropy(model(in[0]), in[1]) + cast(cast(wide, bf16).sum(), f32) * 1e-9};
  };
  CHECK_CAUGHT("sums", narrow);
  check::Subject half = tokens_subject(small_gpt());
  half.loss = [inner = half.loss](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{inner(model, in).loss + cast(cast(model(in[0]), f16).mean(), f32) * 1e-9};
  };
  CHECK_CAUGHT("sums", half);
  const auto count = [](const Tensor& x, Tensor& buffer, bool training) {
    if (training) buffer = buffer + 1;
    return x;
  };
  CHECK_CAUGHT("sums", classes_subject(
                           drawn([=] { return std::make_shared<Buffered>(Array::scalar(f32, 0), count); })));
}
