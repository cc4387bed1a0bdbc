// The TOML of recipes, as toml++ reads it.
#include <algorithm>
#include <string>
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

#include "base/format.h"
#include "task/recipe_items.h"

namespace millrace::task {
namespace {

std::string toml_place(const toml::node& node, const std::string& file) {
  const auto at = node.source().begin;
  return fmt::format("{}:{}:{}", file, at.line, at.column);
}

/// Tables that dotted keys make have no place of their own: those count as behind all others, and their keys
/// say better.
int64_t toml_order(const toml::node& node) {
  const auto at = node.source().begin;
  return at.line == 0 ? int64_t{1} << 60
                      : (static_cast<int64_t>(at.line) << 28) + static_cast<int64_t>(at.column);
}

Raw toml_value(const toml::node& node, const std::string& file, const std::string& key) {
  Raw raw{{}, {}, toml_place(node, file), 0};
  if (const auto* flag = node.as_boolean())
    raw.value = flag->get();
  else if (const auto* integer = node.as_integer())
    raw.value = int64_t{integer->get()};
  else if (const auto* number = node.as_floating_point())
    raw.value = number->get() + 0.0;  // no -0, which is written as a whole number
  else if (const auto* text = node.as_string())
    raw.value = text->get();
  else if (const auto* array = node.as_array()) {
    std::vector<Raw> list;
    for (const toml::node& item : *array) list.push_back(toml_value(item, file, key));
    raw.value = std::move(list);
  } else {
    fail<InputError>("{}: {} has a value that recipes do not use", raw.where, key);
  }
  return raw;
}

void flatten_toml(const toml::table& table, const std::string& prefix, const std::string& file,
                  Items& items) {
  for (auto&& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (name.str().empty() || name.str().find('.') != std::string_view::npos)
      fail<InputError>(
          "{}: the name \"{}\"{} {}: names of a recipe are not empty and have no dots; those of keys stand "
          "without quotes",
          toml_place(node, file), name.str(),
          prefix.empty() ? "" : fmt::format(" in [{}]", prefix.substr(0, prefix.size() - 1)),
          name.str().empty() ? "is empty" : "has a dot");
    require_short_key(key, toml_place(node, file));
    if (const auto* inner = node.as_table()) {
      items.add_table(key, toml_place(node, file), toml_order(node));
      flatten_toml(*inner, key + ".", file, items);
    } else {
      items.add(key, toml_value(node, file, key), toml_order(node));
    }
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

}  // namespace

Items read_toml(std::string_view text, const std::string& file) {
  Items items;
  try {
    flatten_toml(toml::parse(text, file), "", file, items);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    fail<InputError>("{}:{}:{}: {}", file, at.line, at.column, error.description());
  } catch (const MalformedToml&) {
    fail<InputError>(
        "{}:{}: not a key or a [table] name: quote names of other characters than letters, digits, - and _",
        file, malformed_line(text));
  }
  return items;
}

bool read_toml_value(std::string_view text, Raw& into) {
  try {
    const toml::table table = toml::parse("v = " + std::string(text));
    if (table.size() != 1 || !table.contains("v") || table["v"].is_table()) return false;
    into.value = toml_value(*table.get("v"), into.where, "").value;
    return true;
  } catch (const toml::parse_error&) {
  } catch (const MalformedToml&) {
  } catch (const InputError&) {  // a date or the like: a text here
  }
  return false;
}

}  // namespace millrace::task
