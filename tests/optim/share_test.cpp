#include <doctest/doctest.h>

#include <millrace/optim.h>

using namespace millrace;

namespace {

struct Shared {
  std::shared_ptr<nn::Module> model = std::make_shared<nn::Linear>(3, 2);
  std::map<int64_t, std::unique_ptr<optim::TrainStep>> steps;
  optim::TrainStep* last = nullptr;

  Shared() { model->initialise(5); }
  optim::TrainStep& step(int64_t batch, bool share) {
    auto& step = steps[batch];
    if (!step) {
      optim::TrainOptions options;
      if (share) options.share = last;
      const std::vector<optim::TensorSpec> inputs = {{"x", {f32, {batch, 3}}}, {"y", {i64, {batch}}}};
      step = std::make_unique<optim::TrainStep>(
          model, inputs,
          [](nn::Module& m, std::span<const Tensor> in) {
            return optim::StepResult{cross_entropy(m(in[0]), in[1])};
          },
          optim::adamw(), options);
    }
    if (last) step->set_step(last->step());
    last = step.get();
    return *step;
  }
};

}  // namespace

TEST_CASE("steps of two sizes that share their state train as one step of either would") {
  // A batch of 4 whose rows are there twice has the mean gradient of the batch of 2.
  const std::vector<double> rows = {0.5, -1, 2, 1, 0.25, -0.5};
  Shared mixed, plain;
  for (int i = 0; i < 6; ++i) {
    for (Shared* trained : {&mixed, &plain}) {
      const int64_t copies = trained == &mixed && i % 2 ? 2 : 1;
      optim::TrainStep& step = trained->step(2 * copies, true);
      for (int64_t k = 0; k < 6 * copies; ++k) step.input(0).set(k, rows[static_cast<size_t>(k % 6)]);
      for (int64_t k = 0; k < 2 * copies; ++k) step.input(1).set_int(k, k % 2);
      step.run(0.05);
    }
  }
  CHECK(mixed.last->step() == 6);
  const Array a = mixed.model->parameters()[0].tensor->to_array(),
              b = plain.model->parameters()[0].tensor->to_array();
  for (int64_t i = 0; i < a.count(); ++i) CHECK(a.at(i) == doctest::Approx(b.at(i)).epsilon(1e-4));
}
