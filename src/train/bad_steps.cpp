#include "train/bad_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "base/words.h"
#include "track/metrics_log.h"

namespace millrace::train {
namespace {

double middle_of(std::vector<double> values) {
  const auto half = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  if (values.size() % 2 == 1) return *half;
  return (*half + *std::max_element(values.begin(), half)) / 2;
}

}  // namespace

LossWatch::Spread LossWatch::spread() const {
  const double median = middle_of({losses_.begin(), losses_.end()});
  std::vector<double> away;
  for (const double loss : losses_) away.push_back(std::abs(loss - median));
  // Losses that hardly move would make anything a spike.
  return {median, std::max({1.4826 * middle_of(std::move(away)), 0.01 * std::abs(median), 1e-12})};
}

double LossWatch::limit(double deviations) const {
  if (!(deviations > 0) || losses_.size() < least) return std::numeric_limits<double>::infinity();
  const Spread known = spread();
  return known.median + deviations * known.deviation;
}

double LossWatch::deviations(double loss) const {
  if (losses_.empty()) return 0;
  const Spread known = spread();
  return (loss - known.median) / known.deviation;
}

void LossWatch::add(double loss) {
  losses_.push_back(loss);
  if (losses_.size() > most) losses_.pop_front();
}

void write_bad_step(const std::filesystem::path& path, const BadStep& step) {
  track::Fields fields{{"step", step.step}, {"what", step.what}, {"why", step.why}};
  if (step.to >= 0) {
    fields.emplace_back("to", step.to);
    fields.emplace_back("lr_factor", step.lr_factor);
  }
  fields.emplace_back("time", step.time);
  append_lines(path, track::json_line(fields) + "\n", "note a bad step");
}

std::vector<BadStep> read_bad_steps(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  std::vector<BadStep> steps;
  int number = 0;
  for (const std::string& text : lines_in(read_text(path), true)) {
    ++number;
    try {
      const auto line = nlohmann::json::parse(text);
      BadStep step{line.at("step").get<int64_t>(), line.at("what").get<std::string>(),
                   line.at("why").get<std::string>()};
      step.to = line.value("to", int64_t{-1});
      step.lr_factor = line.value("lr_factor", 1.0);
      step.time = line.value("time", "");
      steps.push_back(std::move(step));
    } catch (const nlohmann::json::exception&) {
      fail<InputError>("{}:{}: is no line about a bad step ({{\"step\", \"what\", \"why\", …}})",
                       path.string(), number);
    }
  }
  return steps;
}

void forget_bad_steps(const std::filesystem::path& path, int64_t step) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) write_file(path, track::lines_until(read_text(path), step));
}

std::string bad_step_text(const BadStep& step) {
  const std::string what =
      step.to < 0 ? step.what
                  : fmt::format("{} to the weights of step {}, the rate from there on times {:.3g}",
                                step.what, step.to, step.lr_factor);
  return fmt::format("step {}: {}: {}", step.step, what, step.why);
}

}  // namespace millrace::train
