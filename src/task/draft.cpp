#include "task/draft.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/format.h"
#include "data/formats/open_dataset.h"
#include "data/table/labels.h"
#include "data/table/select.h"
#include "data/table/test_share.h"
#include "task/open.h"
#include "task/output.h"
#include "task/settle.h"
#include "task/task.h"
#include "task/toml_text.h"

namespace millrace::task {
namespace {

namespace fs = std::filesystem;

constexpr int64_t draft_samples = 20'000;  // looked at, of larger data
constexpr double draft_share = 0.1;

struct DraftPaths {
  std::string train, test;  // "" where there is none beside it
};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The names by which test sets go beside "train": of folders, of files, of MNIST.
DraftPaths draft_paths(const std::string& path) {
  static constexpr const char* tests[] = {"test", "val", "valid", "validation", "dev", "t10k"};
  const fs::path whole(path);
  if (is_there(whole / "train"))
    for (const char* test : tests)
      if (is_there(whole / test)) return {(whole / "train").string(), (whole / test).string()};
  // "data/train/" ends in an empty name.
  const fs::path file = whole.has_filename() ? whole : whole.parent_path();
  const std::string name = file.filename().string();
  const size_t at = name.find("train");
  if (at == std::string::npos) return {path, ""};
  for (const char* test : tests) {
    const fs::path beside = file.parent_path() / (name.substr(0, at) + test + name.substr(at + 5));
    if (is_there(beside)) return {path, beside.string()};
  }
  return {path, ""};
}

bool is_one_of(std::string name, std::initializer_list<const char*> words) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::find(words.begin(), words.end(), name) != words.end();
}

/// A column that is called as targets are; "" for none.
std::string named_target(const data::Dataset& samples) {
  for (const data::Column& column : samples.columns())
    if (is_one_of(column.name,
                  {"label", "cls", "class", "target", "y", "price", "outcome", "score", "rating", "quality",
                   "category", "survived", "species", "diagnosis", "income", "value"}))
      return column.name;
  return {};
}

/// Rows of numbers and texts, of which any column could be the target.
bool is_plain_table(const data::Dataset& samples) {
  return samples.columns().size() > 1 &&
         std::all_of(samples.columns().begin(), samples.columns().end(), [](const data::Column& column) {
           return column.kind == data::ColumnKind::integer || column.kind == data::ColumnKind::real ||
                  column.kind == data::ColumnKind::text;
         });
}

/// Settles the output; why the target is the target, for a comment.
std::string recognise_target(Recipe& recipe, const data::Dataset& samples) {
  std::string column = named_target(samples), why;
  // What is called no target, but is all that could be a class, is as well a feature.
  if (column.empty() && is_plain_table(samples)) {
    column = samples.columns().back().name;
    why = "the last column: name another if that is not what you want";
  }
  if (!column.empty()) recipe.outputs[0].set("column", column);
  settle_outputs(recipe, samples);
  return why;
}

/// What an output's targets are: "3 classes: cat, dog, bird", "numbers from 1.5 to 90".
std::string targets_text(const Output& output, const data::Dataset& samples) {
  const std::vector<std::string> classes = output.classes();
  if (!classes.empty()) {
    constexpr size_t shown = 10;
    const auto some = std::span(classes).first(std::min(classes.size(), shown));
    return fmt::format("{} classes: {}{}", classes.size(), fmt::join(some, ", "),
                       classes.size() > shown ? " …" : "");
  }
  const std::string& column = output.settings().text("column");
  if (output.from() || column.empty()) return output.kind().doc;
  const data::ColumnKind kind = samples.columns()[samples.column(column)].kind;
  if (kind != data::ColumnKind::integer && kind != data::ColumnKind::real) return output.kind().doc;
  double low = INFINITY, high = -INFINITY;
  int64_t missing = 0;
  for (int64_t i = 0; i < samples.count(); ++i) {
    const data::Value value = samples.read(i, samples.column(column));
    const auto* whole = std::get_if<int64_t>(&value);
    const auto* real = std::get_if<double>(&value);
    const double number = whole ? static_cast<double>(*whole) : real ? *real : NAN;
    if (!std::isfinite(number)) {
      ++missing;
      continue;
    }
    low = std::min(low, number);
    high = std::max(high, number);
  }
  return fmt::format("numbers from {:.6g} to {:.6g}{}", low, high,
                     missing > 0 ? fmt::format(", {} are missing", missing) : "");
}

/// Comments are of one line: names may have any characters.
std::string comment(const std::string& text) {
  std::string line = "# ";
  for (const char c : text) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return line + "\n";
}

struct Draft {
  DraftPaths paths;
  std::shared_ptr<const data::Dataset> all, some;
  std::string why;  // the target is the target

