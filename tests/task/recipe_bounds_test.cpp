// Every number that a recipe or a kind takes, at the ends of what it may be and one step beyond.
#include <cmath>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/format.h"
#include "support/refusal.h"
#include "task/recipe.h"
#include "task/recipe_sections.h"

using namespace millrace;
using namespace millrace::task;

namespace {

constexpr double unbounded = 1e18;

/// What is wrong with the number itself: other keys may want another.
std::string range_error(const std::string& key, const std::string& value) {
  const std::vector<std::string> change = {fmt::format("{}={}", key, value)};
  try {
    (void)parse_recipe("[data]\ntrain = \"x.csv\"\n", "r.toml", change);
  } catch (const InputError& error) {
    const std::string text = error.what();
    return text.find(key + " must be ") == std::string::npos ? "" : text;
  }
  return "";
}

std::string setting_error(const Setting& setting, double value) {
  Settings settings({setting});
  return testing::refusal([&] {
    if (std::holds_alternative<int64_t>(setting.usual))
      settings.set(setting.name, static_cast<int64_t>(value));
    else if (std::holds_alternative<double>(setting.usual))
      settings.set(setting.name, value);
    else
      settings.set(setting.name, std::vector<double>{value});
  });
}

}  // namespace

TEST_CASE("numbers of recipes are taken at both ends of what they may be, and refused beyond") {
  Recipe recipe;
  int bounds = 0;
  for (const RecipeKey& key : recipe_keys()) {
    const RecipeSlot slot = key.slot(recipe);
    const bool whole = std::holds_alternative<int64_t*>(slot);
    if (!whole && !std::holds_alternative<double*>(slot)) continue;
    CAPTURE(key.name);
    const auto at = [&](double value) {
      return range_error(
          key.name, whole ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{:.17g}", value));
    };
    for (const auto& [end, outwards] : {std::pair{key.low, -1.0}, std::pair{key.high, 1.0}}) {
      if (std::abs(end) >= unbounded) continue;
      const double beyond = whole ? end + outwards : std::nextafter(end, outwards * INFINITY);
      CAPTURE(end);
      CHECK(at(end) == "");
      CHECK(at(beyond) != "");
      ++bounds;
    }
  }
  CHECK(bounds > 40);
}

TEST_CASE("numbers of kinds are taken at both ends of what they may be, and refused beyond") {
  int bounds = 0;
  for (const SectionType type : {SectionType::input, SectionType::output, SectionType::model,
                                 SectionType::optimizer, SectionType::schedule, SectionType::loss})
    for (const std::string& kind : section_kinds(type))
      for (const Setting& setting : section_settings(type, kind)) {
        const bool whole = std::holds_alternative<int64_t>(setting.usual);
        if (!whole && !std::holds_alternative<double>(setting.usual) &&
            !std::holds_alternative<std::vector<double>>(setting.usual))
          continue;
        CAPTURE(kind);
        CAPTURE(setting.name);
        for (const auto& [end, outwards] : {std::pair{setting.low, -1.0}, std::pair{setting.high, 1.0}}) {
          if (std::abs(end) >= unbounded) continue;
          CAPTURE(end);
          CHECK(setting_error(setting, end) == "");
          CHECK(setting_error(setting, whole ? end + outwards : std::nextafter(end, outwards * INFINITY))
                    .find("must be ") != std::string::npos);
          ++bounds;
        }
      }
  CHECK(bounds > 200);
}
