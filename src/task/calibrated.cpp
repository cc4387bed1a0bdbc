#include "task/calibrated.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace millrace::task {
namespace {

/// The rises of curves side by side, [curves, most rises]: each begins at x, is 1 / steepness wide and gains
/// y.
struct Rises {
  Array x, steepness, y, lowest;
};

Rises rises_of(const std::vector<eval::Curve>& curves) {
  size_t most = 1;
  for (const eval::Curve& curve : curves) most = std::max(most, curve.x.size() - 1);
  const auto count = static_cast<int64_t>(curves.size());
  std::vector<double> x(curves.size() * most), steepness(x.size(), 1), y(x.size()), lowest;
  for (size_t c = 0; c < curves.size(); ++c) {
    const eval::Curve& curve = curves[c];
    lowest.push_back(curve.y.front());
    for (size_t i = 0; i + 1 < curve.x.size(); ++i) {
      const size_t at = c * most + i;
      const auto begin = static_cast<double>(static_cast<float>(curve.x[i]));
      x[at] = begin;
      steepness[at] = 1 / std::max(curve.x[i + 1] - begin, 1e-30);
      y[at] = curve.y[i + 1] - curve.y[i];
    }
  }
  const Shape shape{count, static_cast<int64_t>(most)};
  return {Array::of(f32, shape, x), Array::of(f32, shape, steepness), Array::of(f32, shape, y),
          Array::of(f32, {count}, lowest)};
}

/// [batch, curves] → probabilities. A sum of bounded rises: a line through a point far away would lose what
/// is small in f32.
Tensor curve_values(const std::vector<eval::Curve>& curves, const Tensor& scores) {
  const Rises rises = rises_of(curves);
  const Tensor part = clamp((unsqueeze(scores, 2) - Tensor(rises.x)) * Tensor(rises.steepness), 0, 1);
  return Tensor(rises.lowest) + sum(part * Tensor(rises.y), {2});
}

/// The second's less the first's, [batch, 1].
Tensor difference(const Tensor& logits) { return slice(logits, 1, 1, 2) - slice(logits, 1, 0, 1); }

}  // namespace

Tensor calibrated(const Output& output, const Tensor& logits) {
  const eval::Calibration& calibration = output.calibration();
  if (!calibration.scales()) return logits;
  const Tensor wide = cast(logits, f32);
  if (calibration.curves.empty()) return wide / calibration.temperature;
  if (output.link() == eval::Link::sigmoid) {
    const Tensor p = curve_values(calibration.curves, wide);
    return log(p) - log(1.0 - p);
  }
  if (output.width() > 2) return log(curve_values(calibration.curves, log_softmax(wide, -1)));
  const Tensor p = curve_values(calibration.curves, difference(wide));
  const std::vector<Tensor> both = {log(1.0 - p), log(p)};
  return concat(both, 1);
}

Tensor decisions(const Output& output, const Tensor& logits) {
  const std::vector<double> at = output.calibration().logit_thresholds();
  if (at.empty()) return {};
  const Tensor thresholds(Array::of(f32, {static_cast<int64_t>(at.size())}, at));
  if (output.link() == eval::Link::sigmoid) return cast(cast(logits, f32) > thresholds, i64);
  return cast(squeeze(difference(cast(logits, f32)) > thresholds, 1), i64);
}

std::string calibration_json(const eval::Calibration& calibration) {
  nlohmann::json json = nlohmann::json::object();
  if (calibration.temperature != 1) json["temperature"] = calibration.temperature;
  for (const eval::Curve& curve : calibration.curves)
    json["isotonic"].push_back({{"x", curve.x}, {"probability", curve.y}});
  if (!calibration.thresholds.empty()) json["thresholds"] = calibration.thresholds;
  return json.dump();
}

eval::Calibration calibration_of(const std::string& text, const Output& output) {
  eval::Calibration calibration;
  try {
    const auto json = nlohmann::json::parse(text);
    calibration.temperature = json.value("temperature", 1.0);
    for (const auto& each : json.value("isotonic", nlohmann::json::array()))
      calibration.curves.push_back(
          {each.at("x").get<std::vector<double>>(), each.at("probability").get<std::vector<double>>()});
    calibration.thresholds = json.value("thresholds", std::vector<double>());
  } catch (const nlohmann::json::exception& error) {
    fail<InputError>("{}", error.what());
  }
  const auto width = static_cast<size_t>(output.width());
  const bool pair = output.link() == eval::Link::softmax && width == 2;
  const auto fits = [&](size_t count) { return count == 0 || count == (pair ? 1 : width); };
  if (output.link() == eval::Link::none || !(calibration.temperature > 0) ||
      !fits(calibration.curves.size()) || !fits(calibration.thresholds.size()))
    fail<InputError>("it does not fit an output of {} classes", width);
  for (const eval::Curve& curve : calibration.curves)
    if (curve.x.empty() || curve.x.size() != curve.y.size() ||
        !std::is_sorted(curve.x.begin(), curve.x.end()) ||
        !std::all_of(curve.y.begin(), curve.y.end(), [](double y) { return y >= 0 && y <= 1; }))
      fail<InputError>("one of its curves is damaged");
  for (const double threshold : calibration.thresholds)
    if (!(threshold >= 0 && threshold <= 1)) fail<InputError>("{} is no threshold", threshold);
  return calibration;
}

std::string calibration_text(const eval::Calibration& calibration) {
  std::vector<std::string> parts;
  if (calibration.temperature != 1)
    parts.push_back(fmt::format("temperature {:.4g}", calibration.temperature));
  size_t points = 0;
  for (const eval::Curve& curve : calibration.curves) points += curve.x.size();
  if (points > 0) parts.push_back(fmt::format("isotonic, {} points", points));
  if (calibration.thresholds.size() == 1)
    parts.push_back(fmt::format("threshold {:.4g}", calibration.thresholds[0]));
  if (calibration.thresholds.size() > 1)
    parts.push_back(fmt::format("thresholds {:.3g}", fmt::join(calibration.thresholds, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace millrace::task
