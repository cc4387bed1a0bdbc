#include "train/passes.h"

#include <algorithm>

#include <millrace/operator.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/memory_nodes.h"
#include "optim/model_scope.h"
#include "train/checkpoint.h"

namespace millrace::train {
namespace {

constexpr const char* stored_as = "lbfgs.";

std::string counted_of(const task::Output& output) { return output.prefix() + "counted"; }

std::vector<float> values_of_all(nn::Module& model) {
  std::vector<float> all;
  for (const nn::Named& named : model.parameters()) {
    if (!named.trainable) continue;
    const Array array = optim::value_of(named);
    const auto values = array.as<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void require_fixed_loss(nn::Module& model, const optim::TrainStep& step) {
  const auto refuse = [](const std::string& what) {
    fail<InputError>(
        "train.optimizer = \"lbfgs\" compares the losses of passes, which differ by themselves where {}: "
        "take another optimizer, or another model",
        what);
  };
  for (int i = 0; i < step.graph().size(); ++i)
    if (const Node& node = step.graph().node(i); node.op->random)
      refuse(fmt::format("the model draws random numbers ({})",
                         node.origin.empty() ? std::string(node.op->name) : node.origin.place()));
  const auto& changed = step.graph().output_names();
  for (const nn::Named& buffer : model.buffers())
    if (contains(changed, "new " + buffer.name))
      refuse(fmt::format("the model keeps running statistics ({})", buffer.name));
}

}  // namespace

Passes::Passes(const Settings& settings, nn::Module& model, const optim::TrainStep& step)
    : weight_decay_(settings.number("weight_decay")),
      tolerance_(settings.number("tolerance")),
      decay_all_(settings.flag("decay_all")),
      lbfgs_({settings.integer("history"), tolerance_}, values_of_all(model)) {
  require_fixed_loss(model, step);
  for (const nn::Named& named : model.parameters())
    if (named.trainable) parameters_.push_back({named.name, optim::value_of(named)});
  const double bytes = 8 * static_cast<double>(lbfgs_.point().size()) *
                       (2 * static_cast<double>(settings.integer("history")) + 5);
  if (bytes > static_cast<double>(machine_memory()))
    fail<InputError>(
        "train.optimizer = \"lbfgs\" with a history of {} keeps {:.3g} GB of {} parameters, and this "
        "machine has {:.3g} GB: take a shorter history, or another optimizer",
        settings.integer("history"), bytes / 1e9, lbfgs_.point().size(),
        static_cast<double>(machine_memory()) / 1e9);
}

std::vector<data::Field> Passes::extra_fields(const task::Task& task, std::span<const data::Field> fields) {
  std::vector<data::Field> extra;
  for (const auto& output : task.outputs) {
    const std::string name = counted_of(*output);
    if (output->at_places() || output->from() ||
        std::any_of(fields.begin(), fields.end(), [&](const auto& each) { return each.name == name; }))
      fail<InputError>(
          "train.optimizer = \"lbfgs\" is for one target of each sample, and {} has targets at places of "
          "a row: take another optimizer",
          task::output_key(output->section()));
    extra.push_back({name, {f32, {Dim::named("batch")}}});
  }
  return extra;
}

void Passes::fill(Array& counted, const data::FeedBatch& batch) {
  counted.edit<float>([&](std::span<float> values) {
    for (size_t row = 0; row < values.size(); ++row)
      values[row] = static_cast<int64_t>(row) < batch.valid ? 1 : 0;
  });
}

void Passes::put(const std::vector<float>& point) {
  auto from = point.begin();
  for (Own& each : parameters_)
    each.array.edit<float>([&](std::span<float> values) {
      std::copy_n(from, values.size(), values.begin());
      from += std::ssize(values);
    });
}

void Passes::begin(optim::TrainStep& step) {
  put(lbfgs_.point());
  for (auto& [name, array] : step.state())
    array.edit<double>([](std::span<double> values) { std::fill(values.begin(), values.end(), 0.0); });
}

void Passes::end(const optim::TrainStep& step, double loss, double steps) {
  std::vector<double> gradient;
  gradient.reserve(lbfgs_.point().size());
  double squares = 0;
  const auto state = step.state();
  for (const Own& each : parameters_) {
    const auto sum = std::find_if(state.begin(), state.end(),
                                  [&](const auto& named) { return named.first == "gradient." + each.name; });
    if (sum == state.end()) fail<InternalError>("the step sums no gradient of '{}'", each.name);
    const Array& sums = sum->second;
    const bool decayed = weight_decay_ > 0 && decays(each.array);
    for (const double g : sums.as<double>()) {
      const auto w = static_cast<double>(lbfgs_.point()[gradient.size()]);
      gradient.push_back(g / steps + (decayed ? weight_decay_ * w : 0));
      if (decayed) squares += w * w;
    }
  }
  lbfgs_.measured(loss + weight_decay_ / 2 * squares, gradient);
}

bool Passes::take_best() {
  std::vector<float> now;
  for (const Own& each : parameters_) {
    const Array& array = each.array;
    now.insert(now.end(), array.as<float>().begin(), array.as<float>().end());
  }
  if (now == lbfgs_.best()) return false;
  put(lbfgs_.best());
  return true;
}

std::string Passes::text(int64_t passes) const {
  const std::string largest = fmt::format("the largest element of the gradient is {:.2g}", gradient());
  switch (lbfgs_.state()) {
    case optim::Lbfgs::State::converged:
      return fmt::format("converged after {} passes: {}, of at most {:.2g}", passes, largest, tolerance_);
    case optim::Lbfgs::State::stalled:
      return fmt::format(
          "ends after {} passes, as no step makes the loss smaller by what its digits tell: {} "
          "(train.optimizer.tolerance: {:.2g})",
          passes, largest, tolerance_);
    case optim::Lbfgs::State::going:
      break;
  }
  return fmt::format(
      "has not converged in {} passes: {}, and it would end at {:.2g}; more of train.epochs goes on "
      "(train RUN --resume train.epochs={})",
      passes, largest, tolerance_, std::max<int64_t>(100, 2 * passes));
}

void Passes::store(Checkpoint& into) const {
  for (auto& [name, array] : lbfgs_.arrays()) into.tensors.emplace_back(stored_as + name, std::move(array));
}

void Passes::restore(const Checkpoint& from) {
  std::vector<std::pair<std::string, Array>> arrays;
  for (const auto& [name, array] : from.tensors)
    if (name.starts_with(stored_as))
      arrays.emplace_back(name.substr(std::string_view(stored_as).size()), array);
  lbfgs_.restore(arrays);
}

}  // namespace millrace::train
