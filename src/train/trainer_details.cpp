// What a training logs beside losses and metrics: norms of the model's parts, how fast it goes, what it takes
// of the machine, histograms, and samples of predictions.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/process_use.h"
#include "base/seconds_since.h"
#include "base/utc_time.h"
#include "base/utf8.h"
#include "optim/model_scope.h"
#include "task/model.h"
#include "task/rows.h"
#include "track/recorder.h"
#include "train/model_parts.h"
#include "train/trainer_state.h"

namespace millrace::train {
namespace {

/// A cell of a table in Markdown, which shows the text as it is.
std::string cell_text(std::string text) {
  constexpr size_t most = 500;
  if (text.size() > most) {
    size_t end = most;
    while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
    text = text.substr(0, end) + "…";
  }
  std::string cell;
  for (const char c : printable(stored_text(text))) {
    if (c == '<')
      cell += "&lt;";
    else if (c == '\n' || c == '\r' || c == '\t')
      cell += ' ';
    else
      cell += (c == '|' || c == '*' || c == '`' ? "\\" : "") + std::string(1, c);
  }
  return cell;
}

std::string table_of(const std::vector<task::ShownRow>& rows) {
  std::string text = "| sample | target | prediction |\n|---|---|---|\n";
  for (const task::ShownRow& row : rows)
    text += fmt::format("| {} | {} | {} |\n", cell_text(row.words.empty() ? row.name : row.words),
                        cell_text(row.target), cell_text(row.prediction));
  return text;
}

}  // namespace

Progress TrainerState::progress() const {
  return {seconds_before + seconds_since(begun), process_cpu_seconds(), timed_waiting,
          static_cast<double>(samples_seen), static_cast<double>(tokens_seen)};
}

std::vector<TrainerState::Summary> TrainerState::progress_values(Progress& since) const {
  const Progress now = progress();
  const double seconds = std::max(now.seconds - since.seconds, 1e-9);
  std::vector<Summary> values;
  const auto add = [&](const std::string& name, double value) { values.push_back({name, name, value}); };
  add("progress/samples", now.samples);
  if (tokens_seen > 0) add("progress/tokens", now.tokens);
  add(hours_key, now.seconds / 3600);
  add("system/samples_per_second", (now.samples - since.samples) / seconds);
  if (tokens_seen > 0) add("system/tokens_per_second", (now.tokens - since.tokens) / seconds);
  add("system/waiting", (now.waiting - since.waiting) / seconds);
  add("system/cpus", (now.cpu - since.cpu) / seconds);
  add("system/memory_bytes", static_cast<double>(resident_bytes()));
  since = now;
  return values;
}

void TrainerState::log_details() {
  const int64_t every = recipe().train.log_every;
  if (every == 0 || done() % every != 0) return;
  std::vector<Summary> values = {
      {"epoch", "", static_cast<double>(done()) / static_cast<double>(steps_per_epoch)}};
  add_norms(values);
  for (Summary& each : progress_values(details_since)) values.push_back(std::move(each));
  log_values(values, detail_names, false);
}

void TrainerState::add_norms(std::vector<Summary>& values) const {
  const std::vector<optim::ParameterNorms> norms = step->norms();
  if (norms.empty()) return;
  std::vector<std::string> names;
  for (const auto& each : norms) names.push_back(each.name);
  struct Squares {
    double gradient = 0, weight = 0, update = 0;
  };
  std::map<std::string, Squares> squares;  // "": of all
  const std::vector<std::string> parts = model_parts(names);
  for (size_t i = 0; i < norms.size(); ++i)
    for (const std::string& name : {std::string(), "/" + parts[i]}) {
      Squares& sums_of = squares[name];
      sums_of.gradient += norms[i].gradient * norms[i].gradient;
      sums_of.weight += norms[i].weight * norms[i].weight;
      sums_of.update += norms[i].update * norms[i].update;
    }
  for (const auto& [part, of] : squares) {
    const auto add = [&](const std::string& name, double value) { values.push_back({name, name, value}); };
    add("gradient_norm" + part, std::sqrt(of.gradient) / batch_share());
    add("weight_norm" + part, std::sqrt(of.weight));
    if (of.weight > 0) add("update_ratio" + part, std::sqrt(of.update / of.weight));
  }
}

void TrainerState::show(std::function<std::vector<track::Exhibit>()> made) {
  track::Record shown{nullptr, done(), unix_time(), {}, std::move(made)};
  record([&] { log->add(std::move(shown)); });
}

void TrainerState::show_histograms() {
  const int64_t every = recipe().train.histograms;
  if (!log || every == 0 || done() % (every * steps_per_epoch) != 0) return;
  // Made here, before the next step changes the weights.
  std::vector<track::Exhibit> all;
  for (const nn::Named& p : task.network->parameters()) {
    track::Exhibit shown{"weights/" + p.name, "", "", {}, track::histogram_of(optim::value_of(p))};
    if (!shown.histogram.empty()) all.push_back(std::move(shown));
  }
  show([all = std::move(all)] { return all; });
}

void TrainerState::show_samples() {
  if (!log || shown_rows.empty()) return;
  show([rows = std::exchange(shown_rows, {})] {
    std::vector<track::Exhibit> shown = {{"samples", "samples.md", table_of(rows), {}, {}}};
    if (auto sheet = task::sheet_of(rows))
      shown.push_back({"samples/pictures", "samples.png", "", std::move(sheet), {}});
    return shown;
  });
}

}  // namespace millrace::train
