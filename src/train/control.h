// Changing a training while it runs: `millrace ctl` writes requests into the run folder, the trainer takes
// them between steps and notes them in the run's journal, which a resume replays.
//
// RUN/control/0001.json: a request, {"train.lr_scale": 0.5}; a trainer takes it by renaming it to 0001.taken
//
// RUN/control/0001.answer: {"step": 120} or {"error": "…"}; ctl removes it
//
// RUN/control.jsonl: the journal, {"step", "key", "value", "time"} a line, in the order applied
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "task/recipe.h"
#include "train/run_folder.h"

namespace millrace::train {

/// A key of the recipe and its new value: a number, or what an override writes behind the "=".
struct Change {
  std::string key;
  std::variant<double, std::string> value = 0.0;
  bool operator==(const Change&) const = default;
  /// As an override has it: whole numbers without a point.
  std::string value_text() const;
  /// "train.epochs = 20", and "" for a text that is empty.
  std::string spoken() const;
};

/// A change as the journal has it: made after `step` steps, so that step + 1 is the first with it.
struct Applied {
  int64_t step = 0;
  Change change;
  std::string time;  // UTC, as "2026-01-31T12:00:00Z"
};

/// The keys that can change while training runs.
std::span<const std::string> control_keys();

/// "train.lr_scale=0.5" …; InputError as for a recipe's keys, for one that cannot change, and for one given
/// twice.
std::vector<Change> parse_changes(std::span<const std::string> texts);
/// What a run that goes on is told, as changes after its last step: of keys that declare it (RecipeKey::
/// resumable), without those that say what holds already. `now`: the recipe with the changes of the journal.
/// InputError for any other override that would change something, with the reason.
std::vector<Change> resume_changes(const RunFolder& run, const task::Recipe& now,
                                   std::span<const std::string> overrides);
/// Puts values into a recipe; InputError when one is not as its key wants it.
void apply_changes(task::Recipe& recipe, std::span<const Change> changes);

/// The journal of a run, in the order of steps; empty when there is none. A line cut off by a kill is left
/// out. InputError names a line that is no entry.
std::vector<Applied> read_journal(const std::filesystem::path& path);
/// The same of its text; `name` stands for the file in messages.
std::vector<Applied> parse_journal(std::string_view text, const std::string& name);
/// A request's text; InputError when it is none.
std::vector<Change> parse_request(std::string_view text);

/// The trainer's side.
class Control {
 public:
  /// Applies changes after a number of steps; throws Error when they cannot be.
  using Apply = std::function<void(int64_t step, std::span<const Change> changes)>;

  /// Reads the journal, and removes requests whose sender no longer waits.
  explicit Control(const RunFolder& run);
  /// What the journal has for up to `step` steps and was not replayed yet.
  void replay(int64_t step, const Apply& apply);
  /// Takes the requests that are there, looking at most every 0.2 s; the changes applied. A request is
  /// applied whole or, when `apply` throws an Error, refused. IoError when the journal cannot be written.
  std::vector<Change> take(int64_t step, const Apply& apply);
  /// Writes changes that were made after `step` steps into the journal. IoError.
  void note(int64_t step, std::span<const Change> changes);

 private:
  std::optional<std::vector<Change>> serve(const std::filesystem::path& request, int64_t step,
                                           const Apply& apply);
  std::filesystem::path folder_, journal_;
  std::vector<Applied> entries_;
  size_t replayed_ = 0;
  std::chrono::steady_clock::time_point next_look_;
};

/// The other side: asks the training that runs in a folder for changes and waits for its answer; the step
/// after which it made them. InputError when no training runs there or it refuses (with its reason); IoError
/// when it has not taken the request in `seconds`, which is then withdrawn.
int64_t request_changes(const RunFolder& run, std::span<const Change> changes, double seconds);

}  // namespace millrace::train