  std::string data() const;
  std::string input(const Recipe& recipe, const std::vector<std::string>& taken) const;
  std::string output(const Section& section, const std::string& targets) const;
  std::string training(const Task& task) const;
};

std::string Draft::data() const {
  std::string text = "[data]\n" + fmt::format("train = {}\n", toml_text(paths.train));
  if (!paths.test.empty()) return text + fmt::format("test  = {}\n", toml_text(paths.test));
  bool tests = all->count() == 1, training = tests;  // one text is cut
  for (int64_t i = 0; i < all->count() && !(tests && training); ++i)
    (data::kept_for_test(i, draft_share) ? tests : training) = true;
  if (!tests || !training)
    return text + comment("too few samples to keep some of them to test on: give test = ...");
  return text +
         fmt::format("test_share = {}  # no test set lies beside it: one in ten samples is kept for that\n",
                     draft_share);
}

std::string Draft::input(const Recipe& recipe, const std::vector<std::string>& taken) const {
  const InputKind& kind = input_kinds().at(recipe.inputs[0].kind);
  std::string text = fmt::format("\n[input]\nkind = {}\n", toml_text(kind.name));
  if (!kind.draft) return text;
  std::string lines = kind.draft(*some, kind.recognise(*some, taken));
  if (!lines.empty() && lines.back() != '\n') lines += '\n';
  return text + lines;
}

std::string Draft::output(const Section& section, const std::string& targets) const {
  std::string text = "\n[output]\n";
  if (!targets.empty()) text += comment(targets);
  text += fmt::format("kind = {}\n", toml_text(section.kind));
  if (const std::string& column = section.settings.text("column"); !column.empty())
    text += fmt::format("column = {}{}\n", toml_text(column), why.empty() ? "" : "  # " + why);
  return text;
}

std::string Draft::training(const Task& task) const {
  const Input& input = *task.inputs[0];
  std::string text = "\n[model]\n";
  std::vector<std::string> others = input.architectures();
  std::erase(others, task.recipe.model.kind);
  if (!others.empty()) text += comment(fmt::format("others that go with it: {}", fmt::join(others, ", ")));
  text += fmt::format("kind = {}\n\n[train]\n", toml_text(task.recipe.model.kind));
  if (input.cuts()) {
    text += "steps = 2000\nbatch = 32\nclip_norm = 1\n";
  } else {
    // About fifty steps an epoch or more, and some thousand in all.
    int64_t batch = 8;
    while (batch < 256 && batch * 100 <= all->count()) batch *= 2;
    const int64_t steps = std::max<int64_t>(1, all->count() / batch);
    text += fmt::format("epochs = {}\nbatch = {}\n", std::clamp<int64_t>(3000 / steps, 3, 40), batch);
  }
  text += "optimizer = { kind = \"adamw\", lr = 1e-3, weight_decay = 0.01 }\n";
  return text + "schedule = { kind = \"cosine\", warmup = 0.2 }\n";
}

}  // namespace

std::string draft_recipe(const std::string& path) {
  Draft draft{draft_paths(path), nullptr, nullptr, ""};
  draft.all = open_set(draft.paths.train);
  if (draft.all->count() == 0) fail<InputError>("{}: there are no samples", path);
  draft.some = data::sample_of(draft.all, draft_samples);

  Recipe recipe;
  draft.why = recognise_target(recipe, *draft.some);
  const std::vector<std::string> taken = taken_columns(recipe);
  settle_inputs(recipe, *draft.some, taken);
  const std::string head = comment(fmt::format("{}: {} {}", draft.paths.train, draft.all->count(),
                                               input_kinds().at(recipe.inputs[0].kind).unit)) +
                           draft.data() + draft.input(recipe, taken);
  // What suits the model is known when it is learnt from the samples, by the recipe so far.
  const Recipe so_far = parse_recipe(head + draft.output(recipe.outputs[0], ""), "the draft");
  const Task task = learn_task({so_far, draft.some});
  const std::string text = head +
                           draft.output(recipe.outputs[0], targets_text(*task.outputs[0], *draft.some)) +
                           draft.training(task);
  check_recipe(parse_recipe(text, "the draft"), "the draft");
  return text;
}

}  // namespace millrace::task
