#include "train/control.h"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <unistd.h>

#include "base/contains.h"
#include "base/file.h"
#include "base/format.h"
#include "base/utc_time.h"
#include "base/words.h"
#include "task/recipe_paths.h"
#include "track/metrics_log.h"

namespace millrace::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// "ads" of "data.weights.ads"; "" of other keys.
std::string source_of(const std::string& name) {
  constexpr std::string_view table = "data.weights.";
  return name.starts_with(table) ? name.substr(table.size()) : "";
}

/// A run that goes on may be told more than one that runs.
std::string resumable_keys() {
  std::string keys;
  for (const task::RecipeKey& each : task::recipe_keys())
    if (each.resumable) keys += (keys.empty() ? "" : ", ") + each.name;
  return keys;
}

const task::RecipeKey& resumable_key(const std::string& name) {
  const task::RecipeKey* const key = task::find_key(name);
  if (!key || !key->resumable)
    fail<InputError>("{} cannot change in a run; what can: {}", name, resumable_keys());
  return *key;
}

void require_changeable(const std::string& name) {
  const auto keys = control_keys();
  if (contains(keys, name) || !source_of(name).empty()) return;
  fail<InputError>("{} cannot change while training runs; what can: {}", name, fmt::join(keys, ", "));
}

std::string key_of(std::string_view text) { return std::string(trimmed(text.substr(0, text.find('=')))); }

/// What a change of a recipe's key, as an override has it, sets: a number where the key is one.
Change change_of(const std::string& text) {
  task::Recipe recipe = task::parse_recipe("", "", std::span(&text, 1));
  const std::string name = key_of(text);
  if (const std::string source = source_of(name); !source.empty())
    return {name, recipe.data.weights.at(source)};
  if (const task::RecipeKey* const key = task::find_key(name)) {
    const task::RecipeSlot slot = key->slot(recipe);
    if (auto* const* whole = std::get_if<int64_t*>(&slot)) return {name, static_cast<double>(**whole)};
    if (auto* const* real = std::get_if<double*>(&slot)) return {name, **real};
  }
  return {name, std::string(trimmed(std::string_view(text).substr(text.find('=') + 1)))};
}

}  // namespace

std::string Change::value_text() const {
  return std::visit([](const auto& each) { return fmt::format("{}", each); }, value);
}

std::string Change::spoken() const {
  const std::string text = value_text();
  return fmt::format("{} = {}", key, text.empty() ? "\"\"" : text);
}

std::vector<Change> parse_request(std::string_view text) {
  const json request = json::parse(text, nullptr, false);
  if (!request.is_object() || request.empty()) fail<InputError>("not a request of millrace ctl");
  std::vector<Change> changes;
  for (const auto& [key, value] : request.items()) {
    require_changeable(key);
    if (!value.is_number()) fail<InputError>("{} must be a number", key);
    changes.push_back({key, value.get<double>()});
  }
  return changes;
}

std::span<const std::string> control_keys() {
  static const std::vector<std::string> keys = {"train.lr_scale",
                                                "train.steps",
                                                "train.epochs",
                                                "train.checkpoint_steps",
                                                "train.checkpoint_minutes",
                                                "train.keep_checkpoints",
                                                "data.most_bad",
                                                "data.weights.NAME"};
  return keys;
}

std::vector<Change> parse_changes(std::span<const std::string> texts) {
  std::vector<Change> changes;
  for (const std::string& text : texts) {
    Change change = change_of(text);
    require_changeable(change.key);
    for (const Change& other : changes)
      if (other.key == change.key) fail<InputError>("{} is given twice", change.key);
    changes.push_back(std::move(change));
  }
  return changes;
}

