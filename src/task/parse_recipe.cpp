#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "base/contains.h"
#include "base/file.h"
#include "base/format.h"
#include "base/suggest.h"
#include "data/formats/content.h"
#include "data/formats/formats.h"
#include "data/io/open_file.h"
#include "nn/models/architecture.h"
#include "task/recipe.h"
#include "task/recipe_items.h"
#include "task/recipe_moved.h"
#include "task/recipe_sections.h"
#include "task/recipe_unknown.h"

namespace millrace::task {
namespace {

// ---- keys of [data], [train] and [eval] -------------------------------------------------------------------

[[noreturn]] void wrong_type(const Raw& raw, const RecipeKey& key, const char* wanted) {
  fail<InputError>("{}: {} must be {}, not {}", raw.where, key.name, wanted, raw_type(raw));
}

double number_of(const Raw& raw, const RecipeKey& key) {
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

/// Variables in it must be set: said at once, not when they are needed.
void require_variables(const std::string& text, const std::string& where, const std::string& key) {
  try {
    expand(text);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}: {}", where, key, error.what());
  }
}

void assign(const Raw& raw, const RecipeKey& key, double& slot) { slot = number_of(raw, key); }

void assign(const Raw& raw, const RecipeKey& key, int64_t& slot) {
  if (const auto* text = std::get_if<std::string>(&raw.value); key.word && text && *text == key.word) {
    slot = 0;
    return;
  }
  const double value = number_of(raw, key);
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
  if (!key.choices.empty() && !contains(key.choices, slot))
    fail<InputError>("{}: {} cannot be '{}'{} ({})", raw.where, key.name, slot,
                     did_you_mean(slot, key.choices), fmt::join(key.choices, ", "));
  if (key.check) try {
      key.check(slot);
    } catch (const InputError& error) {
      fail<InputError>("{}: {} {}", raw.where, key.name, error.what());
    }
  require_variables(slot, raw.where, key.name);
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

constexpr std::string_view own_names = ".NAME";

/// "data.weights." of "data.weights.NAME"; "" of other keys.
std::string_view own_table(const RecipeKey& key) {
  if (!key.name.ends_with(own_names)) return {};
  return std::string_view(key.name).substr(0, key.name.size() - own_names.size() + 1);
}

/// Is it the key, or a name in a table of the user's own?
bool matches(const RecipeKey& key, std::string_view name) {
  const std::string_view table = own_table(key);
  if (table.empty()) return key.name == name;
  return name.starts_with(table) && name.size() > table.size() &&
         name.find('.', table.size()) == std::string::npos;
}

/// The user's own names of a table.
template <typename T>
void assign_table(const Items& items, const RecipeKey& key, std::map<std::string, T>& slot) {
  const std::string_view table = own_table(key);
  for (auto item = items.values.lower_bound(std::string(table));
       item != items.values.end() && item->first.starts_with(table); ++item) {
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

void assign_keys(const Items& items, Recipe& recipe) {
  for (const RecipeKey& key : recipe_keys()) {
    const RecipeSlot slot = key.slot(recipe);
    if (auto* const* texts = std::get_if<std::map<std::string, std::string>*>(&slot))
      assign_table(items, key, **texts);
    else if (auto* const* numbers = std::get_if<std::map<std::string, double>*>(&slot))
      assign_table(items, key, **numbers);
    else if (const auto item = items.values.find(key.name); item != items.values.end())
      std::visit([&](auto* to) { assign(item->second, key, *to); }, slot);
  }
}

// ---- sections ---------------------------------------------------------------------------------------------

/// Names of inputs and outputs become parts of names of parameters and arrays.
void check_section_name(const std::string& name, const std::string& table, const std::string& where) {
  const bool word =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (name.empty() || !word || std::isdigit(static_cast<unsigned char>(name[0])))
    fail<InputError>("{}: the name '{}' in [{}] must be letters, digits and _, and not begin with a digit",
                     where, name, table);
  // [model.NAME] stands beside the model's own keys, and batches have the array "mixed.target" of their own.
  const bool model_key = table == "inputs" && (name == "kind" || name == "layers" ||
                                               !kinds_with(SectionType::model, name).empty());
  if (name == "kind" || name == "mixed" || model_key)
    fail<InputError>("{}: {}.{} cannot have this name: {}; take another", where, table, name,
                     name == "mixed" ? "arrays of a batch are called so" : "a key is called so");
}

/// The sections of inputs, or of outputs, by name and in the order that they are written in.
std::vector<Section> named_sections(const Items& items, const std::string& one, const std::string& several) {
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [name, table] : items.tables)
    if (name.starts_with(several + ".") && name.find('.', several.size() + 1) == std::string::npos) {
      check_section_name(name.substr(several.size() + 1), several, table.where);
      order.emplace_back(table.order, name.substr(several.size() + 1));
    }
  if (order.empty()) return {Section{}};
  std::stable_sort(order.begin(), order.end());
  if (const auto both = items.tables.find(one); both != items.tables.end())
    fail<InputError>("{}: there is [{}] and [{}.{}]: give all of them names", both->second.where, one,
                     several, order[0].second);
  if (order.size() == 1)
    fail<InputError>("{}: [{}.{}] is the only one: write [{}]; names are for several",
                     items.tables.at(several + "." + order[0].second).where, several, order[0].second, one);
  std::vector<Section> sections;
  for (const auto& [at, name] : order) sections.emplace_back().name = name;
  return sections;
}

[[noreturn]] void not_a_table(const std::string& name, const Raw& raw) {
  fail<InputError>("{}: {} is a table of keys, not {}: give its keys, in [{}] or as {}.KEY", raw.where, name,
                   raw_type(raw), name, name);
}

/// A table given as a word means its kind: optimizer = "adam". Of losses the kind is the word.
void words_to_kinds(Items& items) {
  const auto move = [&](auto item, const std::string& to) {
    Raw raw = std::move(item->second);
    const bool word =
        !to.ends_with(".loss");  // "X" gives way to "X.kind", which is written later where both are
    const auto next = items.values.erase(item);
    if (word)
      items.values.try_emplace(to, std::move(raw));
    else
      items.values.insert_or_assign(to, std::move(raw));
    return next;
  };
  for (auto it = items.values.begin(); it != items.values.end();) {
    const std::string name = it->first;
    const auto section = section_key(name);
    if (section && section->type == SectionType::output && section->key == "loss.kind") {
      it = move(it, section->section + ".loss");
      continue;
    }
    const auto kind = section_key(name + ".kind");
    const bool word =
        kind && kind->key == "kind" &&
        (kind->type != SectionType::branch || items.tables.contains("inputs." + name.substr(6)));
    if (!word) {
      ++it;
      continue;
    }
    for (const auto& [table, type] :
         {std::pair("inputs.", SectionType::input), {"outputs.", SectionType::output}})
      if (name.starts_with(table) &&
          (!std::holds_alternative<std::string>(it->second.value) || name.ends_with(".kind")))
        fail<InputError>("{}: [{}s] has tables by the names of {}s, and {} is none; with one {} write [{}]",
                         it->second.where, name.substr(0, name.find('.') - 1),
                         name.substr(0, name.find('.') - 1), name, name.substr(0, name.find('.') - 1),
                         name.substr(0, name.find('.') - 1));
    if (!std::holds_alternative<std::string>(it->second.value)) not_a_table(name, it->second);
    items.add_table(name, it->second.where, it->second.order);
    it = move(it, name + ".kind");
  }
}

/// A section, what kind it has, and where that is written.
struct Found {
  SectionType type;
  Section* section;
  std::string kind, where;
};
using FoundSections = std::map<std::string, Found>;  // by name: "inputs.photo"

FoundSections find_sections(const Items& items, Recipe& recipe) {
  FoundSections found;
  recipe.inputs = named_sections(items, "input", "inputs");
  recipe.outputs = named_sections(items, "output", "outputs");
  for (Section& input : recipe.inputs) found[input_key(input)] = {SectionType::input, &input, {}, {}};
  for (Section& output : recipe.outputs) found[output_key(output)] = {SectionType::output, &output, {}, {}};
  found["model"] = {SectionType::model, &recipe.model, {}, {}};
  found["train.optimizer"] = {SectionType::optimizer, &recipe.train.optimizer, {}, {}};
  found["train.schedule"] = {SectionType::schedule, &recipe.train.schedule, {}, {}};
  for (const auto& [name, table] : items.tables) {
    if (!name.starts_with("model.")) continue;
    const std::string input = name.substr(6);
    const auto same = [&](const Section& each) { return !each.name.empty() && each.name == input; };
    if (std::none_of(recipe.inputs.begin(), recipe.inputs.end(), same)) {
      std::vector<std::string> names;
      for (const Section& each : recipe.inputs)
        if (!each.name.empty()) names.push_back(each.name);
      if (names.empty())
        fail<InputError>(
            "{}: [{}] is for the network of one of several inputs, and there are none with names",
            table.where, name);
      const std::string best = near(input, names);
      fail<InputError>("{}: [{}] belongs to no input{}", table.where, name,
                       best.empty() ? fmt::format("; there are: {}", fmt::join(names, ", "))
                                    : fmt::format("; did you mean [model.{}]?", best));
    }
    Section& branch = recipe.model.branches[input];
    branch.name = input;
    found[name] = {SectionType::branch, &branch, {}, {}};
  }
  return found;
}

void require_texts(const SettingValue& value, const std::string& where, const std::string& key) {
  if (const auto* text = std::get_if<std::string>(&value)) require_variables(*text, where, key);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value))
    for (const std::string& text : *list) require_variables(text, where, key);
}

/// A file named as the kind of a model stands for the kind that comes from such files.
void file_as_kind(std::string& kind, Section& section, const std::string& where) {
  const nn::Architecture* const of_file = nn::architecture_of_file(kind);
  if (!of_file) return;
  require_variables(kind, where, "model.kind");
  section.items[of_file->file] = {kind, where, kind};
  kind = of_file->name;
}

/// Hands every value to its section; InputError for those that belong nowhere.
void fill_sections(const Items& items, FoundSections& found) {
  for (const auto& [name, raw] : items.values) {
    if (find_key(name)) continue;
    const auto place = section_key(name);
    const auto section = place ? found.find(place->section) : found.end();
    if (section == found.end()) {
      if (is_table_name(name) && !place) not_a_table(name, raw);
      unknown_key(name, raw.where);
    }
    const SettingValue value = setting_value(raw, name);
    if (place->key == "kind") {
      if (std::holds_alternative<std::string>(value))
        section->second.kind = std::get<std::string>(value);
      else
        fail<InputError>("{}: {} must be a text, not {}", raw.where, name, raw_type(raw));
      section->second.where = raw.where;
      if (place->type == SectionType::model || place->type == SectionType::branch)
        file_as_kind(section->second.kind, *section->second.section, raw.where);
      continue;
    }
    const std::vector<std::string> known = section_keys(place->type);
    if (!contains(known, place->key)) unknown_key(name, raw.where);
    require_texts(value, raw.where, name);
    section->second.section->items[place->key] = {value, raw.where, raw.text};
  }
}

/// Sections whose kind is written get their settings; the others wait for the data. Losses are checked in any
/// case.
void settle_sections(FoundSections& found, const Recipe& recipe) {
  for (auto& [name, each] : found) {
    if (each.kind.empty() && each.type == SectionType::optimizer) each.kind = "adamw";
    if (each.kind.empty() && each.type == SectionType::schedule) each.kind = "constant";
    if (each.type == SectionType::output) (void)loss_of(*each.section);  // says more than that it is a text
    const bool of_layers = (each.type == SectionType::model && !recipe.model.layers.empty()) ||
                           (each.type == SectionType::branch && each.section->items.contains("layers"));
    if (!each.kind.empty() || of_layers)
      settle_section(each.type, *each.section, name, each.kind, each.where);
    if (each.type == SectionType::output) (void)loss_of(*each.section);
  }
}

/// "5", or "NAME=5", of a number that stands for one.
Raw named_number(const Raw& raw, const std::string& name) {
  std::string number = raw.text;
  if (const auto* whole = std::get_if<int64_t>(&raw.value)) number = fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&raw.value)) number = fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&raw.value)) number = *text;
  if (number.empty())
    fail<InputError>("{}: {} must be a number, not {}", raw.where, name.empty() ? "each" : name,
                     raw_type(raw));
  number = name.empty() ? number : name + "=" + number;
  return {number, number, raw.where, raw.order};
}

