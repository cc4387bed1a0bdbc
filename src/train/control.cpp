#include "train/control.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
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

/// A number as the recipe's parser takes it: whole ones without a point.
std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{}", value);
}

std::variant<int64_t, double, std::string> json_value(const Change& change) {
  if (const auto* const text = std::get_if<std::string>(&change.value)) return *text;
  const double value = std::get<double>(change.value);
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  return value;
}

const task::RecipeKey& key_named(const std::string& name) {
  if (const task::RecipeKey* key = task::find_key(name)) return *key;
  fail<InternalError>("there is no key {}", name);
}

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

void require_resumable(const std::string& name) {
  const task::RecipeKey* const key = task::find_key(name);
  if (!key || !key->resumable)
    fail<InputError>("{} cannot change in a run; what can: {}", name, resumable_keys());
}

void require_changeable(const std::string& name) {
  const auto keys = control_keys();
  if (contains(keys, name) || !source_of(name).empty()) return;
  fail<InputError>("{} cannot change while training runs; what can: {}", name, fmt::join(keys, ", "));
}

}  // namespace

std::string Change::value_text() const {
  const auto* const text = std::get_if<std::string>(&value);
  return text ? *text : number_text(std::get<double>(value));
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
    task::Recipe recipe = task::parse_recipe("", "", std::span(&text, 1));
    const std::string name = text.substr(0, text.find('='));
    require_changeable(name);
    for (const Change& other : changes)
      if (other.key == name) fail<InputError>("{} is given twice", name);
    const task::RecipeSlot slot = key_named(name).slot(recipe);
    const auto* const whole = std::get_if<int64_t*>(&slot);
    const std::string source = source_of(name);
    changes.push_back({name, !source.empty() ? recipe.data.weights.at(source)
                             : whole         ? static_cast<double>(**whole)
                                             : *std::get<double*>(slot)});
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
    const std::string name(trimmed(std::string_view(text).substr(0, text.find('='))));
    const task::RecipeKey* const key = task::find_key(name);
    if (!key || !key->resumable) {
      if (task::same_but_for_paths(with, begun)) continue;
      fail<InputError>(
          "'{}': --resume goes on with the run's own recipe, and what was trained so far depends on {} "
          "(begin a new run for another); what can be changed: {}",
          text, name, resumable_keys());
    }
    Change change{name, std::string(trimmed(std::string_view(text).substr(text.find('=') + 1)))};
    task::Recipe typed = task::parse_recipe("", "", std::span(&text, 1));
    const task::RecipeSlot slot = key->slot(typed);
    const std::string source = source_of(name);
    if (auto* const* whole = std::get_if<int64_t*>(&slot)) change.value = static_cast<double>(**whole);
    if (auto* const* real = std::get_if<double*>(&slot)) change.value = **real;
    if (!source.empty()) change.value = typed.data.weights.at(source);
    const std::string before = task::recipe_toml(changed);
    apply_changes(changed, {&change, 1});
    if (task::recipe_toml(changed) != before) changes.push_back(std::move(change));
  }
  return changes;
}

void apply_changes(task::Recipe& recipe, std::span<const Change> changes) {
  for (const Change& change : changes) {
    require_resumable(change.key);
    const std::string text = change.key + "=" + change.value_text();
    task::Recipe typed = task::parse_recipe("", "", std::span(&text, 1));
    if (const std::string source = source_of(change.key); !source.empty()) {
      recipe.data.weights[source] = typed.data.weights.at(source);
      continue;
    }
    const task::RecipeKey& key = key_named(change.key);
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
      require_resumable(entries.back().change.key);
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
  const std::string time = utc_time();
  std::string lines;
  for (const Change& change : changes)
    lines += track::json_line(
                 {{"step", step}, {"key", change.key}, {"value", json_value(change)}, {"time", time}}) +
             "\n";
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
