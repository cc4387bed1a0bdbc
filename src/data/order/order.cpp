#include "data/order/order.h"

#include "base/word_settings.h"
#include "base/words.h"

namespace millrace::data {

#include "generated/orders.inc"

Registry<OrderKind>& order_kinds() {
  static Registry<OrderKind> all("order", {MILLRACE_FOUND_ORDERS});
  return all;
}

const OrderKind& register_order(const OrderKind& kind) {
  return order_kinds().add(kind, {{"make", kind.make}});
}

std::vector<std::string> order_usages() {
  std::vector<std::string> usages;
  for (const OrderKind* kind : order_kinds().all()) usages.push_back(usage_of(kind->name, kind->settings));
  return usages;
}

OrderText parse_order(std::string_view text) {
  const std::vector<std::string> words = split_words(text);
  const std::string name = words.empty() ? "" : words[0];
  const OrderKind* const kind = order_kinds().find(name);
  if (!kind)
    fail<InputError>("order \"{}\" is unknown{} There are: {}", text,
                     did_you_mean(name, order_kinds().names(), ".", '"'), fmt::join(order_usages(), ", "));
  return {kind, std::string(text), parse_words("order", text, kind->settings)};
}

std::string OrderText::column() const { return kind->by_column ? settings.text("COLUMN") : ""; }

std::unique_ptr<Order> OrderText::make(const Population& population) const {
  if (kind->by_class && population.labels.empty())
    fail<InputError>(
        "order \"{}\": the data has no classes; take another order, or name their column in [output]", text);
  return kind->make(*this, population);
}

void OrderText::wrong(const std::string& why) const {
  wrong_words("order", text, why, usage_of(kind->name, kind->settings));
}

std::vector<std::vector<int64_t>> samples_of_classes(const Population& population) {
  std::vector<std::vector<int64_t>> samples(population.classes.size());
  for (int64_t i = 0; i < population.count; ++i)
    samples[static_cast<size_t>(population.labels[static_cast<size_t>(i)])].push_back(i);
  return samples;
}

}  // namespace millrace::data