std::vector<Change> resume_changes(const RunFolder& run, const task::Recipe& now,
                                   std::span<const std::string> overrides) {
  const task::Recipe begun = task::load_recipe(run.recipe());
  std::vector<Change> changes;
  task::Recipe changed = now;
  for (const std::string& text : overrides) {
    const task::Recipe with = task::load_recipe(run.recipe(), {&text, 1});
    const std::string name = key_of(text);
    if (const task::RecipeKey* const key = task::find_key(name); !key || !key->resumable) {
      if (task::same_but_for_paths(with, begun)) continue;
      fail<InputError>(
          "'{}': --resume goes on with the run's own recipe, and what was trained so far depends on {} "
          "(begin a new run for another); what can be changed: {}",
          text, name, resumable_keys());
    }
    Change change = change_of(text);
    const std::string before = task::recipe_toml(changed);
    apply_changes(changed, {&change, 1});
    if (task::recipe_toml(changed) != before) changes.push_back(std::move(change));
  }
  return changes;
}

void apply_changes(task::Recipe& recipe, std::span<const Change> changes) {
  for (const Change& change : changes) {
    const task::RecipeKey& key = resumable_key(change.key);
    const std::string text = change.key + "=" + change.value_text();
    task::Recipe typed = task::parse_recipe("", "", std::span(&text, 1));
    if (const std::string source = source_of(change.key); !source.empty()) {
      recipe.data.weights[source] = typed.data.weights.at(source);
      continue;
    }
    std::visit([&](auto* to) { *to = *std::get<decltype(to)>(key.slot(typed)); }, key.slot(recipe));
    if (change.key == "train.epochs") recipe.train.steps = 0;  // the newer of the two counts
  }
}

std::vector<Applied> read_journal(const fs::path& path) {
  if (!fs::exists(path)) return {};
  return parse_journal(read_text(path), path.string());
}

std::vector<Applied> parse_journal(std::string_view text, const std::string& name) {
  std::vector<Applied> entries;
  int line = 0;
  for (const std::string& written : lines_in(text, true)) {
    ++line;
    try {
      const json entry = json::parse(written);
      if (const json& step = entry.at("step"); !step.is_number_integer() || step.get<int64_t>() < 0)
        fail<InputError>("a step is a whole number from 0 on");
      const json& value = entry.at("value");
      Change change{entry.at("key").get<std::string>()};
      if (value.is_string())
        change.value = value.get<std::string>();
      else
        change.value = value.get<double>();
      entries.push_back(
          {entry.at("step").get<int64_t>(), std::move(change), entry.at("time").get<std::string>()});
      (void)resumable_key(entries.back().change.key);
    } catch (const json::exception&) {
      fail<InputError>("{}:{}: not an entry of the journal ({{\"step\", \"key\", \"value\", \"time\"}})",
                       name, line);
    } catch (const InputError& error) {
      fail<InputError>("{}:{}: {}", name, line, error.what());
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Applied& a, const Applied& b) { return a.step < b.step; });
  return entries;
}

Control::Control(const RunFolder& run)
    : folder_(run.requests()), journal_(run.journal()), entries_(read_journal(run.journal())) {
  // Whoever made these was told that no training took them.
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) fs::remove(entry.path(), ignored);
  if (!fs::exists(journal_)) return;
  // What a kill left of a line must not become a part of the next one.
  const std::string text = read_text(journal_);
  if (!text.empty() && text.back() != '\n') write_file(journal_, text.substr(0, text.rfind('\n') + 1));
}

void Control::replay(int64_t step, const Apply& apply) {
  while (replayed_ < entries_.size() && entries_[replayed_].step <= step) {
    // Of one step together, as they were checked together.
    const int64_t at = entries_[replayed_].step;
    std::vector<Change> changes;
    for (; replayed_ < entries_.size() && entries_[replayed_].step == at; ++replayed_)
      changes.push_back(entries_[replayed_].change);
    apply(at, changes);
  }
}

void Control::note(int64_t step, std::span<const Change> changes) {
  using Value = track::Fields::value_type::second_type;
  const std::string time = utc_time();
  std::string lines;
  for (const Change& change : changes) {
    const Value value = std::visit([](const auto& each) { return Value(each); }, change.value);
    lines += track::json_line({{"step", step}, {"key", change.key}, {"value", value}, {"time", time}}) + "\n";
  }
  // On the disk before the first step that follows it, and all or none: they were asked for together.
  append_lines(journal_, lines, "write the journal");
}

