#include <millrace/settings.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"

namespace millrace {
namespace {

std::string number_text(double number) { return fmt::format("{:.6g}", number); }

void check_number(const Setting& setting, double number) {
  if (number >= setting.low && number <= setting.high) return;
  const bool below = setting.low > -1e18 || number < setting.low,
             above = setting.high < 1e18 || number > setting.high;
  fail<InputError>("must be {}{}{}, not {}", below ? (above ? "from " : "at least ") : "",
                   below ? number_text(setting.low) : "",
                   above ? (below ? " to " : "at most ") + number_text(setting.high) : "",
                   number_text(number));
}

void check_text(const Setting& setting, const std::string& text) {
  if (setting.choices.empty() || contains(setting.choices, text)) return;
  fail<InputError>("must be one of {}, not '{}'{}", fmt::join(setting.choices, ", "), text,
                   did_you_mean(text, setting.choices));
}

/// The value as the setting's type, where it is one.
bool fit(const SettingValue& usual, SettingValue& value) {
  using Numbers = std::vector<double>;
  using Texts = std::vector<std::string>;
  const bool numbers = std::holds_alternative<Numbers>(usual), texts = std::holds_alternative<Texts>(usual);
  if (const auto* whole = std::get_if<int64_t>(&value);
      whole && (numbers || std::holds_alternative<double>(usual)))
    value = static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value); number && numbers) value = Numbers{*number};
  if (const auto* text = std::get_if<std::string>(&value); text && texts) value = Texts{*text};
  // An empty list is one of anything.
  if (const auto* list = std::get_if<Texts>(&value); list && list->empty() && numbers) value = Numbers{};
  if (const auto* list = std::get_if<Numbers>(&value); list && list->empty() && texts) value = Texts{};
  return usual.index() == value.index();
}

template <typename T>
const T& get(const Settings& settings, std::string_view name) {
  const auto* value = std::get_if<T>(&settings.value(name));
  if (!value) fail<InternalError>("the setting '{}' is {}", name, type_text(settings.value(name)));
  return *value;
}

}  // namespace

std::string type_text(const SettingValue& value) {
  static constexpr const char* names[] = {"true or false", "a whole number",  "a number",
                                          "a text",        "a list of texts", "a list of numbers"};
  return names[value.index()];
}

Settings::Settings(std::vector<Setting> declared) : declared_(std::move(declared)) {}

const Setting* Settings::find(std::string_view name) const {
  for (const Setting& setting : declared_)
    if (setting.name == name) return &setting;
  return nullptr;
}

const SettingValue& Settings::value(std::string_view name) const {
  if (const auto found = values_.find(name); found != values_.end()) return found->second;
  const Setting* const setting = find(name);
  if (!setting) fail<InternalError>("there is no setting '{}'", name);
  return setting->usual;
}

bool Settings::flag(std::string_view name) const { return get<bool>(*this, name); }
int64_t Settings::integer(std::string_view name) const { return get<int64_t>(*this, name); }
double Settings::number(std::string_view name) const { return get<double>(*this, name); }
const std::string& Settings::text(std::string_view name) const { return get<std::string>(*this, name); }
const std::vector<std::string>& Settings::texts(std::string_view name) const {
  return get<std::vector<std::string>>(*this, name);
}
const std::vector<double>& Settings::numbers(std::string_view name) const {
  return get<std::vector<double>>(*this, name);
}

void Settings::set(std::string_view name, SettingValue value) {
  const Setting* const setting = find(name);
  if (!setting) {
    std::vector<std::string> names;
    for (const Setting& each : declared_) names.push_back(each.name);
    if (names.empty()) fail<InputError>("unknown key '{}': there are none here", name);
    fail<InputError>("unknown key '{}'{}", name, did_you_mean_or_list(name, names));
  }
  const std::string given = type_text(value);
  if (!fit(setting->usual, value)) fail<InputError>("must be {}, not {}", type_text(setting->usual), given);
  if (const auto* whole = std::get_if<int64_t>(&value)) check_number(*setting, static_cast<double>(*whole));
  if (const auto* number = std::get_if<double>(&value)) check_number(*setting, *number);
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    for (const double number : *list) check_number(*setting, number);
  if (const auto* text = std::get_if<std::string>(&value)) check_text(*setting, *text);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value))
    for (const std::string& text : *list) check_text(*setting, text);
  values_.insert_or_assign(std::string(name), std::move(value));
}

void Settings::clear(std::string_view name) {
  if (const auto found = values_.find(name); found != values_.end()) values_.erase(found);
}

}  // namespace millrace
