// Values as JSON text, for predictions.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/utf8.h"

namespace millrace::task {

/// In quotes, as stored_text() writes bytes that are no UTF-8.
inline std::string json_string(std::string_view text) { return nlohmann::json(stored_text(text)).dump(); }
/// null where it is not finite.
inline std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}
inline std::string json_numbers(std::span<const float> values) {
  std::string text = "[";
  for (const float value : values) text.append(text.size() > 1 ? ", " : "").append(json_number(value));
  return text + "]";
}
inline std::string json_numbers(const std::vector<std::pair<std::string, double>>& fields) {
  std::string text = "{";
  for (const auto& [name, value] : fields)
    text.append(text.size() > 1 ? ", " : "")
        .append(json_string(name))
        .append(": ")
        .append(json_number(value));
  return text + "}";
}

/// read(JSON) of what an input or output has learnt, as a checkpoint has it; InputError where it lacks what
/// is read, or is no JSON. `of`: what it is about.
template <typename Read>
auto read_encoding(const std::string& encoding, const std::string& of, Read&& read) {
  try {
    return read(nlohmann::json::parse(encoding));
  } catch (const nlohmann::json::exception& error) {
    fail<InputError>("what the checkpoint knows of {} is damaged: {}", of, error.what());
  }
}

}  // namespace millrace::task