std::optional<std::vector<Change>> Control::serve(const fs::path& request, int64_t step, const Apply& apply) {
  // ctl withdraws a request by removing it: only one of the two can have it.
  fs::path taken = request, answer = request;
  taken.replace_extension(".taken");
  answer.replace_extension(".answer");
  std::error_code error;
  fs::rename(request, taken, error);
  if (error) return std::nullopt;
  std::optional<std::vector<Change>> changes;
  json reply;
  try {
    changes = parse_request(read_text(taken));
    apply(step, *changes);
    reply["step"] = step;
  } catch (const Error& refusal) {
    changes.reset();
    reply["error"] = refusal.what();
  }
  if (changes) note(step, *changes);
  fs::remove(taken, error);
  write_file(answer, reply.dump(-1, ' ', false, json::error_handler_t::replace));
  return changes;
}

std::vector<Change> Control::take(int64_t step, const Apply& apply) {
  std::vector<Change> all;
  const auto now = Clock::now();
  if (now < next_look_) return all;
  next_look_ = now + std::chrono::milliseconds(200);
  std::error_code error;
  std::set<fs::path> requests;
  for (const auto& entry : fs::directory_iterator(folder_, error))
    if (entry.path().extension() == ".json") requests.insert(entry.path());
  for (const fs::path& request : requests)
    if (const auto changes = serve(request, step, apply))
      all.insert(all.end(), changes->begin(), changes->end());
  return all;
}

namespace {

/// Stores a request under a number of its own.
fs::path place_request(const fs::path& folder, const std::string& text) {
  const fs::path draft = folder / fmt::format("draft-{}", ::getpid());
  write_file(draft, text);
  for (int number = 1; number < 10000; ++number) {
    fs::path path = folder / fmt::format("{:04}.json", number);
    fs::path taken = path, answer = path;
    taken.replace_extension(".taken");
    answer.replace_extension(".answer");
    if (fs::exists(taken) || fs::exists(answer)) continue;
    // A link, unlike a rename, replaces nothing.
    if (::link(draft.c_str(), path.c_str()) == 0) {
      fs::remove(draft);
      return path;
    }
    if (errno != EEXIST) {
      const int error = errno;
      fs::remove(draft);
      fail_writing(path, "place the request", error);
    }
  }
  fs::remove(draft);
  fail<IoError>("{} is full of requests that no training takes: remove them", folder.string());
}

}  // namespace

int64_t request_changes(const RunFolder& run, std::span<const Change> changes, double seconds) {
  const auto require_training = [&] {
    if (!run.in_use())
      fail<InputError>("no training runs in {0}: millrace train {0} --resume goes on with it",
                       run.path().string());
  };
  require_training();
  json request;
  for (const Change& change : changes) request[change.key] = std::get<double>(change.value);
  const fs::path path = place_request(run.requests(), request.dump());
  fs::path answer = path;
  answer.replace_extension(".answer");
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int round = 0; !fs::exists(answer); ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const bool over = Clock::now() >= end;
    if (!over && (round % 25 != 0 || run.in_use())) continue;
    std::error_code ignored;
    if (!fs::remove(path, ignored)) {
      // Taken in this moment: the answer comes, unless the training ends.
      if (run.in_use() || fs::exists(answer)) continue;
      require_training();
    }
    if (!over) require_training();
    fail<IoError>(
        "{}: the training has not taken the request in {} s (it takes requests between steps, not while it "
        "reads, compiles or evaluates); it is withdrawn: try again, or wait longer with --wait",
        run.path().string(), seconds);
  }
  const json reply = json::parse(read_text(answer), nullptr, false);
  std::error_code ignored;
  fs::remove(answer, ignored);
  if (!reply.is_object()) fail<IoError>("{}: not an answer of a training", answer.string());
  if (reply.contains("error") && reply["error"].is_string())
    fail<InputError>("{}: {}", run.path().string(), reply["error"].get<std::string>());
  if (!reply.contains("step") || !reply["step"].is_number_integer())
    fail<IoError>("{}: not an answer of a training", answer.string());
  return reply["step"].get<int64_t>();
}

}  // namespace millrace::train
