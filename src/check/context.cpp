#include "check/context.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "autodiff/gradient.h"
#include "base/contains.h"
#include "base/format.h"
#include "ir/first_along.h"
#include "optim/kinds.h"
#include "optim/model_scope.h"
#include "task/fitting.h"
#include "task/model.h"
#include "train/freeze.h"
#include "train/init_weights.h"

namespace millrace::check {
namespace {

/// A number of rows that no dimension of the model or of a sample has, so that a dimension of so many is the
/// batch: few, so that all is quick.
int64_t unusual_rows(const task::Task& task, std::span<const data::Field> fields, int64_t most) {
  std::set<int64_t> sizes;
  for (const nn::Named& p : task.network->parameters())
    for (const Dim& dim : p.tensor->shape()) sizes.insert(dim.size());
  for (const data::Field& field : fields)
    for (int d = 1; d < field.type.shape.rank(); ++d)
      if (field.type.shape[d].is_static()) sizes.insert(field.type.shape[d].size());
  for (const int64_t rows : {17, 19, 23, 13, 29, 31, 11, 37, 41, 43})
    if (rows <= most && !sizes.contains(rows)) return rows;
  return std::min<int64_t>(most, 17);
}

/// For an optimiser that goes by the loss of all samples, what others are given. Its own batches say nothing
/// by themselves: they have the samples in the order of the file, of which the first may be all alike, and
/// the last one is mostly padding.
task::Recipe with_mixed_batches(task::Recipe recipe) {
  task::Recipe::Train& train = recipe.train;
  if (!optim::optimizer_kinds().at(train.optimizer.kind).whole) return recipe;
  const optim::OptimizerKind& other = optim::optimizer_kinds().at("adamw");
  train.optimizer.kind = other.name;
  train.optimizer.settings = Settings(optim::optimizer_settings(other));
  train.batch = task::Recipe::Train().batch;  // smaller where the samples do not fill it
  return recipe;
}

std::vector<optim::NamedTensor> logits_of(nn::Module& module, std::span<const Tensor> fields) {
  std::vector<optim::NamedTensor> named;
  for (Tensor& tensor : dynamic_cast<task::Network&>(module).logits(fields, false))
    named.emplace_back(fmt::format("logits {}", named.size()), std::move(tensor));
  return named;
}

/// A result that a layer hands on: the last of it that depends on the data, for each layer.
std::vector<std::pair<std::string, Value>> layer_results(const Recorded& recorded, int64_t rows) {
  const Graph& graph = recorded.graph;
  const auto data =
      recorded.reached_from(std::span(graph.inputs()).first(static_cast<size_t>(recorded.inputs)));
  const auto needed = recorded.needed();
  std::map<std::string, int> last;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (!data[static_cast<size_t>(i)] || !needed[static_cast<size_t>(i)] || node.origin.empty()) continue;
    const Type& type = node.types[0];
    if (!type.dtype.is_float() || type.shape.rank() < 2 || !type.shape[0].is_static()) continue;
    if (type.shape[0].size() != rows && !(type.shape.rank() > 2 && type.shape[1].size() == rows)) continue;
    if (node.origin.call) continue;  // a loss's, not a layer's
    last[node.origin.layer] = i;
  }
  std::vector<std::pair<std::string, Value>> results;
  for (const auto& [layer, node] : last) results.push_back({layer, {node, 0}});
  std::sort(results.begin(), results.end(),
            [](const auto& one, const auto& other) { return one.second < other.second; });
  // Of many layers some from all over the model tell enough.
  constexpr size_t most = 48;
  if (results.size() > most) {
    std::vector<std::pair<std::string, Value>> some;
    for (size_t i = 0; i < most; ++i) some.push_back(results[i * (results.size() - 1) / (most - 1)]);
    results = std::move(some);
  }
  return results;
}

}  // namespace

std::string short_number(double value) {
  return std::isnan(value) ? "no number" : fmt::format("{:.3g}", value);
}

std::string share_text(double share) {
  return share != 0 && share < 0.1 ? fmt::format("{:.2g} %", 100 * share)
                                   : fmt::format("{:.0f} %", 100 * share);
}

double rms(const Array& array) {
  double squares = 0;
  for (const double x : array.to_doubles()) squares += x * x;
  return array.count() ? std::sqrt(squares / static_cast<double>(array.count())) : 0;
}

Context::~Context() = default;

Context::Context(const task::Recipe& recipe, const Options& options) {
  const task::ReadProgress reading = [&](const std::string& what, int64_t done, int64_t of) {
    if (options.progress) options.progress("reading " + what, done, of);
  };
  std::vector<std::string> notes;
  opened_ = task::open_training(with_mixed_batches(recipe), "", 0, reading, notes);
  opened_->task.recipe.train.optimizer = recipe.train.optimizer;
  training_ = &opened_->training;
  if (task::has_tests(opened_->task.recipe))
    opened_tests_ = task::open_tests(opened_->task, "", 0, opened_->training.feed->memory(), reading, notes);
  if (opened_tests_) tests_ = &*opened_tests_;
  task::Task& task = opened_->task;
  task::make_network(task, true);
  task_ = &task;
  if (fitted()) return;
  task::fit_network(task, {task.recipe, training_->first ? training_->first : training_->samples});
  (void)train::init_weights(task);
  const int64_t epoch = training_->feed->batches_per_epoch();
  train::freeze_due(*task.network, train::parse_freezes(task.recipe.train.freeze, *task.network, epoch), 0);
  subject_of_task();
}

