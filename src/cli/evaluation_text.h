// Metrics with their intervals, and what is said of classes, for people and programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <millrace/run.h>

#include "cli/json.h"

namespace millrace::cli {

/// "97.31 %", "0.0912"; `like`: a value whose decimals it is to have.
std::string metric_value(const eval::Measured& metric, double value);
/// "  accuracy      97.31 %  (95 % interval 96.97 to 97.62 %)", one line each.
std::vector<std::string> metric_lines(const std::vector<eval::Measured>& metrics);

/// The metrics by their names, and behind them "intervals".
std::vector<std::pair<std::string, Json>> metric_fields(const std::vector<eval::Measured>& metrics);

/// Precision, recall and F1 of each class, and the confusion matrix.
std::string class_report_text(const task::ClassReport& report);
Json class_report_json(const task::ClassReport& report);

}  // namespace millrace::cli
