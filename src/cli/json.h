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
  Json(int value) : Json(int64_t{value}) {}              // NOLINT
  Json(double value);                                    // NOLINT: null when it is not finite
  Json(const std::string& value);                        // NOLINT
  Json(const char* value) : Json(std::string(value)) {}  // NOLINT
  Json(const std::vector<Json>& list);                   // NOLINT
  template <typename T>
  Json(const std::vector<T>& list) : Json(std::vector<Json>(list.begin(), list.end())) {}  // NOLINT
  static Json raw(std::string text);

 private:
  Json() = default;
};

Json json_object(const std::vector<std::pair<std::string, Json>>& fields);
/// Of names with values of one kind.
template <typename Fields>
Json json_object(const Fields& fields) {
  return json_object(std::vector<std::pair<std::string, Json>>(fields.begin(), fields.end()));
}

/// A line on standard output.
void print_json(const Json& value);

}  // namespace millrace::cli
