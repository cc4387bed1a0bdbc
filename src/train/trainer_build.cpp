// What comes before the first step: opening the data, building and compiling the model.
#include <cmath>

#include "base/format.h"
#include "base/memory_nodes.h"
#include "data/sample.h"
#include "train/trainer_state.h"

namespace millrace::train {
namespace {

optim::StepFunction step_function(double label_smoothing) {
  return [label_smoothing](nn::Module& model, std::span<const Tensor> inputs) {
    const Tensor logits = model(inputs[0]);
    const Tensor right = cast(equal(argmax(logits, 1), inputs[1]), f32);
    return optim::StepResult{cross_entropy(logits, inputs[1], label_smoothing), {{"accuracy", right.mean()}}};
  };
}

/// With samples that are of two classes, in shares: of the loss and of being right. And with weights of the samples.
optim::StepFunction soft_step_function(double label_smoothing, bool mixed, bool weighted) {
  return [=](nn::Module& model, std::span<const Tensor> inputs) {
    const Tensor logits = model(inputs[0]), best = argmax(logits, 1);
    const int64_t classes = logits.dim(1).size(), batch = logits.dim(0).size();
    Tensor target = one_hot(inputs[1], classes), right = cast(equal(best, inputs[1]), f32);
    if (mixed) {
      const Tensor kept = inputs[3], column = reshape(kept, {batch, 1});
      target = target * column + one_hot(inputs[2], classes) * (1 - column);
      right = right * kept + cast(equal(best, inputs[2]), f32) * (1 - kept);
    }
    if (!weighted)
      return optim::StepResult{cross_entropy(logits, target, label_smoothing), {{"accuracy", right.mean()}}};
    const Tensor smooth = target * (1 - label_smoothing) + label_smoothing / static_cast<double>(classes);
    const Tensor losses = -(smooth * log_softmax(logits, 1)).sum({1});
    return optim::StepResult{(losses * inputs.back()).mean(), {{"accuracy", right.mean()}}};
  };
}

}  // namespace

int64_t Trainer::State::steps_of(const Recipe& recipe, int64_t in_epoch) {
  return recipe.train.steps > 0
             ? recipe.train.steps
             : std::max<int64_t>(1, std::llround(recipe.train.epochs * static_cast<double>(in_epoch)));
}

void Trainer::State::open_data() {
  open_training();
  const data::Source* source = &loader->source();
  const std::string& path = source->path();
  for (const auto& list : {source->notes(), skipped_pictures(*loader, bad), empty_classes(*loader)})
    for (const std::string& line : list) observer.message(line);
  observer.message(
      fmt::format("{}: {} of {}×{}, {} classes", path,
                  loader->streamed() ? "a stream of pictures" : fmt::format("{} pictures", source->count()),
                  loader->extent().width, loader->extent().height, source->classes().size()));
  if (!recipe.data.test.empty()) {
    open_tests();
    for (const auto& list : {test->loader->source().notes(), skipped_pictures(*test->loader, bad_tests),
                             empty_classes(*test->loader)})
      for (const std::string& line : list) observer.message(line);
  }
  steps_per_epoch = loader->batches_per_epoch();
  total = steps_of(recipe, steps_per_epoch);
  // Of a sample of the pictures an epoch is shorter; but an order may have lengths of its own.
  prepared.steps_per_epoch =
      prepared.opened == prepared.pictures ? steps_per_epoch : prepared.pictures / recipe.train.batch;
  prepared.steps = steps_of(recipe, prepared.steps_per_epoch);
  prepared.epochs = static_cast<double>(prepared.steps) / static_cast<double>(prepared.steps_per_epoch);
}

void Trainer::State::open_training() {
  const auto begin = Clock::now();
  if (recipe.data.stream) {
    const bool classes = recipe.data.classes.empty();
    loader =
        stream_loader(recipe, classes ? open_named(recipe.data.test)->classes() : std::vector<std::string>());
    prepared.open = seconds_since(begin);
    prepared.pictures = prepared.opened = loader->samples_per_epoch();
    prepared.picture_bytes = static_cast<double>(loader->extent().bytes());
    return;
  }
  TrainingSource from = open_training_source(recipe);
  prepared.open = seconds_since(begin);
  prepared.pictures = from.source->count();
  // Some batches at least, so that the order of an epoch is a usual one.
  if (most_pictures > 0) from = open_training_source(recipe, std::max(most_pictures, 4 * recipe.train.batch));
  const auto begin_reading = Clock::now();
  loader = training_loader(recipe, from, reading());
  prepared.opened = from.source->count();
  prepared.picture_bytes = static_cast<double>(loader->extent().bytes());
  const double all = prepared.picture_bytes * static_cast<double>(prepared.pictures);
  if (loader->cached() && all > static_cast<double>(recipe.data.cache_mb << 20)) {
    // The sample would be kept in memory, the whole set will not.
    recipe.data.cache_mb = 0;
    loader = training_loader(recipe, from, reading());
  }
  prepared.cached = loader->cached();
  prepared.read = seconds_since(begin_reading);
}

void Trainer::State::open_tests() {
  const auto begin = Clock::now();
  std::shared_ptr<const data::Source> source = open_named(recipe.data.test);
  prepared.open += seconds_since(begin);
  prepared.tests = source->count();
  if (most_pictures > 0) source = data::sample_of(source, std::max(most_pictures, 2 * recipe.eval.batch));
  prepared.opened_tests = source->count();
  const auto begin_reading = Clock::now();
  test = open_test_set(source, recipe, loader->source().classes(), loader->extent(), reading());
  prepared.read_tests = seconds_since(begin_reading);
}

/// What comes from the data: normalisation, and parameters that the model takes from pictures.
void Trainer::State::fit() {
  const auto source = std::shared_ptr<const data::Source>(std::shared_ptr<void>(), &loader->source());
  const auto begin = Clock::now();
  const PictureSample sample =
      loader->streamed() ? sample_stream(recipe, *loader) : sample_pictures(recipe, source);
  prepared.sample = seconds_since(begin);
  prepared.sampled = sample.pictures.shape()[0].size();
  if (recipe.data.mean.empty()) {
    recipe.data.mean = sample.mean;
    recipe.data.std = sample.std;
  }
  session = make_session(recipe, loader->source().classes(), loader->extent());
  if (session->model.fit) session->model.fit(sample.pictures);
}

/// Compiles the programs. With a checkpoint its recorded choices are used.
void Trainer::State::build(const Checkpoint* from) {
  if (from) {
    if (from->classes != loader->source().classes())
      fail<InputError>(
          "{}: its classes are {}, the run was begun with {}: bring the data back, or begin a new run",
          loader->source().path(), fmt::join(loader->source().classes(), ", "),
          fmt::join(from->classes, ", "));
    session = make_session(recipe, from->classes, loader->extent());
    restore_session(*session, *from);
  } else {
    fit();
  }
  const auto begin = Clock::now();
  const data::Extent& e = session->extent;
  freezes = parse_freezes(recipe.train.freeze, *session->model.module, steps_per_epoch);
  // Before anything freezes: a run that is resumed later looks ahead with the same parameters.
  if (recipe.train.lookahead > 0) lookahead.emplace(*session->model.module);
  freeze_due(*session->model.module, freezes, from ? from->step : 0);
  build_step();
  schedule = make_schedule(recipe, steps_per_epoch, total);
  if (test) {
    // Compiled now, so that the choices it makes stand in every checkpoint.
    predictor = std::make_unique<Predictor>(*session, "none", recipe.train.precision);
    predictor->logits(Array(u8, {test->loader->batch_size(), e.channels, e.height, e.width}));
  }
  prepared.compile = seconds_since(begin);
  const Program& program = step->program();
  if (recipe.train.precision.starts_with("bf16") && program.precision() == "fp32")
    observer.message(fmt::format(
        "train.precision = \"{}\": this CPU has no bf16 units, so the step computes in f32, which is "
        "faster here",
        recipe.train.precision));
  std::string largest;
  for (const auto& [bytes, what] : program.peak_breakdown(3))
    largest += fmt::format("{}{:.1f} MB {}", largest.empty() ? "; largest at the peak: " : ", ",
                           static_cast<double>(bytes) / 1e6, what);
  observer.message(
      fmt::format("{} parameters; memory of a step: {:.1f} MB{}", session->model.module->parameter_count(),
                  static_cast<double>(program.arena_bytes() + program.bound_bytes()) / 1e6, largest));
  // Intermediate values are taken by the first step; the rest is there.
  if (const std::string warning = memory_warning(program.arena_bytes()); !warning.empty())
    observer.message("memory: " + warning);
}

void Trainer::State::build_step() {
  const data::Extent& e = session->extent;
  std::vector<optim::TensorSpec> inputs = {
      {"pictures", {u8, {recipe.train.batch, e.channels, e.height, e.width}}},
      {"labels", {i64, {recipe.train.batch}}}};
  const bool mixed = !recipe.data.mix.empty();
  if (mixed) {
    inputs.push_back({"mixed_labels", {i64, {recipe.train.batch}}});
    inputs.push_back({"mix", {f32, {recipe.train.batch}}});
  }
  const bool weighted = loader->weighted();
  if (weighted) inputs.push_back({"weights", {f32, {recipe.train.batch}}});
  const double smoothing = recipe.train.loss.label_smoothing;
  step = std::make_unique<optim::TrainStep>(
      session->model.module, inputs,
      mixed || weighted ? soft_step_function(smoothing, mixed, weighted) : step_function(smoothing),
      make_optimizer(recipe, *session->model.module),
      optim::TrainOptions{static_cast<uint64_t>(recipe.train.seed),
                          compile_options(*session, recipe.train.precision, recipe.train.memory),
                          {},
                          recipe.train.accumulate});
  for (const auto& [key, choice] : step->program().choices()) session->choices.emplace(key, choice);
}

}  // namespace millrace::train