/// Settings of named numbers as the list of texts that they are: { a = 1 } → ["a=1"], [1, 2] → ["1", "2"]. A
/// single one, "output.class_weights.a=1", takes the place of the one of that name in the list.
void list_named_numbers(Items& items) {
  for (auto it = items.values.begin(); it != items.values.end();) {
    const auto place = section_key(it->first);
    const std::string key = place ? place->key.substr(0, place->key.find('.')) : "";
    if (!place || place->type != SectionType::output || !named_numbers(place->type, key)) {
      ++it;
      continue;
    }
    const Raw raw = it->second;
    if (place->key == key) {
      if (const auto* list = std::get_if<std::vector<Raw>>(&raw.value)) {
        std::vector<Raw> texts;
        for (const Raw& each : *list) texts.push_back(named_number(each, ""));
        it->second.value = std::move(texts);
        it->second.text.clear();
      }
      ++it;
      continue;
    }
    it = items.values.erase(it);
    const std::string name = place->key.substr(key.size() + 1), whole = place->section + "." + key;
    Raw& list =
        items.values.try_emplace(whole, Raw{std::vector<Raw>(), "", raw.where, raw.order}).first->second;
    if (!std::holds_alternative<std::vector<Raw>>(list.value)) list.value = std::vector<Raw>();
    auto& texts = std::get<std::vector<Raw>>(list.value);
    std::erase_if(texts, [&](const Raw& each) { return each.text.starts_with(name + "="); });
    texts.push_back(named_number(raw, name));
    items.tables.erase(whole);
  }
}

