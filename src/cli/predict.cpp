#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/format.h"
#include "cli/json.h"
#include "cli/verbs.h"
#include "data/io/location.h"
#include "data/io/random_access_file.h"
#include "eval/metric.h"
#include "train/arrays.h"
#include "train/datasets.h"
#include "train/session.h"
#include "train/texts.h"
#include "train/unlabelled.h"

namespace millrace::cli {
namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> inputs;
  int64_t top = 3, tokens = 0;
  bool json = false;
};

std::vector<size_t> best(const std::vector<double>& probabilities, int64_t top) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = std::min(order.size(), static_cast<size_t>(std::max<int64_t>(top, 1)));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t x, size_t y) { return probabilities[x] > probabilities[y]; });
  order.resize(count);
  return order;
}

/// One line, or one object, for each input.
class Printer {
 public:
  Printer(const Arguments& a, const train::Session& session)
      : a_(a),
        session_(session),
        unit_(!session.recipe.data.tokenizer.empty()    ? "text"
              : session.recipe.data.samples == "table"  ? "row"
              : session.recipe.data.samples == "sounds" ? "sound"
                                                        : "picture") {}

  void print(const std::string& name, std::span<const float> logits) {
    eval::softmax(logits, probabilities_);
    const std::vector<size_t> order = best(probabilities_, a_.top);
    if (a_.json) {
      std::vector<std::pair<std::string, double>> classes;
      for (const size_t i : order) classes.emplace_back(session_.classes[i], probabilities_[i]);
      const std::vector<Json> values(logits.begin(), logits.end());
      fmt::print("{}\n", json_object({{unit_, name},
                                      {"class", session_.classes[order[0]]},
                                      {"probabilities", json_object(classes)},
                                      {"logits", Json(values)}})
                             .text);
      return;
    }
    std::string text;
    for (const size_t i : order)
      text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", session_.classes[i],
                          100 * probabilities_[i]);
    fmt::print("{}: {}\n", name, text);
  }
  void failed(const std::string& message) {
    fmt::print(stderr, "error: {}\n", message);
    ++failures;
  }

  int failures = 0;

 private:
  const Arguments& a_;
  const train::Session& session_;
  const char* unit_;
  std::vector<double> probabilities_;
};

void predict_pictures(const Arguments& a, train::Session& session, Printer& printer) {
  train::Predictor predictor(session, "none", "fp32");
  for (const std::string& path : a.inputs) try {
      const Array logits = predictor.logits(train::load_prepared(path, session.recipe, session.extent));
      printer.print(path, logits.as<float>());
    } catch (const Error& error) {
      printer.failed(error.what());
    }
}

/// Files whose samples are rows, sounds or texts. `named`: sources of one data set.
void predict_files(train::Predictor& predictor, const train::Session& session,
                   const std::vector<std::string>& named, Printer& printer) {
  try {
    const auto samples = train::open_unlabelled(session, named);
    train::predict_samples(
        predictor, session, samples,
        {[&](int64_t i, std::span<const float> logits) { printer.print(samples->name(i), logits); },
         [&](int64_t i, const std::string& why) {
           printer.failed(fmt::format("{}: {}", samples->name(i), why));
         }});
  } catch (const Error& error) {
    printer.failed(error.what());
  }
}

/// Does an argument name a source of texts, not a text? InputError for what looks like a file that is not there.
bool is_source(const std::string& text) {
  std::error_code ignored;
  const std::string end = std::filesystem::path(text).extension().string();
  const bool file = text.find_first_of(" \n\t") == std::string::npos && text.size() > end.size() &&
                    (end == ".txt" || end == ".csv" || end == ".tsv" || end == ".jsonl" ||
                     end == ".parquet" || end == ".arrow");
  if (file && text.find_first_of("*?[{") == std::string::npos && !data::is_elsewhere(text) &&
      !std::filesystem::exists(text, ignored))
    fail<InputError>("{}: no such file; check the path", text);
  return file || text == "-" || text.starts_with("pipe:") || std::filesystem::exists(text, ignored) ||
         data::is_elsewhere(text);
}

void predict_texts(const Arguments& a, train::Session& session, train::Predictor& predictor,
                   Printer& printer) {
  for (const std::string& text : a.inputs) {
    bool source = false;
    try {
      source = is_source(text);
    } catch (const InputError& error) {
      printer.failed(error.what());
      continue;
    }
    if (source) {
      predict_files(predictor, session, {text}, printer);
      continue;
    }
    const Array logits = predictor.logits(std::span<const Array>(train::prepared_text(session, text)));
    printer.print(text, logits.as<float>());
  }
}

