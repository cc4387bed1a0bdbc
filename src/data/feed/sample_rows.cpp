// The orders of recipes as plans of rows.
#include "data/feed/sample_feed.h"
#include "data/table/labels.h"

namespace millrace::data {

std::unique_ptr<RowPlan> sample_rows(const Dataset& samples, const OrderedSamples& options) {
  const OrderText text = parse_order(options.order);
  std::vector<double> values;
  if (const std::string column = text.column(); !column.empty()) values = numbers_of(samples, column);
  const auto order_of = [&](int64_t first, int64_t count) {
    Population population{count, {}, options.classes, {}};
    const auto& labels = options.labels;
    if (!labels.empty()) population.labels.assign(labels.begin() + first, labels.begin() + first + count);
    if (!values.empty()) population.values.assign(values.begin() + first, values.begin() + first + count);
    return text.make(population);
  };
  if (options.parts.empty()) return ordered_rows(order_of(0, samples.count()));
  std::vector<int64_t> first;
  std::vector<std::unique_ptr<Order>> orders;
  int64_t at = 0;
  for (const int64_t count : options.parts) {
    orders.push_back(order_of(at, count));
    first.push_back(at);
    at += count;
  }
  return mixed_rows(std::move(first), std::move(orders), options.shares, samples.path());
}

}  // namespace millrace::data
