#include "cli/predict.h"

#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "base/is_run.h"
#include "base/utf8.h"
#include "cli/json.h"
#include "cli/verbs.h"
#include "task/generate.h"
#include "task/predict.h"
#include "task/prediction_writer.h"
#include "train/load_model.h"

namespace millrace::cli {
namespace {

/// What only goes with a run folder, or only without one.
void require_fitting(const PredictArguments& a, bool run) {
  const auto refuse = [&](bool given, const char* option, const char* why) {
    if (given) fail<InputError>("{}: {}", option, why);
  };
  const bool into_file = !a.target.out.empty();
  const char* const file = "goes with -o FILE";
  refuse(!into_file && a.threshold != 0, "--threshold", file);
  refuse(std::isnan(a.threshold), "--threshold", "nan is no limit");
  refuse(!into_file && a.all, "--all", file);
  refuse(!into_file && a.target.half, "--f16", file);
  refuse(!into_file && a.target.force, "--force", file);
  refuse(into_file && a.json, "--json", "-o writes a file");
  if (run) {
    const char* const why = "a run folder says that itself";
    refuse(!a.pictures.normalise.empty(), "--normalise", why);
    refuse(a.pictures.resize != task::PicturePreparation{}.resize, "--resize", why);
    refuse(!a.labels.empty(), "--labels", why);
    refuse(into_file && a.tokens != 0, "--tokens", "-o writes a file");
    refuse(!a.precision.empty(), "--precision", why);
  } else {
    refuse(!a.checkpoint.empty(), "--checkpoint", "only a run folder has some");
    refuse(a.tokens != 0, "--tokens", "only a run folder says what a token is");
  }
}

/// One line, or one object, for each sample.
class PredictionPrinter {
 public:
  PredictionPrinter(const PredictArguments& a, const task::Task& task) : a_(a), task_(task) {
    for (const auto& output : task.outputs) names_.insert(output->name());
  }

  void print(const std::string& name, const std::vector<std::span<const float>>& logits,
             std::span<const int64_t> rows) {
    std::string text;
    std::vector<std::pair<std::string, Json>> fields = {{"input", name}};
    std::set<std::string> reserved = {"input"};
    if (!rows.empty()) {
      fields.emplace_back("rows", std::vector<Json>(rows.begin(), rows.end()));
      reserved.insert("rows");
    }
    for (size_t i = 0; i < task_.outputs.size(); ++i) {
      const task::Output& output = *task_.outputs[i];
      const task::Prediction prediction = output.predict(logits[i], a_.top);
      std::vector<std::pair<std::string, Json>> own;
      for (const auto& [key, value] : prediction.json) own.emplace_back(key, Json::raw(value));
      if (output.name().empty()) {
        text = prediction.text;
        fields.insert(fields.end(), own.begin(), own.end());
      } else {
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", output.name(), prediction.text);
        fields.emplace_back(task::beside(output.name(), reserved, names_), json_object(own));
      }
    }
    if (a_.json)
      print_json(json_object(fields));
    else
      fmt::print("{}: {}\n", name, text);
    ++predicted;
  }
  void failed(const std::string& message) {
    fmt::print(stderr, "error: {}\n", printable(message));
    ++failures;
  }

  int predicted = 0, failures = 0;