/// Of a model that predicts tokens: those that may come next, or what follows when the most probable one is taken each time.
void predict_tokens(const Arguments& a, train::Session& session, train::Predictor& predictor) {
  const auto tokenizer = train::tokenizer_of(session.recipe);
  std::vector<double> probabilities;
  for (const std::string& text : a.inputs) {
    if (is_source(text))
      fail<InputError>(
          "{}: is a file; give a text to go on from. millrace eval {} {} measures how well a file is "
          "predicted",
          text, a.model, text);
    std::vector<int32_t> ids = tokenizer->encode(text, false);
    const size_t own = ids.size();
    std::vector<std::pair<int32_t, double>> next;
    for (int64_t k = 0; k < std::max<int64_t>(a.tokens, 1); ++k) {
      const Array logits = train::next_token_logits(predictor, session, ids);
      eval::softmax(logits.as<float>(), probabilities);
      const std::vector<size_t> order = best(probabilities, a.top);
      if (k == 0)
        for (const size_t i : order) next.emplace_back(static_cast<int32_t>(i), probabilities[i]);
      ids.push_back(static_cast<int32_t>(order[0]));
    }
    const std::string after = tokenizer->decode(std::span(ids).subspan(own), false);
    if (a.json) {
      std::vector<std::pair<std::string, Json>> fields = {{"text", text}};
      if (a.tokens > 0) fields.emplace_back("continuation", after);
      std::vector<Json> list;
      for (const auto& [id, share] : next)
        list.push_back(json_object({{"id", int64_t{id}},
                                    {"token", tokenizer->decode(std::span(&id, 1), false)},
                                    {"probability", share}}));
      fields.emplace_back("next", list);
      fmt::print("{}\n", json_object(fields).text);
    } else if (a.tokens > 0) {
      // A token may be a part of a character.
      fmt::print("{}\n", nlohmann::json::parse(Json(text + after).text).get<std::string>());
    } else {
      std::string line;
      for (const auto& [id, share] : next)
        line += fmt::format("{}{} {:.1f} %", line.empty() ? "" : ", ",
                            Json(tokenizer->decode(std::span(&id, 1), false)).text, 100 * share);
      fmt::print("{}: {}\n", text, line);
    }
  }
}

int run(const Arguments& a) {
  if (a.top < 1) fail<InputError>("--top {}: at least one class, or token, is named", a.top);
  if (a.tokens < 0) fail<InputError>("--tokens {}: a text goes on by 1 token or more", a.tokens);
  std::vector<std::string> warnings;
  train::Session session = train::load_session(a.model, warnings);
  for (const std::string& line : warnings) fmt::print(stderr, "{}\n", line);
  const train::Recipe& recipe = session.recipe;
  const bool texts = !recipe.data.tokenizer.empty(), tokens = session.classes.empty();
  if (a.tokens > 0 && !tokens) fail<InputError>("--tokens: {} predicts classes, not tokens", a.model);
  Printer printer(a, session);
  if (!texts && !train::has_arrays(recipe)) {
    predict_pictures(a, session, printer);
    return printer.failures ? 1 : 0;
  }
  train::Predictor predictor(session, "none", recipe.train.precision);
  if (tokens) {
    predict_tokens(a, session, predictor);
  } else if (texts) {
    predict_texts(a, session, predictor, printer);
  } else if (recipe.data.samples == "sounds") {
    // Files one after the other share batches.
    for (size_t i = 0; i < a.inputs.size();) {
      std::vector<std::string> named = {a.inputs[i++]};
      while (train::is_sound_file(named[0]) && i < a.inputs.size() && train::is_sound_file(a.inputs[i]))
        named.push_back(a.inputs[i++]);
      predict_files(predictor, session, named, printer);
    }
  } else {
    for (const std::string& path : a.inputs) predict_files(predictor, session, {path}, printer);
  }
  return printer.failures ? 1 : 0;
}

}  // namespace

Action declare_predict(Command& command) {
  auto a = std::make_shared<Arguments>();
  command.positional("MODEL", a->model, "a run folder")
      .positional(
          "INPUT", a->inputs,
          "picture files, prepared as for evaluation (data.resize, data.crop); files with rows of a table; "
          "WAV or FLAC files, folders or tars of them; texts, or files with texts")
      .option("--top", a->top, "how many classes, or tokens, to name")
      .option("--tokens", a->tokens,
              "of a model that predicts tokens: go on by so many, each the most probable one")
      .flag("--json", a->json, "print one JSON object each, with logits")
      .footer(
          "What the model knows of columns, classes and tokens comes from the run folder: a file needs no "
          "column of "
          "labels.\n\n"
          "  millrace predict runs/letters-1 data/letters/test/A/00000.jpg\n"
          "  millrace predict runs/adult-1 people.csv --json\n"
          "  millrace predict runs/spoken-digits-1 recordings/ one.wav\n"
          "  millrace predict runs/sms-spam-1 'You have won a prize, call now' messages.tsv\n"
          "  millrace predict runs/shakespeare-1 'To be, or' --tokens 40\n");
  return [a] { return run(*a); };
}

}  // namespace millrace::cli
