// The values of a recipe as they are written, before their keys say what they must be.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <millrace/settings.h>

namespace millrace::task {

struct Raw {
  std::variant<bool, int64_t, double, std::string, std::vector<Raw>> value;
  std::string text;   // as an override spells it; else empty
  std::string where;  // "recipe.toml:3:9"
  int64_t order = 0;  // of what is written
};
/// "true or false", "a whole number", "a number", "a text", "a list".
std::string raw_type(const Raw& raw);

struct Items {
  std::map<std::string, Raw> values;  // by dotted key
  /// Every table that is written, be it empty, by dotted name: where it begins, for order and for messages.
  struct Table {
    int64_t order = 0;
    std::string where;
  };
  std::map<std::string, Table> tables;

  void add(const std::string& key, Raw raw, int64_t order);
  /// The table and those that it is in.
  void add_table(const std::string& name, const std::string& where, int64_t order);
};

/// InputError for keys of more parts than any has: what goes through them is not made for thousands.
void require_short_key(const std::string& key, const std::string& where);

/// A recipe's TOML. InputError names line and column of what is no TOML, or no value that recipes have.
Items read_toml(std::string_view text, const std::string& file);

/// Every key of a recipe's TOML with its value as TOML, by dotted key. Errors as of read_toml().
std::map<std::string, std::string> keys_and_values(std::string_view text, const std::string& file);

/// Applies "train.epochs=2", "train.optimizer={kind=adam, lr=1e-3}", "input.augment=[flip, rotate 10]": an
/// override of a whole table, or of its kind by the table's name, replaces the table. InputError when it is
/// not key=value.
void apply_override(Items& items, const std::string& change);
/// A value without TOML's quotes: what TOML cannot read is a text.
Raw override_value(std::string_view text, const std::string& where);
/// A single TOML value, where it is one that recipes have: what override_value() asks.
bool read_toml_value(std::string_view text, Raw& into);

/// Is it the name of a table of keys, not of a value alone?
bool is_table_name(const std::string& name);

/// A value for a key whose type is not known yet; InputError, with the place, for lists of several types.
SettingValue setting_value(const Raw& raw, const std::string& key);
/// The same value as that setting has it, where what an override spells is one: 2024 is a text too.
SettingValue as_setting(SettingValue value, const std::string& spelt, const SettingValue& usual);

/// Splits at commas that stand in no bracket and no quotes.
std::vector<std::string_view> split_items(std::string_view text);

}  // namespace millrace::task
