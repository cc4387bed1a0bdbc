#include "cli/json.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace::cli {

Json Json::raw(std::string text) {
  Json json;
  json.text = std::move(text);
  return json;
}

Json::Json(bool value) : text(value ? "true" : "false") {}
Json::Json(int64_t value) : text(fmt::format("{}", value)) {}
Json::Json(double value) : text(std::isfinite(value) ? fmt::format("{}", value) : "null") {}
Json::Json(const std::string& value)
    : text(nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {}
Json::Json(const std::vector<Json>& list) : text("[") {
  for (const Json& item : list) text.append(text.size() > 1 ? ", " : "").append(item.text);
  text += "]";
}

Json json_object(const std::vector<std::pair<std::string, Json>>& fields) {
  std::string text = "{";
  for (const auto& [name, value] : fields)
    text.append(text.size() > 1 ? ", " : "").append(Json(name).text).append(": ").append(value.text);
  return Json::raw(text + "}");
}

void print_json(const Json& value) { fmt::print("{}\n", value.text); }

}  // namespace millrace::cli
