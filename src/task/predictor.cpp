#include "task/predictor.h"

#include "base/format.h"
#include "task/calibrated.h"
#include "task/model.h"
#include "task/session_model.h"

namespace millrace::task {
namespace {

/// What all inputs see in one way of looking at a batch, and how much it counts.
struct Sight {
  std::vector<Array> arrays;
  float weight = 1;
};

Sight sight(const Task& task, std::span<const Array> arrays, int number) {
  Sight seen;
  for (const auto& input : task.inputs) {
    const size_t own = input->fields().size();
    const int view = number % input->views();
    number /= input->views();
    for (Array& array : input->view(arrays.first(own), view)) seen.arrays.push_back(std::move(array));
    seen.weight *= input->view_weight(view);
    arrays = arrays.subspan(own);
  }
  return seen;
}

}  // namespace

int views_of(const Task& task) {
  int count = 1;
  for (const auto& input : task.inputs) count *= input->views();
  return count;
}

Predictor::Predictor(Task& task, bool views, Weights weights)
    : task_(task), views_(views), precision_(task.recipe.train.precision) {
  // Texts come in batches of several lengths. Weights are no constants, so that evaluation, whose programs
  // these are, says the same bits.
  if (weights == Weights::trained)
    session_.emplace(session_model(task, {.weights_as_inputs = true, .predictions = false}),
                     SessionOptions{.precision = precision_, .executables = 32});
}

/// Batches of a feed are as large as each other, so they run as they are: filling up would take time.
std::vector<Array> Predictor::run_session(std::span<const Array> arrays) {
  session_->prepare(session_->sizes(arrays));
  std::vector<Array> results;
  for (const Array& result : session_->run(arrays)) results.push_back(result.converted(f32));
  task_.choices.merge(session_->choices());
  return results;
}

std::vector<Array> Predictor::run(std::span<const Array> arrays, int64_t length) {
  if (session_) return run_session(arrays);
  const auto named_logits = [this](nn::Module& module, std::span<const Tensor> fields) {
    std::vector<optim::NamedTensor> named;
    for (const Tensor& logits : static_cast<Network&>(module).logits(fields, false)) {
      const size_t k = named.size();
      named.emplace_back(fmt::format("logits {}", k), calibrated(*task_.outputs[k], logits));
    }
    return named;
  };
  auto& step = steps_[length];
  if (!step)
    step = std::make_unique<optim::EvalStep>(task_.network,
                                             specs_of(task_.fields(), 0, length ? length : task_.length()),
                                             named_logits, compile_options(task_, precision_));
  std::vector<Array> results;
  for (const Array& result : step->run(arrays)) results.push_back(result.converted(f32));
  for (const auto& [key, choice] : step->program().choices()) task_.choices.emplace(key, choice);
  return results;
}

std::vector<Array> Predictor::logits(std::span<const Array> arrays, int64_t length) {
  const int count = views_ ? views_of(task_) : 1;
  if (count == 1) return run(arrays, length);
  std::vector<Array> sums;
  float weights = 0;
  for (int number = 0; number < count; ++number) {
    const Sight seen = sight(task_, arrays, number);
    const std::vector<Array> results = run(seen.arrays, length);
    weights += seen.weight;
    for (size_t k = 0; k < results.size(); ++k) {
      if (number == 0) sums.emplace_back(results[k].type());
      const auto from = results[k].as<float>();
      auto to = sums[k].as<float>();
      for (size_t i = 0; i < from.size(); ++i) to[i] += seen.weight * from[i];
    }
  }
  // The mean, so that probabilities are as sharp as those of one view.
  for (Array& sum : sums)
    for (float& logit : sum.as<float>()) logit /= weights;
  return sums;
}

std::vector<Array> Predictor::logits(const data::Feed& feed, const data::FeedBatch& batch) {
  std::vector<Array> arrays;
  for (const data::Field& field : task_.fields()) arrays.push_back(feed.array(batch, feed.field(field.name)));
  return logits(arrays, batch.length);
}

void Predictor::prepare(const data::Feed& feed, int64_t length) {
  std::vector<Array> arrays;
  for (const optim::TensorSpec& spec : specs_of(task_.fields(), feed.batch_size(), length))
    arrays.emplace_back(spec.type);
  run(arrays, length);
}

}  // namespace millrace::task
