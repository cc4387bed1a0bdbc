// What a kind of anything can be told: declared once, by the kind, and read by recipes, checks, help and
// documents.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace millrace {

/// The types of settings. What a setting is by default decides on its type.
using SettingValue =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

/// One thing that a kind can be told.
struct Setting {
  std::string name;  // "label_smoothing"
  std::string doc;
  SettingValue usual;
  /// Bounds of numbers (each one, in lists).
  double low = -1e18, high = 1e18;
  /// The words that a text (or each of a list) may be; empty: any.
  std::vector<std::string> choices = {};
  /// What is trained does not depend on it: a trained model can be measured with another.
  bool evaluation = false;
  /// A list of texts "NAME=NUMBER", which recipes may write as a table, { NAME = NUMBER }, or as numbers.
  bool named_numbers = false;
  /// A text that names a file, or a word that is none.
  bool path = false;
};

/// "true or false", "a whole number", "a number", "a text", "a list of texts", "a list of numbers": the type
/// of a value.
std::string type_text(const SettingValue& value);

/// Values of declared settings. A copy stands alone.
class Settings {
 public:
  Settings() = default;
  /// All as they usually are.
  explicit Settings(std::vector<Setting> declared);

  const std::vector<Setting>& declared() const { return declared_; }
  const Setting* find(std::string_view name) const;

  /// Values by name; InternalError for a name that is not declared, or of another type.
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<std::string>& texts(std::string_view name) const;
  const std::vector<double>& numbers(std::string_view name) const;
  const SettingValue& value(std::string_view name) const;
  /// Was it set, to whatever?
  bool given(std::string_view name) const { return values_.contains(name); }

  /// InputError, without a place: "unknown key 'x'; did you mean 'y'?", "must be a whole number, not a text",
  /// "must be from 1 to 8, not 9", "must be one of …". A whole number is taken for a number, a single text or
  /// number for a list of one.
  void set(std::string_view name, SettingValue value);
  void clear(std::string_view name);
  bool operator==(const Settings& other) const { return values_ == other.values_; }

 private:
  std::vector<Setting> declared_;
  std::map<std::string, SettingValue, std::less<>> values_;  // those that were set
};

}  // namespace millrace
