#include "train/recipe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
// toml++ asserts on some malformed keys, such as "[%]"; as an exception that becomes a message too.
struct MalformedToml {};
#define TOML_ASSERT(condition) ((condition) ? void() : throw MalformedToml())
// Some of its assertions stand in noexcept functions, which parsing does not reach.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"
// Its classification of letters outside ASCII runs into "unreachable" where the answer is no.
#include <toml++/impl/forward_declarations.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include "base/file.h"
#include "base/format.h"
#include "base/size_text.h"
#include "base/suggest.h"
#include "train/arrays.h"
#include "train/freeze.h"
#include "train/texts.h"

namespace millrace::train {
namespace {

/// A value as written, before its key says what it must be.
struct Raw {
  std::variant<bool, int64_t, double, std::string, std::vector<Raw>> value;
  std::string text;   // as an override spells it
  std::string where;  // "recipe.toml:3:9"
};
using Items = std::map<std::string, Raw>;  // by dotted key

std::string kind_name(const Raw& raw) {
  static constexpr const char* names[] = {"true or false", "a whole number", "a number", "a text", "a list"};
  return names[raw.value.index()];
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// ---- TOML --------------------------------------------------------------------------------------------------------

std::string place(const toml::node& node, const std::string& file) {
  const auto at = node.source().begin;
  return fmt::format("{}:{}:{}", file, at.line, at.column);
}

Raw raw_value(const toml::node& node, const std::string& file, const std::string& key) {
  Raw raw{{}, {}, place(node, file)};
  if (const auto* flag = node.as_boolean())
    raw.value = flag->get();
  else if (const auto* integer = node.as_integer())
    raw.value = int64_t{integer->get()};
  else if (const auto* number = node.as_floating_point())
    raw.value = number->get();
  else if (const auto* text = node.as_string())
    raw.value = text->get();
  else if (const auto* array = node.as_array()) {
    std::vector<Raw> list;
    for (const toml::node& item : *array) list.push_back(raw_value(item, file, key));
    raw.value = std::move(list);
  } else {
    fail<InputError>("{}: {} has a value that recipes do not use", raw.where, key);
  }
  return raw;
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& file, Items& items) {
  for (auto&& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const auto* inner = node.as_table())
      flatten(*inner, key + ".", file, items);
    else
      items[key] = raw_value(node, file, key);
  }
}

/// The line up to which `text` is the shortest beginning that makes toml++ assert.
int64_t malformed_line(std::string_view text) {
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', end + 1)) try {
      (void)toml::parse(text.substr(0, end));
    } catch (const toml::parse_error&) {
    } catch (const MalformedToml&) {
      text = text.substr(0, end);
      break;
    }
  return 1 + std::count(text.begin(), text.end(), '\n');
}

toml::table parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    fail<InputError>("{}:{}:{}: {}", file, at.line, at.column, error.description());
  } catch (const MalformedToml&) {
    fail<InputError>(
        "{}:{}: not a key or a [table] name: quote names of other characters than letters, digits, - and _",
        file, malformed_line(text));
  }
}

// ---- overrides ---------------------------------------------------------------------------------------------------

/// Splits at commas that stand in no bracket and no quotes.
std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (at == text.size() || (c == ',' && !quote && depth == 0)) {
      if (const auto part = trim(text.substr(begin, at - begin)); !part.empty()) parts.push_back(part);
      begin = at + 1;
    }
  }
  return parts;
}

bool enclosed(std::string_view text, char open, char close) {
  return text.size() >= 2 && text.front() == open && text.back() == close;
}

/// A value without TOML's quotes: what TOML cannot read is a text.
Raw override_value(std::string_view text, const std::string& where) {
  Raw raw{std::string(text), std::string(text), where};
  if (enclosed(text, '[', ']')) {
    std::vector<Raw> list;
    for (const auto part : split_list(text.substr(1, text.size() - 2)))
      list.push_back(override_value(part, where));
    raw.value = std::move(list);
    return raw;
  }
  try {
    const toml::table table = toml::parse("v = " + std::string(text));
    if (table.size() == 1 && table.contains("v") && !table["v"].is_table()) {
      raw.value = raw_value(*table.get("v"), where, "").value;
      if (const auto* string = std::get_if<std::string>(&raw.value)) raw.text = *string;
    }
  } catch (const toml::parse_error&) {
  } catch (const MalformedToml&) {
  } catch (const InputError&) {  // a date or the like: a text here
  }
  return raw;
}

constexpr std::string_view own_names = ".NAME";

/// "data.weights." of "data.weights.NAME"; "" of other keys.
std::string_view own_table(const RecipeKey& key) {
  if (!key.name.ends_with(own_names)) return {};
  return std::string_view(key.name).substr(0, key.name.size() - own_names.size() + 1);
}