Context::Context(const task::Task& task, const task::TaskFeed& training, const task::TaskFeed& tests)
    : task_(&task), training_(&training), tests_(&tests), quick_(true) {}

Context::Context(Subject subject) : subject_(std::move(subject)) {
  Subject& s = subject_;
  if (!s.make || !s.loss || s.batches.empty() || s.inputs.empty())
    fail<InputError>("what is to be checked needs `make`, `inputs`, `loss` and one of `batches` at least");
  for (const auto& batch : s.batches) {
    if (batch.size() != s.inputs.size())
      fail<InputError>("a batch has {} arrays, the step takes {}", batch.size(), s.inputs.size());
    for (size_t i = 0; i < batch.size(); ++i)
      if (batch[i].type() != s.batches[0][i].type())
        fail<InputError>("the array '{}' is {} in one batch and {} in another", s.inputs[i].name,
                         s.batches[0][i].type().str(), batch[i].type().str());
  }
  for (size_t i = 0; i < s.inputs.size(); ++i) s.inputs[i].type = s.batches[0][i].type();
  for (const size_t at : s.given)
    if (at >= s.inputs.size()) fail<InputError>("`given` names input {} of {}", at, s.inputs.size());
  if (s.targets.empty())
    for (size_t i = 0; i < s.inputs.size(); ++i)
      if (!contains(s.given, i)) s.targets.push_back(i);
  if (!s.outputs)
    s.outputs = [](nn::Module& module, std::span<const Tensor> in) {
      return std::vector<optim::NamedTensor>{{"output", module(in)}};
    };
  rows_ = s.batches[0][s.given.empty() ? 0 : s.given[0]].shape()[0].size();
}

void Context::subject_of_task() {
  const task::Task& task = *task_;
  const auto& feed = *training_->feed;
  const std::vector<data::Field> fields(feed.fields().begin(), feed.fields().end());
  rows_ = unusual_rows(task, fields, feed.batch_size());
  Subject& s = subject_;
  s.loss = task::step_function(task, fields);
  s.outputs = logits_of;
  s.given.clear();
  const auto place = [&](const std::string& name) {
    return std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == name; }) -
           fields.begin();
  };
  for (const data::Field& field : task.fields()) s.given.push_back(static_cast<size_t>(place(field.name)));
  for (const auto& output : task.outputs) {
    const auto at = static_cast<size_t>(place(output->target_field()));
    if (!contains(s.targets, at)) s.targets.push_back(at);
  }
  const Settings& rates = task.recipe.train.optimizer.settings;
  if (rates.find("lr")) s.lr = rates.number("lr");
  s.ignorance = 0;
  for (const auto& output : task.outputs) s.ignorance += output->weight() * output->ignorance();
  s.causal = std::any_of(task.inputs.begin(), task.inputs.end(),
                         [](const auto& input) { return input->continuable() != nullptr; });
  model_ = task.network;
  drawn_ = weights();
}

const std::shared_ptr<nn::Module>& Context::model() {
  if (!model_) {
    model_ = subject_.make();
    if (!model_) fail<InputError>("`make` gives no model");
    drawn_ = weights();
  }
  return model_;
}

bool Context::fitted() const { return task_ && task::fitted_model(*task_); }

/// Of the length of those before.
std::vector<Array> Context::next_batch() {
  data::Feed& feed = *training_->feed;
  constexpr int tries = 256;
  for (int tried = 0; tried < tries; ++tried) {
    const data::FeedBatch& batch = feed.next();
    if (!subject_.batches.empty() && batch.length != length_) continue;
    length_ = batch.length;
    std::vector<Array> arrays;
    for (size_t i = 0; i < feed.fields().size(); ++i)
      arrays.push_back(first_along(feed.array(batch, i), 0, rows_));
    return arrays;
  }
  return subject_.batches[0];  // the only one of its length
}

void Context::take_batches(size_t count) {
  Subject& s = subject_;
  if (!training_) return;
  while (s.batches.size() < count) {
    std::vector<Array> arrays = next_batch();
    if (s.batches.empty()) {
      s.inputs.clear();
      for (size_t i = 0; i < arrays.size(); ++i)
        s.inputs.push_back({training_->feed->fields()[i].name, arrays[i].type()});
    }
    s.batches.push_back(std::move(arrays));
  }
}

const std::vector<Array>& Context::fresh_batch() {
  (void)batch();
  if (!training_) return batch(freshly_++);
  fresh_ = next_batch();
  return fresh_;
}

