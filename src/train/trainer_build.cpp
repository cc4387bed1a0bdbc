// What comes before the first step: opening the data, building and compiling the model.
#include <cmath>

#include "base/format.h"
#include "base/memory_nodes.h"
#include "base/size_text.h"
#include "data/table/labels.h"
#include "data/table/select.h"
#include "train/arrays.h"
#include "train/trainer_state.h"

namespace millrace::train {
namespace {

/// The arrays of a feed as the step's function gets them.
class Inputs {
 public:
  Inputs(std::span<const data::Field> fields, std::span<const Tensor> tensors)
      : fields_(fields), tensors_(tensors) {}
  const Tensor* find(std::string_view name) const {
    for (size_t i = 0; i < fields_.size(); ++i)
      if (fields_[i].name == name) return &tensors_[i];
    return nullptr;
  }

 private:
  std::span<const data::Field> fields_;
  std::span<const Tensor> tensors_;
};

/// Loss and accuracy of what a feed gives (Feed::fields()).
optim::StepFunction step_function(std::vector<data::Field> fields, size_t inputs, double label_smoothing) {
  return [fields = std::move(fields), inputs, label_smoothing](nn::Module& model,
                                                               std::span<const Tensor> tensors) {
    const Inputs more(fields, tensors);
    const Tensor *weights = more.find("weights"), *counted = more.find("counted"), *mix = more.find("mix");
    const Tensor logits = model(tensors.first(inputs)), &target = tensors[inputs];
    const int64_t classes = logits.dim(-1).size();
    const Tensor best = argmax(logits, -1);
    Tensor right = cast(equal(best, target), f32);
    if (!weights && !counted && !mix && logits.rank() == 2)
      return optim::StepResult{cross_entropy(logits, target, label_smoothing), {{"accuracy", right.mean()}}};
    if (!mix) {
      Tensor losses = apply("cross_entropy", std::vector<Tensor>{logits, target},
                            {{"label_smoothing", label_smoothing}, {"reduction", "none"}})[0];
      if (weights) losses = losses * *weights;
      if (counted) {
        losses = losses * *counted;
        right = right * *counted;
      }
      return optim::StepResult{losses.mean(), {{"accuracy", right.mean()}}};
    }
    // Samples that are of two classes, in shares: of the loss and of being right.
    const Tensor column = reshape(*mix, {logits.dim(0).size(), 1}), &other = *more.find("mixed_labels");
    const Tensor shares = one_hot(target, classes) * column + one_hot(other, classes) * (1 - column);
    right = right * *mix + cast(equal(best, other), f32) * (1 - *mix);
    if (!weights)
      return optim::StepResult{cross_entropy(logits, shares, label_smoothing), {{"accuracy", right.mean()}}};
    const Tensor smooth = shares * (1 - label_smoothing) + label_smoothing / static_cast<double>(classes);
    const Tensor losses = -(smooth * log_softmax(logits, 1)).sum({1});
    return optim::StepResult{(losses * *weights).mean(), {{"accuracy", right.mean()}}};
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
  if (!recipe.data.test.empty() || recipe.data.test_share > 0 || !recipe.data.test_where.empty())
    open_tests();
  steps_per_epoch = feed->batches_per_epoch();
  total = steps_of(recipe, steps_per_epoch);
  // Of a sample of the pictures an epoch is shorter; but an order may have lengths of its own.
  prepared.steps_per_epoch =
      prepared.opened == prepared.pictures ? steps_per_epoch : prepared.pictures / recipe.train.batch;
  prepared.steps = steps_of(recipe, prepared.steps_per_epoch);
  prepared.epochs = static_cast<double>(prepared.steps) / static_cast<double>(prepared.steps_per_epoch);
}

void Trainer::State::open_training() {
  if (recipe.data.tokenizer.empty() && !has_arrays(recipe)) {
    open_pictures();
    observer.message(
        fmt::format("{}: {} of {}×{}, {} classes", feed->path(),
                    feed->streamed() ? "a stream of pictures" : fmt::format("{} pictures", feed->count()),
                    pictures->extent().width, pictures->extent().height, feed->classes().size()));
    return;
  }
  const auto begin = Clock::now();
  feed =
      has_arrays(recipe) ? training_arrays(recipe, encoding, reading()) : training_texts(recipe, reading());
  prepared.read = seconds_since(begin);
  prepared.pictures = prepared.opened = feed->count();
  prepared.cached = true;
  prepared.unit = feed->unit();
  for (const std::string& line : feed->notes()) observer.message(line);
}

void Trainer::State::open_pictures() {
  const auto begin = Clock::now();
  if (recipe.data.stream) {
    const bool classes = recipe.data.classes.empty();
    take_pictures(std::make_unique<data::PictureFeed>(stream_loader(
        recipe, classes ? data::Labels(*open_named(recipe.data.test)).names() : std::vector<std::string>())));
    prepared.open = seconds_since(begin);
    prepared.pictures = prepared.opened = pictures->samples_per_epoch();
    prepared.picture_bytes = static_cast<double>(pictures->extent().bytes());
    return;
  }
  TrainingSource from = open_training_source(recipe);
  prepared.open = seconds_since(begin);
  prepared.pictures = from.source->count();
  // Some batches at least, so that the order of an epoch is a usual one.
  if (most_pictures > 0) from = open_training_source(recipe, std::max(most_pictures, 4 * recipe.train.batch));
  const auto begin_reading = Clock::now();
  auto opened = training_pictures(recipe, from, reading());
  prepared.opened = from.source->count();
  prepared.picture_bytes = static_cast<double>(opened->loader().extent().bytes());
  const double all = prepared.picture_bytes * static_cast<double>(prepared.pictures);
  if (opened->cached() && all > static_cast<double>(recipe.data.cache_mb << 20)) {
    // The sample would be kept in memory, the whole set will not.
    recipe.data.cache_mb = 0;
    opened = training_pictures(recipe, from, reading());
  }
  prepared.cached = opened->cached();
  prepared.read = seconds_since(begin_reading);
  take_pictures(std::move(opened));
}

void Trainer::State::take_pictures(std::unique_ptr<data::PictureFeed> opened) {
  pictures = &opened->loader();
  feed = std::move(opened);
  for (const auto& list : {feed->notes(), skipped_samples(*feed, bad), empty_classes(*pictures)})
    for (const std::string& line : list) observer.message(line);
}

void Trainer::State::open_tests() {
  const auto begin = Clock::now();
  Recipe rest = recipe;
  if (!rest.data.memory.empty())  // what the training has left
    rest.data.memory = fmt::format(
        "{}", std::max(1.0, parse_bytes("data.memory", rest.data.memory) -
                                static_cast<double>(pictures ? pictures->memory() : feed->memory())));
  if (!pictures) {
    test = has_arrays(recipe) ? test_arrays(rest, encoding, "", reading())
                              : test_texts(recipe, feed->classes(), "", reading());
    prepared.read_tests = seconds_since(begin);
    prepared.tests = prepared.opened_tests = test->count();
    for (const std::string& line : test->notes()) observer.message(line);
    return;
  }
  std::shared_ptr<const data::Dataset> source = open_named(recipe.data.test);
  prepared.open += seconds_since(begin);
  prepared.tests = source->count();
  if (most_pictures > 0) source = data::sample_of(source, std::max(most_pictures, 2 * recipe.eval.batch));
  prepared.opened_tests = source->count();
  const auto begin_reading = Clock::now();
  auto opened = test_pictures(open_test_set(source, rest, feed->classes(), pictures->extent(), reading()));
  prepared.read_tests = seconds_since(begin_reading);
  for (const auto& list :
       {opened->notes(), skipped_samples(*opened, bad_tests), empty_classes(opened->loader())})
    for (const std::string& line : list) observer.message(line);
  test = std::move(opened);
}

/// What comes from the data: normalisation, and parameters that the model takes from pictures.
void Trainer::State::fit() {
  if (!pictures) {
    session = has_arrays(recipe) ? make_array_session(recipe, encoding)
                                 : make_text_session(recipe, feed->classes());
    return;
  }
  const auto begin = Clock::now();
  const PictureSample sample =
      feed->streamed() ? sample_stream(recipe, *pictures)
                       : sample_pictures(recipe, std::shared_ptr<const data::Dataset>(std::shared_ptr<void>(),
                                                                                      &pictures->samples()));
  prepared.sample = seconds_since(begin);
  prepared.sampled = sample.pictures.shape()[0].size();
  if (recipe.data.mean.empty()) {
    recipe.data.mean = sample.mean;
    recipe.data.std = sample.std;
  }
  session = make_session(recipe, feed->classes(), pictures->extent());
  if (session->model.fit) session->model.fit(sample.pictures);
}

/// Compiles the programs. With a checkpoint its recorded choices are used.
void Trainer::State::build(const Checkpoint* from) {
  if (from) {
    if (from->classes != feed->classes())
      fail<InputError>(
          "{}: its classes are {}, the run was begun with {}: bring the data back, or begin a new run",
          feed->path(), fmt::join(feed->classes(), ", "), fmt::join(from->classes, ", "));
    session = pictures             ? make_session(recipe, from->classes, pictures->extent())
              : has_arrays(recipe) ? make_array_session(recipe, encoding)
                                   : make_text_session(recipe, from->classes);
    restore_session(*session, *from);
  } else {
    fit();
  }
  const auto begin = Clock::now();
  freezes = parse_freezes(recipe.train.freeze, *session->model.module, steps_per_epoch);
  // Before anything freezes: a run that is resumed later looks ahead with the same parameters.
  if (recipe.train.lookahead > 0) lookahead.emplace(*session->model.module);
  freeze_due(*session->model.module, freezes, from ? from->step : 0);
  build_steps();
  schedule = make_schedule(recipe, steps_per_epoch, total);
  if (test) {
    // Compiled now, so that the choices it makes stand in every checkpoint.
    predictor = std::make_unique<Predictor>(*session, "none", recipe.train.precision);
    const std::vector<int64_t> lengths = test->lengths();
    for (const int64_t length : lengths.empty() ? std::vector<int64_t>{0} : lengths)
      predictor->prepare(*test, length);
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

void Trainer::State::build_steps() {
  const auto all = feed->fields();
  const std::vector<data::Field> fields(all.begin(), all.end());
  std::vector<int64_t> lengths = feed->lengths();
  if (lengths.empty()) lengths = {0};
  by_length.clear();
  step = nullptr;
  // The longest first: it is the one that may not fit into memory.
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
    optim::TrainOptions options{static_cast<uint64_t>(recipe.train.seed),
                                compile_options(*session, recipe.train.precision, recipe.train.memory),
                                {},
                                recipe.train.accumulate};
    options.share = step;
    auto made = std::make_unique<optim::TrainStep>(
        session->model.module, specs_of(fields, recipe.train.batch, *length),
        step_function(fields, feed->inputs(), recipe.train.loss.label_smoothing),
        make_optimizer(recipe, *session->model.module), options);
    for (const auto& [key, choice] : made->program().choices()) session->choices.emplace(key, choice);
    if (!step) step = made.get();
    by_length.emplace(*length, std::move(made));
  }
}

void Trainer::State::choose_step(int64_t length) {
  optim::TrainStep* const wanted = by_length.at(length).get();
  if (wanted == step) return;
  wanted->set_step(step->step());
  step = wanted;
}

}  // namespace millrace::train