/// Is it a key, or a name in a table of the user's own?
bool matches(const RecipeKey& key, std::string_view name) {
  const std::string_view table = own_table(key);
  if (table.empty()) return key.name == name;
  return name.starts_with(table) && name.size() > table.size() &&
         name.find('.', table.size()) == std::string::npos;
}

bool is_key(const std::string& name) { return find_key(name) != nullptr; }

bool is_table(const std::string& name) {
  return std::any_of(recipe_keys().begin(), recipe_keys().end(),
                     [&](const auto& key) { return key.name.starts_with(name + "."); });
}

void set_override(Items& items, const std::string& key, std::string_view text, const std::string& where) {
  if (is_table(key))
    std::erase_if(items, [&](const auto& item) { return item.first.starts_with(key + "."); });
  if (enclosed(text, '{', '}')) items.erase(key);
  if (!enclosed(text, '{', '}')) {
    items[key] = override_value(text, where);
    return;
  }
  for (const auto part : split_list(text.substr(1, text.size() - 2))) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) fail<InputError>("{}: '{}' is not key=value", where, part);
    set_override(items, key + "." + std::string(trim(part.substr(0, equals))), trim(part.substr(equals + 1)),
                 where);
  }
}

// ---- from raw values to the typed recipe --------------------------------------------------------------------------

[[noreturn]] void wrong_type(const Raw& raw, const RecipeKey& key, const char* wanted) {
  fail<InputError>("{}: {} must be {}, not {}", raw.where, key.name, wanted, kind_name(raw));
}

double number(const Raw& raw, const RecipeKey& key) {
  double value = 0;
  if (const auto* integer = std::get_if<int64_t>(&raw.value))
    value = static_cast<double>(*integer);
  else if (const auto* real = std::get_if<double>(&raw.value))
    value = *real;
  else
    wrong_type(raw, key, "a number");
  if (!std::isfinite(value))
    fail<InputError>("{}: {} must be a finite number, not {}", raw.where, key.name, value);
  if (!(value >= key.low && value <= key.high))
    fail<InputError>("{}: {} must be {}, not {}", raw.where, key.name,
                     key.high >= 1e18 && value < key.low ? fmt::format("at least {}", key.low)
                                                         : fmt::format("from {} to {}", key.low, key.high),
                     value);
  return value;
}

void assign(const Raw& raw, const RecipeKey& key, double& slot) { slot = number(raw, key); }

void assign(const Raw& raw, const RecipeKey& key, int64_t& slot) {
  const double value = number(raw, key);
  if (value != std::floor(value)) wrong_type(raw, key, "a whole number");
  slot =
      std::holds_alternative<int64_t>(raw.value) ? std::get<int64_t>(raw.value) : static_cast<int64_t>(value);
}

void assign(const Raw& raw, const RecipeKey& key, bool& slot) {
  if (!std::holds_alternative<bool>(raw.value)) wrong_type(raw, key, "true or false");
  slot = std::get<bool>(raw.value);
}

void assign(const Raw& raw, const RecipeKey& key, std::string& slot) {
  if (std::holds_alternative<std::string>(raw.value))
    slot = std::get<std::string>(raw.value);
  else if (!raw.text.empty() && !std::holds_alternative<std::vector<Raw>>(raw.value))
    slot = raw.text;
  else
    wrong_type(raw, key, "a text");
  if (!key.choices.empty() && std::find(key.choices.begin(), key.choices.end(), slot) == key.choices.end())
    fail<InputError>("{}: {} cannot be '{}'; did you mean '{}'? ({})", raw.where, key.name, slot,
                     nearest(slot, key.choices), fmt::join(key.choices, ", "));
  try {
    expand(slot);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}: {}", raw.where, key.name, error.what());
  }
}

template <typename T>
void assign(const Raw& raw, const RecipeKey& key, std::vector<T>& slot) {
  slot.clear();
  if (const auto* list = std::get_if<std::vector<Raw>>(&raw.value)) {
    for (const Raw& item : *list) assign(item, key, slot.emplace_back());
  } else if (raw.text.empty()) {
    wrong_type(raw, key, "a list");
  } else {
    assign(raw, key, slot.emplace_back());  // an override of one element may leave out the brackets
  }
}

template <typename T>
void assign(const Raw&, const RecipeKey& key, std::map<std::string, T>&) {
  fail<InternalError>("{} is a table", key.name);
}