const std::vector<Array>& Context::batch(size_t i) {
  take_batches(i + 1);
  return subject_.batches[i % subject_.batches.size()];
}

std::vector<Array> Context::given(const std::vector<Array>& batch) const {
  std::vector<Array> arrays;
  for (const size_t at : subject_.given) arrays.push_back(batch[at]);
  return arrays;
}

void Context::reset() {
  if (!model_) return;
  set_weights(drawn_);
  if (!step_) return;
  for (auto& [name, array] : step_->state()) std::memset(array.data(), 0, static_cast<size_t>(array.bytes()));
  step_->set_step(0);
}

std::vector<Array> Context::weights() {
  std::vector<Array> all;
  for (const nn::Named& named : optim::tensors_of(*model())) all.push_back(optim::value_of(named).clone());
  return all;
}

void Context::set_weights(const std::vector<Array>& to) {
  size_t at = 0;
  for (const nn::Named& named : optim::tensors_of(*model_)) {
    Array array = optim::value_of(named);
    array.assign(to[at++]);
  }
}

std::vector<Array> Context::outputs(std::span<const Array> given) {
  (void)batch();
  (void)model();
  std::string types;
  for (const Array& array : given) types += array.type().str() + " ";
  auto& step = evals_[types];
  if (!step) {
    std::vector<optim::TensorSpec> specs;
    for (size_t i = 0; i < given.size(); ++i)
      specs.push_back({subject_.inputs[subject_.given[i]].name, given[i].type()});
    step = std::make_unique<optim::EvalStep>(model_, specs, subject_.outputs);
  }
  std::vector<Array> results;
  for (const Array& result : step->run(given))
    results.push_back(result.dtype() == f32 ? result.clone() : result.converted(f32));
  return results;
}

const Recorded& Context::recorded() {
  (void)batch();
  if (!recorded_) recorded_ = record(*model(), subject_.inputs, subject_.loss);
  return *recorded_;
}

const std::vector<Signal>& Context::signals() {
  if (measured_) return signals_;
  measured_ = true;
  const Recorded& r = recorded();
  Graph graph = r.graph;
  const auto layers = layer_results(r, rows_);
  std::vector<Value> wrt, outputs = {r.loss};
  std::vector<std::string> names;
  for (const auto& [layer, value] : layers) wrt.push_back(value);
  for (size_t i = 0; i < r.parameters.size(); ++i)
    if (r.trainable[i]) wrt.push_back(r.parameter(i));
  const std::vector<Value> found = gradients(graph, r.loss, wrt);
  for (const auto& [layer, value] : layers) outputs.push_back(value);
  outputs.insert(outputs.end(), found.begin(), found.end());
  graph.set_outputs(outputs);
  Program program = Program::compile(graph);
  int at = 0;
  for (const Array& array : batch()) program.bind_input(at++, array.clone());
  program.input(at++).set_int(0, 1);
  for (const nn::Named& named : optim::tensors_of(*model_))
    program.bind_input(at++, optim::value_of(named).clone());
  program.run();
  const size_t count = layers.size();
  for (size_t i = 0; i < count; ++i) {
    Signal signal{.name = layers[i].first,
                  .value = program.output(static_cast<int>(1 + i)).converted(f32),
                  .gradient = program.output(static_cast<int>(1 + count + i)).converted(f32)};
    const auto x = std::as_const(signal.value).as<float>();
    signal.rectified = std::all_of(x.begin(), x.end(), [](float v) { return v >= 0; });
    signals_.push_back(std::move(signal));
  }
  size_t next = 1 + 2 * count;
  for (size_t i = 0; i < r.parameters.size(); ++i)
    if (r.trainable[i])
      signals_.push_back({.name = r.parameters[i],
                          .value = optim::value_of(model_->parameters()[i]).converted(f32),
                          .gradient = program.output(static_cast<int>(next++)).converted(f32),
                          .parameter = true});
  return signals_;
}

std::shared_ptr<const optim::Optimizer> Context::optimizer() {
  if (subject_.optimizer) return subject_.optimizer;
  if (!task_) return optim::adamw();
  const task::Recipe::Train& train = task_->recipe.train;
  // What goes by passes over all samples learns nothing from a few batches.
  if (optim::optimizer_kinds().at(train.optimizer.kind).whole) return optim::adamw();
  return optim::make_optimizer(optim::optimizer_kinds().at(train.optimizer.kind), train.optimizer.settings,
                               train.clip_norm, train.clip_value, *model(), task::rates_of(*task_));
}

optim::TrainStep& Context::step() {
  (void)batch();
  if (!step_) {
    optim::TrainOptions options;
    options.seed = 1;
    step_ = std::make_unique<optim::TrainStep>(model(), subject_.inputs, subject_.loss, optimizer(), options);
  }
  reset();
  return *step_;
}

double Context::train(const std::vector<Array>& batch, double lr) {
  for (size_t i = 0; i < batch.size(); ++i) step_->input(static_cast<int>(i)).assign(batch[i]);
  step_->run(lr);
  return step_->loss();
}

}  // namespace millrace::check
