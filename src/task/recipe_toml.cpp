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
#include "task/toml_text.h"

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

/// Refuses keys of more parts than toml++ could take apart: it makes a table within a table of each, and
/// frees them by recursion. Values have no dots of their own outside of texts, but for one or two in numbers.
void refuse_deep_keys(std::string_view text, const std::string& file) {
  constexpr int64_t most_dots = 256;
  int64_t line = 1, dots = 0;
  size_t at = 0;
  const auto skip_text = [&](char quote) {
    const std::string fence(3, quote);
    const bool lines = text.substr(at).starts_with(fence);
    at += lines ? 3 : 1;
    for (; at < text.size(); ++at) {
      if (quote == '"' && text[at] == '\\') {
        ++at;
      } else if (lines ? text.substr(at).starts_with(fence) : text[at] == quote) {
        at += lines ? 3 : 1;
        return;
      } else if (text[at] == '\n') {
        if (!lines) return;
        ++line;
      }
    }
  };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      skip_text(c);
      continue;
    }
    if (c == '#') at = std::min(text.find('\n', at), text.size());
    if (at < text.size() && text[at] == '\n') ++line;
    if (c == '.' && ++dots > most_dots)
      fail<InputError>("{}:{}: a key of more than {} parts, and none of a recipe has more than 8", file, line,
                       most_dots);
    if (std::string_view("=,[]{}#\n").find(c) != std::string_view::npos) dots = 0;
    ++at;
  }
}

toml::table parse_toml(std::string_view text, const std::string& file) {
  refuse_deep_keys(text, file);
  return toml::parse(text, file);
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
    flatten_toml(parse_toml(text, file), "", file, items);
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

std::map<std::string, std::string> keys_and_values(std::string_view text, const std::string& file) {
  std::map<std::string, std::string> keys;
  for (const auto& [key, raw] : read_toml(text, file).values) keys[key] = toml_text(setting_value(raw, key));
  return keys;
}

bool read_toml_value(std::string_view text, Raw& into) {
  try {
    const toml::table table = parse_toml("v = " + std::string(text), "");
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
