#include "task/draft.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "base/format.h"
#include "base/utf8.h"
#include "data/formats/content.h"
#include "data/io/location.h"
#include "data/table/elements.h"
#include "data/table/group.h"
#include "data/table/labels.h"
#include "data/table/query.h"
#include "data/table/read_columns.h"
#include "data/table/select.h"
#include "data/table/split.h"
#include "task/draft_target.h"
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
constexpr int64_t usual_length = 256, usual_batch = 32;  // of rows of a corpus
constexpr int64_t few_rows = 5000;                       // of a table
constexpr int64_t few_texts = 50'000;
constexpr int64_t least_length = 16;  // in shorter texts nothing is kept to test on

struct DraftPaths {
  std::string train, test;  // "" where there is none beside it
};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The only file of a folder that is called train, whatever its ending; else the path itself.
std::string train_in(const std::string& path) {
  std::string found;
  std::error_code none;
  for (fs::directory_iterator at(path, none), end; !none && at != end; at.increment(none)) {
    const std::string name = at->path().filename().string();
    if (name.substr(0, name.find('.')) != "train" || name.ends_with(".mrx") || !at->is_regular_file(none))
      continue;
    if (!found.empty()) return path;
    found = at->path().string();
  }
  return found.empty() ? path : found;
}

/// The names by which test sets go beside "train": of folders, of files, of MNIST.
DraftPaths draft_paths(const std::string& path) {
  static constexpr const char* tests[] = {"test", "val", "valid", "validation", "dev", "t10k"};
  const fs::path whole(path);
  if (is_there(whole / "train"))
    for (const char* test : tests)
      if (is_there(whole / test)) return {(whole / "train").string(), (whole / test).string()};
  if (const std::string train = train_in(path); train != path)
    if (DraftPaths paths = draft_paths(train); !paths.test.empty()) return paths;
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

/// Files that hold samples, or nothing that is known, rather than being samples.
void refuse_folder_of_sets(const data::Dataset& samples) {
  const bool contents =
      std::any_of(samples.columns().begin(), samples.columns().end(), [](const auto& column) {
        return column.kind != data::ColumnKind::bytes && column.name != "__key__" && column.name != "label";
      });
  if (!contents)
    fail<InputError>(
        "{}: its files are no samples: neither pictures nor sounds nor texts, such as {}; give one that is a "
        "data set by itself",
        samples.path(), samples.name(0));
}

/// A table of the names of files: it is their folder that is the data, and goes with it.
void refuse_names_of_files(const std::string& path, const data::Dataset& table) {
  constexpr int64_t looked_at = 5;
  const fs::path folder = fs::path(path).parent_path();
  std::error_code none;
  if (data::is_elsewhere(path) || !fs::is_regular_file(path, none)) return;
  std::vector<fs::path> beside = {folder};
  for (fs::directory_iterator at(folder.empty() ? "." : folder, none), end; !none && at != end;
       at.increment(none))
    if (std::error_code lost; at->is_directory(lost)) beside.push_back(at->path());
  const auto names_file = [&](const data::Value& value) {
    const auto* const text = std::get_if<std::string>(&value);
    return text && !text->empty() && std::any_of(beside.begin(), beside.end(), [&](const fs::path& in) {
             const data::ColumnKind kind = data::file_kind((in / *text).string());
             return kind == data::ColumnKind::picture || kind == data::ColumnKind::audio;
           });
  };
  const int64_t rows = std::min(table.count(), looked_at);
  for (size_t c = 0; c < table.columns().size(); ++c) {
    if (table.columns()[c].kind != data::ColumnKind::text) continue;
    int64_t named = 0;
    while (named < rows && names_file(table.read(named, c))) ++named;
    if (named == rows)
      fail<InputError>(
          "{}: its column '{}' names files that lie there: give their folder, {}, which the table goes with",
          path, table.columns()[c].name, folder.empty() ? "." : folder.string());
  }
}

/// What an output's targets are: "3 classes: cat, dog, bird", "numbers from 1.5 to 90".
std::string targets_text(const Output& output, const data::Dataset& samples) {
  const std::vector<std::string> classes = output.classes();
  if (!classes.empty()) {
    constexpr size_t shown = 10;
    const auto some = std::span(classes).first(std::min(classes.size(), shown));
    return fmt::format("{} {}: {}{}", classes.size(), classes.size() > 1 ? "classes" : "class",
                       fmt::join(some, ", "), classes.size() > shown ? " …" : "");
  }
  const std::string& column = output.settings().text("column");
  if (output.from() || column.empty()) return output.kind().doc;
  if (!data::is_numeric(samples.columns()[samples.column(column)].kind)) return output.kind().doc;
  double low = INFINITY, high = -INFINITY;
  int64_t missing = 0;
  for (int64_t i = 0; i < samples.count(); ++i) {
    const double number = data::number_value(samples.read(i, samples.column(column))).value_or(NAN);
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
  std::string why;                // the target is the target
  SectionKeys keys;               // of the output, which the classes ask for
  std::string no_tests;           // why those beside it cannot be used
  std::string where, untold;      // those that have a target; how many have none
  int64_t trained = 0;            // samples, without those that are kept to test on
  int64_t length = 0, batch = 0;  // of rows of a corpus

  std::string data(const Task& task);
  std::string input(const Recipe& recipe, const std::vector<std::string>& taken) const;
  std::string output(const Section& section, const std::string& targets) const;
  std::string training(const Task& task) const;

  void leave_out_untold(const Section& output);
  Task learn(const Section& section, const std::string& input) const;
  void look_at_tests(const Task& task);
  void cut_corpus(const Task& task);
};

/// Samples without a target teach nothing, and stop a training.
void Draft::leave_out_untold(const Section& output) {
  const std::string& column = output.settings.find("column") ? output.settings.text("column") : "";
  if (column.empty()) return;
  const size_t place = some->column(column);
  if (!data::is_tabular(some->columns()[place].kind)) return;
  const auto values = data::read_columns(*some, 0, some->count(), {&place, 1});
  bool missing = false;
  for (size_t i = 0; i < values[0].size() && !missing; ++i)
    missing =
        !values[0].has(i) || (values[0].kind == data::ColumnKind::real && std::isnan(values[0].reals[i]));
  if (!missing) return;
  where = data::has_a_value(column);
  const int64_t before = all->count();
  all = data::where(all, where);
  if (all->count() == 0) fail<InputError>("{}: no sample has a value in '{}'", paths.train, column);
  untold = fmt::format("{} of {} have no {}", before - all->count(), before, column);
  some = data::sample_of(all, draft_samples);
}

std::string Draft::data(const Task& task) {
  std::string text = "[data]\n" + fmt::format("train = {}\n", toml_text(paths.train));
  if (const std::string& group = task.recipe.data.group; !group.empty())
    text += fmt::format("group = {}  # rows of one {} are one sample\n", toml_text(group), group);
  if (!where.empty()) text += comment(untold) + fmt::format("where = {}\n", toml_text(where));
  trained = all->count();
  if (!paths.test.empty() && no_tests.empty())
    return text + fmt::format("test  = {}\n", toml_text(paths.test));
  if (!no_tests.empty()) text += comment(fmt::format("not to test on: {}", no_tests));
  if (!task.inputs[0]->cuts()) {
    trained = 0;
    for (int64_t i = 0; i < all->count(); ++i) trained += !data::kept_for_test(i, draft_share);
    if (trained == all->count() || 2 * trained < all->count()) {
      trained = all->count();
      return text + comment("too few samples to keep some of them to test on: give test = ...");
    }
  } else if (length < least_length) {
    return text + comment("too little text to keep some of it to test on: give test = ...");
  }
  return text + fmt::format("test_share = {}  # {}one in ten samples is kept for that\n", draft_share,
                            no_tests.empty() ? "no test set lies beside it: " : "");
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
  for (const Setting& setting : section.settings.declared())
    if (setting.name != "column" && section.settings.given(setting.name))
      text += fmt::format("{} = {}\n", setting.name, toml_text(section.settings.value(setting.name)));
  for (const auto& [key, value] : keys) text += fmt::format("{} = {}\n", key, toml_text(value));
  return text;
}

std::string Draft::training(const Task& task) const {
  const Input& input = *task.inputs[0];
  std::string text = "\n[model]\n";
  std::vector<std::string> others = input.architectures();
  const bool bag = task.recipe.model.kind == "encoder" && trained <= few_texts;
  const std::string kind = bag ? "bag" : task.recipe.model.kind;
  std::erase(others, kind);
  if (!others.empty()) text += comment(fmt::format("others that go with it: {}", fmt::join(others, ", ")));
  text += fmt::format("kind = {}\n", toml_text(kind));
  if (bag)
    text += "width = 16\nngrams = 5  # which runs of up to five bytes there are: of few texts hard to beat\n";
  if (trained <= few_rows && input.gives() == "table" && task.recipe.model.settings.find("dropout"))
    text += "dropout = 0.3  # of few rows a network learns noise by heart\n";
  text += "\n[train]\n";
  if (input.cuts()) {
    text += fmt::format("steps = 2000\nbatch = {}\nclip_norm = 1\n", batch);
  } else {
    // About fifty steps an epoch or more, and some thousand in all, or hundred.
    int64_t samples = std::min<int64_t>(8, trained);
    while (samples >= 8 && samples < 256 && samples * 100 <= trained) samples *= 2;
    const int64_t steps = std::max<int64_t>(1, trained / samples);
    text += fmt::format("epochs = {}\nbatch = {}\n", std::clamp<int64_t>((bag ? 800 : 3000) / steps, 3, 40),
                        samples);
  }
  text += bag ? "optimizer = { kind = \"lazy-adam\", lr = 1e-2 }\n"
              : "optimizer = { kind = \"adamw\", lr = 1e-3, weight_decay = 0.01 }\n";
  return text + "schedule = { kind = \"cosine\", warmup = 0.2 }\n";
}

/// A draft for data at `path` as a recipe. InputError where names are none that a recipe can have.
Recipe parse_draft(const std::string& text, const std::string& path) {
  if (!is_utf8(path))
    fail<InputError>("{}: its name is not UTF-8, as what stands in a recipe has to be: rename it",
                     stored_text(path));
  if (!is_utf8(text))
    fail<InputError>(
        "{}: a name in it is not UTF-8, as a recipe has to be; convert it first (iconv -f latin1 -t utf-8)",
        path);
  return parse_recipe(text, "the draft");
}

/// What suits the model is known when it is learnt from the samples, by the recipe so far.
Task Draft::learn(const Section& section, const std::string& input) const {
  const Recipe recipe = parse_draft(
      fmt::format("[data]\ntrain = {}\n", toml_text(paths.train)) + input + output(section, ""), paths.train);
  return learn_task({recipe, some});
}

/// Finds out which keys the classes ask for, and whether the test set has all that the model needs.
void Draft::look_at_tests(const Task& task) {
  const OutputKind& kind = task.outputs[0]->kind();
  const std::vector<std::string> classes = task.outputs[0]->classes();
  const bool asks = kind.draft && !classes.empty();
  if (asks) keys = kind.draft(classes, {});
  if (paths.test.empty()) return;
  Recipe recipe = task.recipe;
  recipe.data.test = paths.test;
  try {
    const auto tests = data::sample_of(
        open_test_source(recipe, false, "", {task.inputs[0]->text_columns(), task.inputs[0]->columns()}),
        draft_samples);
    (void)task.inputs[0]->part({recipe, data::sample_of(tests, 100)}, Purpose::evaluation);
    if (task.outputs[0]->from()) return;
    if (asks)
      keys = kind.draft(classes, kind.learn(recipe.outputs[0], {recipe, tests}, task.inputs)->classes());
    for (const auto& [key, value] : keys) recipe.outputs[0].set(key, value);
    const auto output = kind.learn(recipe.outputs[0], {recipe, some}, task.inputs);
    (void)output->part({recipe, tests});
  } catch (const InputError& error) {
    no_tests = error.what();
  }
}

/// A corpus of few tokens has short rows, and few in a batch.
void Draft::cut_corpus(const Task& task) {
  if (!task.inputs[0]->cuts()) return;
  const size_t column = some->column(task.inputs[0]->settings().text("column"));
  int64_t tokens = 0;  // as many as bytes; with a tokenizer fewer, which is the user's choice
  for (int64_t i = 0; i < some->count() && tokens < 4 * usual_length * usual_batch; ++i)
    if (some->has(i, column))
      tokens += static_cast<int64_t>(std::get<std::string>(some->read(i, column)).size());
  for (length = usual_length, batch = usual_batch; 2 * length * batch > tokens && length > 1;)
    (length >= 8 * batch ? length : batch) /= 2;
}

}  // namespace

std::string draft_recipe(const std::string& path, const std::string& test) {
  Draft draft;
  draft.paths = test.empty() ? draft_paths(path) : DraftPaths{path, test};
  draft.all = data::spread_arrays(open_set(draft.paths.train));
  if (draft.all->count() == 0) fail<InputError>("{}: there are no samples", path);
  refuse_folder_of_sets(*draft.all);
  refuse_names_of_files(draft.paths.train, *draft.all);
  draft.some = data::sample_of(draft.all, draft_samples);

  Recipe recipe;
  draft.why = recognise_target(recipe, *draft.some);
  if (recipe.data.group = group_of(recipe, *draft.all); !recipe.data.group.empty()) {
    draft.all = data::grouped(draft.all, recipe.data.group);
    draft.some = data::sample_of(draft.all, draft_samples);
  }
  draft.leave_out_untold(recipe.outputs[0]);
  const std::vector<std::string> taken = taken_columns(recipe);
  settle_inputs(recipe, *draft.some, taken);
  const Section& section = recipe.outputs[0];
  std::string input = draft.input(recipe, taken);
  Task task = draft.learn(section, input);
  draft.look_at_tests(task);
  if (!test.empty() && !draft.no_tests.empty()) throw InputError(draft.no_tests);
  draft.cut_corpus(task);
  const bool shorter = draft.length > 0 && draft.length < usual_length;
  if (shorter) input += fmt::format("length = {}\n", draft.length);
  if (shorter || !draft.keys.empty()) task = draft.learn(section, input);
  const std::string data = draft.data(task);  // says how many samples are trained on
  const std::string text = comment(fmt::format("{}: {} {}", draft.paths.train, draft.all->count(),
                                               input_kinds().at(recipe.inputs[0].kind).unit)) +
                           data + input + draft.output(section, targets_text(*task.outputs[0], *draft.some)) +
                           draft.training(task);
  check_recipe(parse_draft(text, draft.paths.train), "the draft");
  return text;
}

}  // namespace millrace::task
