#include "cli/evaluation_text.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "task/evaluate.h"

namespace millrace::cli {
namespace {

std::string metric_line(const eval::Measured& metric, size_t name_width) {
  if (std::isnan(metric.value))
    return fmt::format("  {:<{}} -  ({})", metric.name, name_width, task::undefined_text(metric.name));
  const char* const unit = task::metric_of(metric.name).share ? " %" : "";
  std::string line =
      fmt::format("  {:<{}} {}{}", metric.name, name_width, metric_value(metric, metric.value), unit);
  if (std::isfinite(metric.low) && std::isfinite(metric.high))
    line += fmt::format("  (95 % interval {} to {}{})", metric_value(metric, metric.low),
                        metric_value(metric, metric.high), unit);
  return line;
}

/// "0.973 ± 0.012"
std::string share_text(const eval::Measured& share) {
  const double half = (share.high - share.low) / 2;
  return std::isfinite(half) ? fmt::format("{:.3f} ± {:.3f}", share.value, half)
                             : fmt::format("{:.3f}", share.value);
}

Json share_json(const eval::Measured& share) {
  return json_object({{"value", Json(share.value)},
                      {"interval", std::vector<Json>{std::max(share.low, 0.0), std::min(share.high, 1.0)}}});
}

}  // namespace

std::string metric_value(const eval::Measured& metric, double value) {
  return task::metric_of(metric.name).share && !std::isnan(value)
             ? fmt::format("{:.2f}", 100 * value)
             : millrace::number_text(value, metric.value);
}

std::vector<std::string> metric_lines(const std::vector<eval::Measured>& metrics) {
  size_t name_width = 14;
  for (const eval::Measured& metric : metrics) name_width = std::max(name_width, metric.name.size());
  std::vector<std::string> lines;
  for (const eval::Measured& metric : metrics) lines.push_back(metric_line(metric, name_width));
  return lines;
}

std::vector<std::pair<std::string, Json>> metric_fields(const std::vector<eval::Measured>& metrics) {
  std::vector<std::pair<std::string, Json>> fields, intervals;
  for (const eval::Measured& metric : metrics) {
    fields.emplace_back(metric.name, metric.value);
    intervals.emplace_back(metric.name, std::vector<Json>{metric.low, metric.high});
  }
  fields.emplace_back("intervals", json_object(intervals));
  return fields;
}

std::string class_report_text(const task::ClassReport& report) {
  const std::string title = report.output.empty() ? "" : report.output + " ";
  Table classes({"<" + title + (report.confusion.empty() ? "label" : "class"), "precision", "recall", "F1",
                 "rows", "told"});
  for (size_t i = 0; i < report.classes.size(); ++i) {
    const eval::ClassMeasured& own = report.classes[i];
    classes.row({stored_text(report.names[i]), share_text(own.precision), share_text(own.recall),
                 share_text(own.f1), thousands(own.count), thousands(own.told)});
  }
  std::string text = "\n" + classes.str();
  if (!report.confusion.empty()) {
    const size_t width = report.names.size();
    std::vector<std::string> titles = {"<true \\ told"};
    for (const std::string& name : report.names) titles.push_back(">" + stored_text(name));
    Table matrix(titles);
    for (size_t is = 0; is < width; ++is) {
      std::vector<std::string> cells = {stored_text(report.names[is])};
      for (size_t told = 0; told < width; ++told)
        cells.push_back(thousands(report.confusion[is * width + told]));
      matrix.row(cells);
    }
    text += "\n" + matrix.str();
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Json class_report_json(const task::ClassReport& report) {
  std::vector<std::pair<std::string, Json>> fields;
  if (!report.output.empty()) fields.emplace_back("output", report.output);
  std::vector<Json> classes, rows;
  for (size_t i = 0; i < report.classes.size(); ++i) {
    const eval::ClassMeasured& own = report.classes[i];
    classes.push_back(json_object({{"name", Json(stored_text(report.names[i]))},
                                   {"rows", Json(own.count)},
                                   {"told", Json(own.told)},
                                   {"precision", share_json(own.precision)},
                                   {"recall", share_json(own.recall)},
                                   {"f1", share_json(own.f1)}}));
  }
  fields.emplace_back("each", classes);
  const auto width = std::ssize(report.names);
  for (auto row = report.confusion.begin(); row != report.confusion.end(); row += width)
    rows.emplace_back(std::vector<int64_t>(row, row + width));
  if (!rows.empty()) fields.emplace_back("confusion", rows);
  return json_object(fields);
}

}  // namespace millrace::cli
