#include "data/order/order.h"

#include <charconv>

#include "base/format.h"
#include "base/suggest.h"

namespace millrace::data {

const std::vector<const OrderKind*>& order_kinds() {
  static const std::vector<const OrderKind*> list = {
      &shuffle_order,    &sequential_order, &block_shuffle_order, &class_balanced_order,
      &stratified_order, &quota_order,      &weighted_order,      &importance_order};
  return list;
}

OrderText parse_order(std::string_view text) {
  OrderText parsed;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \t", at), text.size());
    if (end > at) parsed.words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  const std::string name = parsed.words.empty() ? "" : parsed.words[0];
  std::vector<std::string> names, usages;
  for (const OrderKind* kind : order_kinds()) {
    if (name == kind->name) parsed.kind = kind;
    names.emplace_back(kind->name);
    usages.emplace_back(kind->usage);
  }
  if (!parsed.kind)
    fail<InputError>("order \"{}\" is unknown; did you mean \"{}\"? There are: {}", text,
                     nearest(name, names), fmt::join(usages, ", "));
  return parsed;
}

void wrong_order(const OrderKind& kind, const std::vector<std::string>& words, const std::string& why) {
  fail<InputError>("order \"{}\": {}; write it as {}", fmt::join(words, " "), why, kind.usage);
}

int64_t order_integer(const OrderKind& kind, const std::vector<std::string>& words, size_t place,
                      int64_t least) {
  if (place >= words.size()) wrong_order(kind, words, "a number is missing");
  return order_integer(kind, words, std::string_view(words[place]), least);
}

int64_t order_integer(const OrderKind& kind, const std::vector<std::string>& words, std::string_view part,
                      int64_t least) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || end != part.data() + part.size() || value < least)
    wrong_order(kind, words, fmt::format("\"{}\" is no whole number from {} on", part, least));
  return value;
}

std::vector<std::vector<int64_t>> samples_of_classes(const OrderKind& kind,
                                                     const std::vector<std::string>& words,
                                                     const Population& population) {
  if (population.labels.empty()) wrong_order(kind, words, "the data has no classes");
  std::vector<std::vector<int64_t>> samples(population.classes.size());
  for (int64_t i = 0; i < population.count; ++i)
    samples[static_cast<size_t>(population.labels[static_cast<size_t>(i)])].push_back(i);
  return samples;
}

}  // namespace millrace::data
