#include "data/order/order.h"

#include <charconv>

#include "base/words.h"

namespace millrace::data {

#define KIND(NAME) extern const OrderKind order_##NAME;
#include "generated/orders.inc"
#undef KIND

namespace {

std::string usage_of(const OrderKind& kind) {
  return kind.usage.empty() ? kind.name : kind.name + " " + kind.usage;
}

}  // namespace

Registry<OrderKind>& order_kinds() {
#define KIND(NAME) &order_##NAME,
  static Registry<OrderKind> all("order", {
#include "generated/orders.inc"
                                          });
#undef KIND
  return all;
}

const OrderKind& register_order(const OrderKind& kind) {
  return order_kinds().add(kind, {{"make", kind.make}});
}

std::vector<std::string> order_usages() {
  std::vector<std::string> usages;
  for (const OrderKind* kind : order_kinds().all()) usages.push_back(usage_of(*kind));
  return usages;
}

OrderText parse_order(std::string_view text) {
  OrderText parsed;
  parsed.words = split_words(text);
  const std::string name = parsed.words.empty() ? "" : parsed.words[0];
  parsed.kind = order_kinds().find(name);
  if (parsed.kind) return parsed;
  fail<InputError>("order \"{}\" is unknown{} There are: {}", text,
                   did_you_mean(name, order_kinds().names(), ".", '"'), fmt::join(order_usages(), ", "));
}

std::string OrderText::column() const { return kind->by_column && words.size() > 1 ? words[1] : ""; }

std::unique_ptr<Order> OrderText::make(const Population& population) const {
  if (kind->usage.empty() && words.size() > 1) wrong("it takes no words");
  if (kind->by_class && population.labels.empty())
    fail<InputError>(
        "order \"{}\": the data has no classes; take another order, or name their column in [output]",
        fmt::join(words, " "));
  if (kind->by_column && words.size() != 2) wrong("it takes the name of a column");
  return kind->make(*this, population);
}

void OrderText::wrong(const std::string& why) const {
  fail<InputError>("order \"{}\": {}; write it as {}", fmt::join(words, " "), why, usage_of(*kind));
}

int64_t OrderText::integer(size_t place, int64_t least) const {
  if (place >= words.size()) wrong("a number is missing");
  return integer(std::string_view(words[place]), least);
}

int64_t OrderText::integer(std::string_view part, int64_t least) const {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc() || end != part.data() + part.size() || value < least)
    wrong(fmt::format("\"{}\" is no whole number from {} on", part, least));
  return value;
}

std::vector<std::vector<int64_t>> samples_of_classes(const Population& population) {
  std::vector<std::vector<int64_t>> samples(population.classes.size());
  for (int64_t i = 0; i < population.count; ++i)
    samples[static_cast<size_t>(population.labels[static_cast<size_t>(i)])].push_back(i);
  return samples;
}

}  // namespace millrace::data
