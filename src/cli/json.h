// What verbs print with --json.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace::cli {

/// A JSON value as text.
struct Json {
  std::string text;
  Json(bool value);                                      // NOLINT: values convert
  Json(int64_t value);                                   // NOLINT
  Json(double value);                                    // NOLINT: null when it is not finite
  Json(const std::string& value);                        // NOLINT
  Json(const char* value) : Json(std::string(value)) {}  // NOLINT
  Json(const std::vector<Json>& list);                   // NOLINT
  static Json raw(std::string text);

 private:
  Json() = default;
};

Json json_object(const std::vector<std::pair<std::string, Json>>& fields);
Json json_object(const std::vector<std::pair<std::string, double>>& fields);

}  // namespace millrace::cli