 private:
  const PredictArguments& a_;
  const task::Task& task_;
  std::set<std::string> names_;  // of outputs
};

void print_continuation(const PredictArguments& a, const std::string& text,
                        const task::Continuation& continuation) {
  if (a.json) {
    std::vector<std::pair<std::string, Json>> fields = {{"input", text}};
    if (a.tokens > 0) fields.emplace_back("continuation", continuation.text);
    std::vector<Json> list;
    for (const task::Continuation::Token& token : continuation.next)
      list.push_back(
          json_object({{"id", token.id}, {"token", token.text}, {"probability", token.probability}}));
    fields.emplace_back("next", list);
    print_json(json_object(fields));
    return;
  }
  if (a.tokens > 0) {
    // A token may be a part of a character.
    fmt::print("{}\n", nlohmann::json::parse(Json(text + continuation.text).text).get<std::string>());
    return;
  }
  std::string line;
  for (const task::Continuation::Token& token : continuation.next)
    line += fmt::format("{}{} {:.1f} %", line.empty() ? "" : ", ", Json(token.text).text,
                        100 * token.probability);
  fmt::print("{}: {}\n", text, line);
}

/// Of a model that predicts what comes next: that, or what follows when the most probable is taken each time.
void go_on_with(const PredictArguments& a, const task::Task& task, task::Predictor& predictor) {
  for (const std::string& text : a.samples) {
    if (!text.empty() && !task.inputs.front()->is_sample(text))
      fail<InputError>(
          "{}: is a file; give a beginning to go on from. millrace eval {} {} measures how well a file is "
          "predicted",
          text, a.model, text);
    print_continuation(a, text, task::go_on(predictor, task, text, a.tokens, a.top));
  }
}

int run_predict(const PredictArguments& a) {
  // What is neither there nor a run gives the run's error.
  const bool run = !std::filesystem::is_regular_file(a.model) || is_run(a.model);
  require_fitting(a, run);
  if (!run) return predict_model(a);
  const bool into_file = !a.target.out.empty(), array = task::is_array_file(a.target.out);
  if (a.target.half && !array)
    fail<InputError>("--f16 is for .npy; {} holds numbers as they are", a.target.out);
  if (!into_file && a.top < 1) fail<InputError>("--top {}: at least one class, or token, is named", a.top);
  if (a.tokens < 0) fail<InputError>("--tokens {}: a beginning goes on by 1 token or more", a.tokens);
  std::vector<std::string> warnings;
  int64_t step = 0;
  task::Task task = train::load_model(a.model, warnings, {}, a.checkpoint, &step);
  for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
  if (into_file) {
    task::PredictFileOptions file{a.target, {a.top, a.threshold, a.all, array}};
    file.identity = fmt::format("{} step {}", a.model, step);
    return show_prediction(file.out, "samples", [&](const task::PredictWatch& watch) {
      file.watch = watch;
      return task::predict_file(task, a.samples, file);
    });
  }
  const bool generates = task::generates(task);
  if (a.tokens > 0 && !generates)
    fail<InputError>("--tokens: {} does not predict what comes next, so that it cannot go on", a.model);
  task::Predictor predictor(task, false, task::Weights::trained);
  if (generates) {
    go_on_with(a, task, predictor);
    return 0;
  }
  PredictionPrinter printer(a, task);
  task::predict_arguments(predictor, task, a.samples,
                          {[&](const std::string& name, const std::vector<std::span<const float>>& logits,
                               std::span<const int64_t> rows) { printer.print(name, logits, rows); },
                           [&](const std::string& message) { printer.failed(message); }});
  if (printer.failures > 0 && printer.predicted > 0)
    fmt::print(stderr, "warning: {} of {} could not be predicted, as said above\n", printer.failures,
               printer.failures + printer.predicted);
  return printer.failures ? 1 : 0;
}

Action declare_predict(Command& command) {
  auto a = std::make_shared<PredictArguments>();
  command.positional("MODEL", a->model, "a run folder, or a model without a recipe (.onnx, .mill)")
      .positional(
          "SAMPLE", a->samples,
          "what the model was trained on more of: a file that is one sample (photo.jpg, word.wav), data "
          "of any format with many of them (rows.csv, a folder, a tar), or the sample itself ('a text'); "
          "for a model without a recipe pictures, .npy, .npz, JSON")
      .option("--top", a->top, "how many classes, or tokens, to name")
      .option("--tokens", a->tokens,
              "of a model that predicts the next token: go on by so many, each the most probable one")
      .option("--checkpoint", a->checkpoint, checkpoint_doc)
      .option("--resize", a->pictures.resize,
              "without a recipe, pictures: crop (the middle, after resizing; the default) or stretch")
      .option(
          "--normalise", a->pictures.normalise,
          "without a recipe, pictures: imagenet (the default for three channels), unit (0 to 1, the default "
          "for one), signed (-1 to 1) or none (0 to 255, the default for integers)")
      .option("--labels", a->labels, "without a recipe: names of classes, one a line")
      .option("--precision", a->precision, "without a recipe: fp32 (the default), bf16 or fp16")
      .option("-o,--out", a->target.out,
              "write all predictions into this file: .csv, .tsv, .jsonl, .parquet, .arrow, .npy")
      .option("--threshold", a->threshold, "-o: classes that are less probable are left out")
      .flag("--all", a->all, "-o: a column with the probability of each class, too")
      .flag("--f16", a->target.half, "-o FILE.npy: in 16 bits each")
      .flag("--force", a->target.force, "-o: replace a file that is there")
      .flag("--json", a->json, "print one JSON object each, with logits")
      .footer(
          "Samples are prepared as for evaluation. What the model knows of columns, classes and tokens comes "
          "from the run\n"
          "folder: data need no column of targets.\n\n"
          "  millrace predict runs/letters-1 data/letters/test/A/00000.jpg\n"
          "  millrace predict runs/adult-1 people.csv --json\n"
          "  millrace predict runs/adult-1 people.csv -o predicted.parquet\n"
          "  millrace predict runs/spoken-digits-1 recordings/ one.wav\n"
          "  millrace predict runs/sms-spam-1 'You have won a prize, call now' messages.tsv\n"
          "  millrace predict runs/shakespeare-1 'To be, or' --tokens 40\n"
          "  millrace predict resnet50.onnx cat.jpg photos/ --labels imagenet.txt\n"
          "  millrace predict resnet50.onnx photos/ -o photos.parquet --labels imagenet.txt --top 5\n"
          "  millrace predict model.onnx batch.npy -o results.npy\n");
  return [a] { return run_predict(*a); };
}

}  // namespace

MILLRACE_VERB(predict){"predict", "say what a model makes of samples", declare_predict, 80};

}  // namespace millrace::cli
