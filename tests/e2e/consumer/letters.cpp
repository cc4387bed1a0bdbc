// Trains on the pictures that `millrace letters` draws, by a recipe and by a loop of its own; saves, loads,
// predicts, exports.
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <millrace/run.h>
#include <millrace/weights.h>

namespace fs = std::filesystem;
using namespace millrace;

namespace {

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not so: " + what);
}

/// Its own network: pictures u8 [N, 1, 32, 32] to logits of ten letters.
class Net : public nn::Module {
 public:
  Net() : conv_(make<nn::Conv2d>("conv", 1, 8, 5)), head_(make<nn::Linear>("head", 8 * 7 * 7, 10)) {}
  Tensor forward(const Tensor& pictures) override {
    const Tensor seen = max_pool2d(relu(conv_((pictures.cast(f32) - 128) / 64)), {4, 4}, {4, 4});
    return head_(flatten(seen, 1));
  }

 private:
  nn::Conv2d& conv_;
  nn::Linear& head_;
};

task::Recipe recipe_of(const fs::path& data) {
  return task::parse_recipe(R"(
[input]
kind    = "picture"
augment = ["random-shift 2", "rotate 8"]
[output]
kind = "class"
[model]
layers = ["conv 8 5", "relu", "max-pool 4", "flatten", "linear 10"]
[train]
epochs    = 3
batch     = 50
optimizer = { kind = "adamw", lr = 5e-3 }
[eval]
metrics = ["accuracy", "log-loss"]
)",
                            "letters",
                            std::vector<std::string>{"data.train=" + (data / "train").string(),
                                                     "data.test=" + (data / "test").string()});
}

void look_at_data(const fs::path& data) {
  const std::shared_ptr<const data::Dataset> set = data::open_dataset((data / "train").string());
  for (const data::Column& column : set->columns())
    std::cout << column.name << " (" << data::kind_name(column.kind) << ") ";
  std::cout << "of " << set->count() << " samples\n";
  for (int64_t i = 0; i < set->count(); ++i)
    require(std::get<std::string>(set->read(i, set->column("label"))).size() == 1, "labels are letters");
  require(data::where(set, "label in ('A', 'B')")->count() < set->count(),
          "A and B are a part of the letters");
}

void train_by_recipe(const fs::path& data, const fs::path& out) {
  int64_t steps = 0;
  train::Observer observer;
  observer.step = [&](const train::Status& status) { steps = status.step; };
  observer.message = [](const std::string& line) { std::cout << "  " << line << '\n'; };
  Run run = Run::train(recipe_of(data), out / "run", observer);
  require(steps == run.outcome().step && run.outcome().finished, "the training is told of");
  const task::Evaluation measured = run.evaluate();
  std::cout << measured.metrics[0].name << ' ' << measured.metrics[0].value << '\n';
  require(measured.metrics[0].low > 0.15, "it learns more than chance");
  const std::shared_ptr<const data::Dataset> own = data::open_dataset((data / "test").string());
  require(run.evaluate(own).metrics[0].value == measured.metrics[0].value,
          "a data set is measured on like its files");

  Run opened = Run::open(out / "run");
  const std::vector<std::string> tests = {(data / "test").string()};
  const Predictions before = run.predict(tests), after = opened.predict(tests);
  require(before.failed.empty() && before.outputs[0].classes.size() == 10, "all letters are predicted");
  require(before.outputs[0].logits.identical(after.outputs[0].logits),
          "an opened run predicts the same bits");
  opened.export_onnx(out / "letters.onnx");
}

void train_by_hand(const fs::path& data, const fs::path& out) {
  task::Recipe recipe = recipe_of(data);
  recipe.data.train = "set:letters";
  recipe.data.sets["letters"] = data::open_dataset((data / "train").string());
  Run run = Run::prepare(recipe);
  data::Feed& feed = run.training();
  const size_t pictures = feed.field("pictures"), target = feed.field("target");

  auto net = std::make_shared<Net>();
  net->initialise(1);
  optim::TrainStep step(
      net, run.step_inputs(),
      [&](nn::Module& model, std::span<const Tensor> in) {
        return optim::StepResult{cross_entropy(model(in[pictures]), in[target])};
      },
      optim::adamw({.common = {.weight_decay = 0.01}}));
  const int64_t steps = 6 * feed.batches_per_epoch();
  const optim::Schedule schedule = optim::cosine(5e-3, steps);
  double first = 0;
  for (int64_t i = 0; i < steps; ++i) {
    const data::FeedBatch& batch = feed.next();
    for (size_t k = 0; k < batch.arrays.size(); ++k)
      step.bind_input(static_cast<int>(k), feed.array(batch, k));
    step.run(schedule(i));
    if (i == 0) first = step.loss();
  }
  std::cout << "own loop: loss " << first << " to " << step.loss() << '\n';
  require(step.loss() < 0.8 * first, "the own loop learns");

  // Weights in a file, in another model, give the same logits of the test set's first batch.
  nn::save_weights(*net, out / "net.safetensors");
  auto loaded = std::make_shared<Net>();
  nn::load_weights(*loaded, out / "net.safetensors");
  data::Feed& tests = run.tests();
  const Array batch = tests.array(tests.next(), tests.field("pictures"));
  const auto logits = [&](const std::shared_ptr<Net>& model) {
    optim::EvalStep eval(model, {{"pictures", batch.type()}}, [](nn::Module& m, std::span<const Tensor> in) {
      return std::vector<optim::NamedTensor>{{"logits", m(in[0])}};
    });
    return eval.run(std::span(&batch, 1))[0].clone();
  };
  require(logits(net).identical(logits(loaded)), "weights that were loaded give the same bits");
}

}  // namespace

int train_on_letters(const fs::path& data, const fs::path& out) {
  look_at_data(data);
  train_by_recipe(data, out);
  train_by_hand(data, out);
  std::cout << "letters are learnt\n";
  return 0;
}
