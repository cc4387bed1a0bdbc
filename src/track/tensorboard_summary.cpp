#include "track/tensorboard_summary.h"

#include <cmath>

#include "base/format.h"
#include "base/number_from.h"

namespace millrace::track {
namespace {

// tensorflow.DataType, tensorboard.DataClass
constexpr int64_t dt_float = 1, dt_double = 2, dt_string = 7;
constexpr int64_t class_tensor = 2, class_blobs = 3;

WireWriter shape_of(std::initializer_list<int64_t> sizes) {
  WireWriter shape;
  for (const int64_t size : sizes) shape.message(2, WireWriter().integer(1, size));
  return shape;
}

WireWriter summary(std::string_view tag, const WireWriter& metadata, const WireWriter& tensor) {
  return WireWriter().message(
      5, WireWriter().message(1, WireWriter().bytes(1, tag).message(9, metadata).message(8, tensor)));
}

WireWriter metadata(std::string_view plugin, int64_t data_class, std::string_view content = "") {
  return WireWriter().message(1, WireWriter().bytes(1, plugin).bytes(2, content)).integer(4, data_class);
}

WireWriter of_histogram(const Exhibit& exhibit) {
  std::string content;
  for (const Exhibit::Bucket& bucket : exhibit.histogram)
    for (const double value : {bucket.left, bucket.right, bucket.count})
      content.append(reinterpret_cast<const char*>(&value), sizeof value);
  const WireWriter tensor = WireWriter()
                                .integer(1, dt_double)
                                .message(2, shape_of({std::ssize(exhibit.histogram), 3}))
                                .bytes(4, content);
  return summary(exhibit.tag, metadata("histograms", class_tensor), tensor);
}

WireWriter of_picture(const Exhibit& exhibit) {
  WireWriter tensor;
  tensor.integer(1, dt_string).message(2, shape_of({3}));
  tensor.bytes(8, fmt::format("{}", exhibit.picture->width));
  tensor.bytes(8, fmt::format("{}", exhibit.picture->height));
  tensor.bytes(8, exhibit.picture->png);
  return summary(exhibit.tag, metadata("images", class_blobs), tensor);
}

WireWriter of_text(const Exhibit& exhibit) {
  const WireWriter tensor =
      WireWriter().integer(1, dt_string).message(2, shape_of({1})).bytes(8, exhibit.text);
  return summary(exhibit.tag, metadata("text", class_tensor), tensor);
}

WireWriter hparams_summary(std::string_view tag, int field, const WireWriter& data) {
  const WireWriter content = WireWriter().integer(1, 0).message(field, data);
  const WireWriter nothing = WireWriter().integer(1, dt_float).message(2, shape_of({1})).number(5, 0.0F);
  return summary(tag, metadata("hparams", class_tensor, content.text()), nothing);
}

enum class HparamType { text = 1, truth = 2, number = 3 };  // tensorboard.hparams.DataType

HparamType type_of(const std::string& value, double& number) {
  if (value == "true" || value == "false") return HparamType::truth;
  const auto found = number_from<double>(value);
  number = found.value_or(0);
  return found && std::isfinite(number) ? HparamType::number : HparamType::text;
}

}  // namespace

WireWriter exhibit_summary(const Exhibit& exhibit) {
  if (!exhibit.histogram.empty()) return of_histogram(exhibit);
  return exhibit.picture ? of_picture(exhibit) : of_text(exhibit);
}

WireWriter hparams_experiment(std::span<const std::pair<std::string, std::string>> params,
                              std::span<const std::string> curves) {
  WireWriter experiment;
  double number = 0;
  for (const auto& [key, value] : params)
    experiment.message(4,
                       WireWriter().bytes(1, key).integer(4, static_cast<int64_t>(type_of(value, number))));
  for (const std::string& curve : curves)
    experiment.message(5, WireWriter().message(1, WireWriter().bytes(2, curve)));
  return hparams_summary("_hparams_/experiment", 2, experiment);
}

WireWriter hparams_begin(std::span<const std::pair<std::string, std::string>> params, double time) {
  WireWriter start;
  for (const auto& [key, value] : params) {
    double number = 0;
    WireWriter typed;  // google.protobuf.Value
    switch (type_of(value, number)) {
      case HparamType::number:
        typed.number(2, number);
        break;
      case HparamType::truth:
        typed.integer(4, value == "true" ? 1 : 0);
        break;
      case HparamType::text:
        typed.bytes(3, value.size() > 1 && value.front() == '"' ? value.substr(1, value.size() - 2) : value);
    }
    start.message(1, WireWriter().bytes(1, key).message(2, typed));
  }
  start.number(5, time);
  return hparams_summary("_hparams_/session_start_info", 3, start);
}

WireWriter hparams_end(double time) {
  constexpr int64_t success = 1;  // tensorboard.hparams.Status
  return hparams_summary("_hparams_/session_end_info", 4, WireWriter().integer(1, success).number(2, time));
}

}  // namespace millrace::track