/// The user's own names of a table.
template <typename T>
void assign_table(const Items& items, const RecipeKey& key, std::map<std::string, T>& slot) {
  const std::string_view table = own_table(key);
  for (auto item = items.lower_bound(std::string(table));
       item != items.end() && item->first.starts_with(table); ++item) {
    const std::string name = item->first.substr(table.size());
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
        std::string::npos)
      fail<InputError>("{}: the name '{}' has other characters than letters, digits, - and _",
                       item->second.where, name);
    RecipeKey one = key;
    one.name = item->first;
    assign(item->second, one, slot[name]);
  }
}

[[noreturn]] void unknown_key(const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (const RecipeKey& key : recipe_keys()) names.push_back(key.name);
  const std::string leaf = name.substr(name.rfind('.') + 1);
  const auto same_leaf =
      std::find_if(names.begin(), names.end(), [&](const auto& key) { return key.ends_with("." + leaf); });
  fail<InputError>("{}: there is no key '{}'; did you mean '{}'?", where, name,
                   same_leaf != names.end() ? *same_leaf : nearest(name, names));
}

/// Keys of earlier versions. Run folders spell out every key, so that theirs have it at its default.
void drop_former_keys(Items& items) {
  if (const auto weights = items.find("data.weights"); weights != items.end()) {
    if (const auto* text = std::get_if<std::string>(&weights->second.value); !text || !text->empty())
      fail<InputError>(
          "{}: data.weights is a table of the shares of several sources; the column of weights in the loss "
          "is "
          "data.sample_weight",
          weights->second.where);
    items.erase(weights);
  }
  const auto threads = items.find("train.threads");
  if (threads == items.end()) return;
  if (const auto* number = std::get_if<int64_t>(&threads->second.value); !number || *number != 0)
    fail<InputError>("{}: there is no key 'train.threads' any more: leave it out, and give --threads instead",
                     threads->second.where);
  items.erase(threads);
}

Recipe typed(Items items) {
  drop_former_keys(items);
  // A table given as a word means its kind: optimizer = "adam".
  for (auto it = items.begin(); it != items.end();) {
    if (is_key(it->first) || !is_key(it->first + ".kind")) {
      ++it;
      continue;
    }
    items.emplace(it->first + ".kind", it->second);
    it = items.erase(it);
  }
  for (const auto& [name, raw] : items) {
    if (is_key(name)) continue;
    if (is_table(name)) fail<InputError>("{}: {} is a table of keys, not a value", raw.where, name);
    unknown_key(name, raw.where);
  }

  Recipe recipe;
  for (const RecipeKey& key : recipe_keys()) {
    const RecipeSlot slot = key.slot(recipe);
    if (auto* const* texts = std::get_if<std::map<std::string, std::string>*>(&slot))
      assign_table(items, key, **texts);
    else if (auto* const* numbers = std::get_if<std::map<std::string, double>*>(&slot))
      assign_table(items, key, **numbers);
    else if (const auto item = items.find(key.name); item != items.end())
      std::visit([&](auto* to) { assign(item->second, key, *to); }, slot);
  }

  for (const RecipeKey& key : recipe_keys()) {
    const auto item = items.find(key.name);
    if (item == items.end() || key.kinds.empty()) continue;
    const std::string kind_key = key.name.substr(0, key.name.rfind('.')) + ".kind";
    const auto spec = std::find_if(recipe_keys().begin(), recipe_keys().end(),
                                   [&](const auto& k) { return k.name == kind_key; });
    const std::string& kind = *std::get<std::string*>(spec->slot(recipe));
    if (std::find(key.kinds.begin(), key.kinds.end(), kind) == key.kinds.end())
      fail<InputError>("{}: {} means nothing to {} = '{}' (only to {})", item->second.where, key.name,
                       kind_key, kind, fmt::join(key.kinds, ", "));
  }
  return recipe;
}

// ---- writing -----------------------------------------------------------------------------------------------------

std::string toml_text(bool value) { return value ? "true" : "false"; }
std::string toml_text(int64_t value) { return fmt::format("{}", value); }
std::string toml_text(double value) { return fmt::format("{}", value); }
std::string toml_text(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      text += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      text += c;
  }
  return text + "\"";
}
template <typename T>
std::string toml_text(const std::vector<T>& list) {
  std::vector<std::string> parts;
  for (const T& item : list) parts.push_back(toml_text(item));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

template <typename T>
std::string toml_text(const std::map<std::string, T>& table) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : table) parts.push_back(name + " = " + toml_text(value));
  return parts.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(parts, ", "));
}

std::string slot_text(const RecipeKey& key, Recipe& recipe) {
  return std::visit([](auto* slot) { return toml_text(*slot); }, key.slot(recipe));
}

