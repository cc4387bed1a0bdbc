#include "data/codecs/text/pipeline.h"

namespace millrace::data {

Json Json::at(const char* key) const {
  if (!value.is_object()) fail<InputError>("{}: must be an object, not {}", where, value.type_name());
  const auto found = value.find(key);
  if (found == value.end()) fail<InputError>("{}: '{}' is missing", where, key);
  return {*found, fmt::format("{}{}{}", where, where.find(": ") == std::string::npos ? ": " : ".", key)};
}

std::string Json::text() const {
  if (!value.is_string()) fail<InputError>("{}: must be a text, not {}", where, value.type_name());
  return value.get<std::string>();
}

bool Json::flag() const {
  if (!value.is_boolean()) fail<InputError>("{}: must be true or false, not {}", where, value.type_name());
  return value.get<bool>();
}

int64_t Json::integer(int64_t least, int64_t most) const {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
    fail<InputError>("{}: must be a whole number", where);
  const auto number = value.get<int64_t>();
  if (number < least || number > most)
    fail<InputError>("{}: must be from {} to {}, not {}", where, least, most, number);
  return number;
}

size_t Json::items() const {
  if (!value.is_array()) fail<InputError>("{}: must be a list, not {}", where, value.type_name());
  return value.size();
}

std::string Json::text(const char* key, std::optional<std::string> usual) const {
  return usual && !has(key) ? *usual : at(key).text();
}

bool Json::flag(const char* key, std::optional<bool> usual) const {
  return usual && !has(key) ? *usual : at(key).flag();
}

void check_growth(const std::string& where, size_t before, size_t after) {
  constexpr size_t most = 32, always = 1 << 20;
  if (after > always && after / most > before)
    fail<InputError>("{}: makes {} bytes of a text of {}, more than {} times as many", where, after, before,
                     most);
}

Vocabulary read_vocabulary(const Json& json) {
  const Json vocab = json.at("vocab");
  if (!vocab.value.is_object())
    fail<InputError>("{}: must be an object of tokens and their ids", vocab.where);
  // Ids with large gaps would make tables of the vocabulary's size huge.
  const auto most = static_cast<int64_t>(2 * vocab.value.size() + 100'000);
  Vocabulary vocabulary;
  vocabulary.reserve(vocab.value.size());
  for (const auto& [token, id] : vocab.value.items())
    vocabulary.emplace(token,
                       static_cast<int32_t>(Json{id, vocab.where + " '" + token + "'"}.integer(0, most)));
  return vocabulary;
}

}  // namespace millrace::data
