#include <algorithm>
#include <fmt/core.h>
#include <numeric>

#include "base/format.h"
#include "cli/json.h"
#include "cli/verbs.h"
#include "eval/metric.h"
#include "train/arrays.h"
#include "train/datasets.h"
#include "train/session.h"
#include "train/texts.h"

namespace millrace::cli {
namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> pictures;
  int64_t top = 3;
  bool json = false;
};

int run(const Arguments& a) {
  std::vector<std::string> warnings;
  train::Session session = train::load_session(a.model, warnings);
  for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
  if (train::has_arrays(session.recipe))
    fail<InputError>(
        "{} is of tables or sounds, which cannot be predicted one by one yet; millrace eval measures it",
        a.model);
  const bool texts = !session.recipe.data.tokenizer.empty();
  if (session.classes.empty())
    fail<InputError>("{} predicts tokens, not classes; millrace eval measures it", a.model);
  train::Predictor predictor(session, "none", "fp32");
  int failed = 0;
  std::vector<double> probabilities;
  for (const std::string& path : a.pictures) {
    Array logits;
    try {
      logits = texts ? predictor.logits(std::span<const Array>(train::prepared_text(session, path)))
                     : predictor.logits(train::load_prepared(path, session.recipe, session.extent));
    } catch (const Error& error) {
      fmt::print(stderr, "error: {}\n", error.what());
      ++failed;
      continue;
    }
    const std::span<const float> row = std::as_const(logits).as<float>();
    eval::softmax(row, probabilities);
    std::vector<size_t> order(probabilities.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t x, size_t y) { return probabilities[x] > probabilities[y]; });
    order.resize(std::min(order.size(), static_cast<size_t>(std::max<int64_t>(a.top, 1))));
    if (a.json) {
      std::vector<std::pair<std::string, double>> classes;
      for (const size_t i : order) classes.emplace_back(session.classes[i], probabilities[i]);
      std::vector<Json> values(row.begin(), row.end());
      fmt::print("{}\n", json_object({{texts ? "text" : "picture", path},
                                      {"class", session.classes[order[0]]},
                                      {"probabilities", json_object(classes)},
                                      {"logits", Json(values)}})
                             .text);
      continue;
    }
    std::string text;
    for (const size_t i : order)
      text +=
          fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", session.classes[i], 100 * probabilities[i]);
    fmt::print("{}: {}\n", path, text);
  }
  return failed ? 1 : 0;
}

}  // namespace

Action declare_predict(Command& command) {
  auto a = std::make_shared<Arguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional("PICTURE", a->pictures,
                  "picture files, prepared as for evaluation (data.resize, data.crop), or texts")
      .option("--top", a->top, "how many classes to name")
      .flag("--json", a->json, "print one JSON object each, with logits")
      .footer(
          "  millrace predict runs/letters-1 data/letters/test/A/00000.jpg\n"
          "  millrace predict runs/sms-spam-1 'You have won a prize, call now'\n");
  return [a] { return run(*a); };
}

}  // namespace millrace::cli