/// Whether the key applies to the kind that the recipe chose.
bool applies(const RecipeKey& key, Recipe& recipe) {
  if (key.kinds.empty()) return true;
  const std::string kind_key = key.name.substr(0, key.name.rfind('.')) + ".kind";
  for (const RecipeKey& other : recipe_keys())
    if (other.name == kind_key) {
      const std::string& kind = *std::get<std::string*>(other.slot(recipe));
      return std::find(key.kinds.begin(), key.kinds.end(), kind) != key.kinds.end();
    }
  return true;
}

}  // namespace

const RecipeKey* find_key(std::string_view name) {
  for (const RecipeKey& key : recipe_keys())
    if (matches(key, name)) return &key;
  return nullptr;
}

Recipe parse_recipe(std::string_view text, const std::string& name, std::span<const std::string> overrides) {
  Items items;
  flatten(parse_toml(text, name), "", name, items);
  for (const std::string& change : overrides) {
    const std::string where = "'" + change + "'";
    const size_t equals = change.find('=');
    if (equals == std::string::npos || equals == 0)
      fail<InputError>("{} is not key=value, as in train.epochs=2", where);
    set_override(items, std::string(trim(change.substr(0, equals))),
                 trim(std::string_view(change).substr(equals + 1)), where);
  }
  return typed(std::move(items));
}

Recipe load_recipe(const std::filesystem::path& path, std::span<const std::string> overrides) {
  return parse_recipe(read_text(path), path.string(), overrides);
}

void check_recipe(const Recipe& recipe, const std::string& name) {
  if (recipe.model.kind.empty() == recipe.model.layers.empty())
    fail<InputError>("{}: give either model.kind or model.layers", name);
  check_arrays(recipe, name);
  if (!has_arrays(recipe)) check_texts(recipe, name);
  check_sources(recipe, name);
  if (recipe.data.mean.size() != recipe.data.std.size())
    fail<InputError>("{}: data.mean and data.std need one number a channel each", name);
  if (recipe.train.optimizer.betas.size() != 2)
    fail<InputError>("{}: train.optimizer.betas must be two numbers", name);
  if (recipe.train.steps == 0 && recipe.train.epochs <= 0)
    fail<InputError>("{}: train.epochs must be more than 0 (or give train.steps)", name);
  if (recipe.train.batch % recipe.train.accumulate != 0)
    fail<InputError>("{}: train.batch = {} cannot be divided into train.accumulate = {} equal parts", name,
                     recipe.train.batch, recipe.train.accumulate);
  if (!recipe.data.memory.empty()) (void)parse_bytes(name + ": data.memory", recipe.data.memory);
  if (!recipe.train.memory.empty()) (void)parse_bytes(name + ": train.memory", recipe.train.memory);
  if (recipe.train.lookahead > 0 && recipe.train.precision == "bf16-pure")
    fail<InputError>(
        "{}: train.lookahead averages f32 weights, which train.precision = \"bf16-pure\" does not keep: use "
        "\"bf16\", or no lookahead",
        name);
  try {
    for (const std::string& entry : recipe.train.freeze) (void)parse_freeze(entry);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", name, error.what());
  }
}

std::string recipe_toml(const Recipe& recipe) {
  Recipe copy = recipe;
  std::string text, table;
  for (const RecipeKey& key : recipe_keys()) {
    if (!applies(key, copy)) continue;
    // A table of the user's own is written in one line; data.train is a source or a table.
    const bool table_of_sources = !copy.data.sources.empty();
    if (own_table(key) == "data.train." ? !table_of_sources : key.name == "data.train" && table_of_sources)
      continue;
    std::string_view name = key.name;
    if (!own_table(key).empty()) name.remove_suffix(own_names.size());
    const size_t dot = name.rfind('.');
    if (name.substr(0, dot) != table) {
      table = name.substr(0, dot);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table);
    }
    text += fmt::format("{} = {}\n", name.substr(dot + 1), slot_text(key, copy));
  }
  return text;
}

std::string recipe_help() {
  Recipe defaults;
  std::string text;
  for (const RecipeKey& key : recipe_keys())
    text +=
        fmt::format("  {:<30} {}\n  {:<30} default {}{}\n", key.name, key.doc, "", slot_text(key, defaults),
                    key.kinds.empty() ? "" : fmt::format("; for {}", fmt::join(key.kinds, ", ")));
  return text;
}

std::string expand(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) != "${") {
      result += text[at++];
      continue;
    }
    const size_t end = text.find('}', at);
    if (end == std::string_view::npos) fail<InputError>("'{}' has a ${{ without a }}", text);
    const std::string name(text.substr(at + 2, end - at - 2));
    const char* value = std::getenv(name.c_str());
    if (!value && name == "MILLRACE_DATA") value = "../shared/data";
    if (!value) fail<InputError>("the environment variable {} is not set", name);
    result += value;
    at = end + 1;
  }
  return result;
}

}  // namespace millrace::train
