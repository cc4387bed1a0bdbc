#include "track/metrics_log.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"

namespace millrace::track {
namespace {

using nlohmann::json;

std::string value_text(const std::variant<int64_t, double, std::string>& value) {
  if (const auto* number = std::get_if<double>(&value))
    return std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  return json(std::get<std::string>(value)).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string lines_until(const std::string& text, int64_t step, bool whole) {
  std::string kept;
  for (size_t at = 0;;) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) return kept;
    const json line = json::parse(text.begin() + static_cast<ptrdiff_t>(at),
                                  text.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    const auto at_step = line.is_object() ? line.find("step") : line.end();
    const bool due =
        !whole && line.is_object() && line.contains("seconds") && at_step != line.end() && *at_step == step;
    if (line.is_object() && !due && (at_step == line.end() || (at_step->is_number() && *at_step <= step)))
      kept.append(text, at, end + 1 - at);
    at = end + 1;
  }
}

std::vector<double> numbers_of(std::string_view text, const std::string& key) {
  text = text.substr(0, text.rfind('\n') + 1);
  const std::string wanted = json(key).dump() + ": ";
  std::vector<double> numbers;
  for (size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at)) {
    at += wanted.size();
    double value = 0;
    if (std::from_chars(text.data() + at, text.data() + text.size(), value).ec == std::errc())
      numbers.push_back(value);
  }
  return numbers;
}

std::string json_line(const Fields& fields) {
  std::string text = "{";
  for (const auto& [name, value] : fields)
    text += fmt::format("{}{}: {}", text.size() > 1 ? ", " : "", json(name).dump(), value_text(value));
  return text + "}";
}

MetricsLog::MetricsLog(std::filesystem::path path, int64_t resume_step, bool whole) : path_(std::move(path)) {
  std::string kept;
  if (resume_step >= 0 && std::filesystem::exists(path_))
    kept = lines_until(read_text(path_), resume_step, whole);
  write_file(path_, kept);
  file_ = std::fopen(path_.c_str(), "ab");
  if (!file_) fail_writing(path_, "write the metrics", errno);
}

MetricsLog::~MetricsLog() {
  if (file_) std::fclose(file_);
}

void MetricsLog::write(const Record& record) {
  if (names_ != record.names) {
    names_ = record.names;
    keys_.clear();
    for (const std::string& key : names_->keys) keys_.push_back(fmt::format(", {}: ", json(key).dump()));
  }
  line_.clear();
  fmt::format_to(std::back_inserter(line_), "{{\"step\": {}", record.step);
  for (size_t i = 0; i < keys_.size(); ++i) {
    line_ += keys_[i];
    if (std::isfinite(record.values[i]))
      fmt::format_to(std::back_inserter(line_), "{}", record.values[i]);
    else
      line_ += "null";
  }
  line_ += "}\n";
  if (std::fwrite(line_.data(), 1, line_.size(), file_) != line_.size())
    fail_writing(path_, "write the metrics", errno);
}

void MetricsLog::flush() {
  if (std::fflush(file_) != 0) fail_writing(path_, "write the metrics", errno);
}

}  // namespace millrace::track