Recipe typed_recipe(Items items) {
  refuse_moved_keys(items);
  refuse_unknown_sections(items);
  words_to_kinds(items);
  Recipe recipe;
  FoundSections found = find_sections(items, recipe);
  fill_sections(items, found);
  assign_keys(items, recipe);
  settle_sections(found, recipe);
  return recipe;
}

}  // namespace

const RecipeKey* find_key(std::string_view name) {
  for (const RecipeKey& key : recipe_keys())
    if (matches(key, name)) return &key;
  return nullptr;
}

Recipe parse_recipe(std::string_view text, const std::string& name, std::span<const std::string> overrides) {
  Items items = read_toml(text, name);
  list_named_numbers(items);
  for (const std::string& change : overrides) {
    apply_override(items, change);
    list_named_numbers(items);
  }
  return typed_recipe(std::move(items));
}

namespace {

/// What the file holds, where it is data rather than a recipe; "" where it is not.
std::string data_in(const std::string& path) {
  const data::ColumnKind kind = data::file_kind(path);
  if (kind == data::ColumnKind::picture || kind == data::ColumnKind::audio) return data::kind_name(kind);
  const data::Format* const format = data::format_of(*data::open_file(path));
  return format && format->name != std::string_view("text") ? format->doc : "";
}

}  // namespace

Recipe load_recipe(const std::filesystem::path& path, std::span<const std::string> overrides) {
  try {
    return parse_recipe(read_text(path), path.string(), overrides);
  } catch (const InputError&) {
    const std::string what = path.extension() == ".toml" ? "" : data_in(path.string());
    if (what.empty()) throw;
    fail<InputError>("{0}: that is data ({1}), not a recipe; millrace init {0} > recipe.toml drafts one",
                     path.string(), what);
  }
}

}  // namespace millrace::task
