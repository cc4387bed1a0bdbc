#include "check/codes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/format.h"
#include "check/telltales.h"
#include "data/table/select.h"
#include "task/feed_parts.h"

namespace millrace::check {
namespace {

constexpr size_t most_codes = 20;

/// Numbers that say something of each sample.
struct Feature {
  std::vector<double> values;
  bool one_value = false;  // 1 where a column has one of its values: amounts in the middle may have their own
};

/// A class of each number: their order is kept; -1 where there is none. Empty unless all are whole and
/// (nearly) one after the other, and no more than codes mostly are.
std::vector<int> codes_of(const std::vector<double>& numbers, size_t& count) {
  std::set<double> values;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    if (number != std::floor(number)) return {};
    values.insert(number);
    if (values.size() > most_codes) return {};
  }
  count = values.size();
  constexpr double left_out = 1.25;  // a class in five may have no sample here
  if (count < 2 || *values.rbegin() - *values.begin() + 1 > left_out * static_cast<double>(count)) return {};
  std::vector<int> codes;
  for (const double number : numbers)
    codes.push_back(
        std::isfinite(number) ? static_cast<int>(std::distance(values.begin(), values.find(number))) : -1);
  return codes;
}

/// Of a column of numbers: where each stands among them, so that no unit rules; of few values one for each.
void add_column(const Column& column, std::vector<Feature>& to) {
  constexpr size_t most_values = 32;
  if (column.numeric) {
    std::vector<double> sorted;
    for (const double x : column.numbers)
      if (std::isfinite(x)) sorted.push_back(x);
    std::sort(sorted.begin(), sorted.end());
    std::vector<double>& own = to.emplace_back().values;
    for (const double x : column.numbers)
      own.push_back(std::isfinite(x) ? static_cast<double>(std::lower_bound(sorted.begin(), sorted.end(), x) -
                                                           sorted.begin())
                                     : NAN);
  }
  const std::vector<int64_t> cells = cells_of(column);
  std::map<int64_t, int64_t> values;
  for (const int64_t cell : cells) ++values[cell];
  if (values.size() > most_values) return;
  for (const auto& [value, times] : values) {
    Feature& own = to.emplace_back();
    own.one_value = true;
    for (const int64_t cell : cells) own.values.push_back(cell == value ? 1 : 0);
  }
}

/// What of a numeric array is left of each sample: the means of so many parts of it, or how often tokens are
/// in it.
void add_array(const Array& array, bool tokens, const data::FeedBatch& batch, size_t samples,
               std::vector<Feature>& to, size_t first) {
  constexpr int64_t parts = 64;
  const int64_t width = array.count() / std::max<int64_t>(1, array.shape()[0].size());
  if (width == 0) return;
  constexpr int64_t most_read = 20'000;
  const int64_t step = std::max<int64_t>(1, width / most_read);
  const int64_t kept = tokens ? parts : std::min(parts, width);
  to.resize(std::max(to.size(), first + static_cast<size_t>(kept)));
  for (size_t f = first; f < first + static_cast<size_t>(kept); ++f) to[f].values.resize(samples);
  for (int64_t row = 0; row < batch.valid; ++row)
    for (int64_t i = 0; i < width; i += step) {
      const double x = array.at(row * width + i);
      const int64_t part = tokens ? (static_cast<int64_t>(x) % parts + parts) % parts : i * kept / width;
      to[first + static_cast<size_t>(part)]
          .values[static_cast<size_t>(batch.samples[static_cast<size_t>(row)])] += tokens ? 1 : x;
    }
}

/// Of inputs that are no columns, from some hundred samples; `targets` becomes those of these samples.
std::vector<Feature> features_of_arrays(const Context& context, Targets& targets) {
  constexpr int64_t most = 600;
  std::vector<Feature> features;
  const auto some = data::sample_of(context.samples(), most);
  targets = read_targets_of(*targets.output, context, some);
  if (std::ssize(targets.numbers) != some->count()) return {};
  const auto& inputs = context.task()->inputs;
  const bool texts =
      std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input->gives() == "tokens"; });
  task::TaskFeed set = task::open_predictions(*context.task(), some, std::min<int64_t>(some->count(), 50));
  for (int64_t b = 0; b < set.feed->batches_per_epoch(); ++b) {
    const data::FeedBatch& batch = set.feed->next();
    if (batch.samples.empty()) return {};  // a row is more than one sample
    size_t first = 0;
    for (size_t field = 0; field < set.feed->fields().size(); ++field, first += 64)
      if (const Array array = set.feed->array(batch, field); array.shape().rank() > 1)
        add_array(array, texts && !array.dtype().is_float(), batch, targets.numbers.size(), features, first);
  }
  return features;
}

/// How far means of classes lie apart, as a sum of squares over samples: as they are, and as the nearest that
/// never fall (or never rise) from code to code; of one value those that do one and then the other,
/// and without what one class alone has.
struct Apart {
  double all = 0, in_order = 0;
};

/// Of the nearest means that rise and then fall, with the top at `top` classes.
double up_and_down(const std::vector<double>& means, const std::vector<double>& weights, double mean,
                   size_t top) {
  struct Block {
    double mean, weight;
  };
  double squares = 0;
  std::vector<Block> blocks;  // pool adjacent violators
  for (size_t c = 0; c <= means.size(); ++c) {
    if (c == top || c == means.size()) {
      for (const Block& block : blocks) squares += block.weight * (block.mean - mean) * (block.mean - mean);
      blocks.clear();
      if (c == means.size()) break;
    }
    blocks.push_back({means[c], weights[c]});
    const double sign = c < top ? 1 : -1;
    while (blocks.size() > 1 && sign * blocks[blocks.size() - 2].mean > sign * blocks.back().mean) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& joint = blocks.back();
      joint.mean = (joint.mean * joint.weight + last.mean * last.weight) / (joint.weight + last.weight);
      joint.weight += last.weight;
    }
  }
  return squares;
}

/// Both in units of the variance within classes; 0 where means differ no more than by chance.
Apart apart(const Feature& feature, const std::vector<int>& codes, size_t count) {
  std::vector<double> sums(count), squares(count), times(count);
  double mean = 0, samples = 0;
  for (size_t i = 0; i < codes.size() && i < feature.values.size(); ++i) {
    const double x = feature.values[i];
    if (codes[i] < 0 || !std::isfinite(x)) continue;
    const auto c = static_cast<size_t>(codes[i]);
    sums[c] += x;
    squares[c] += x * x;
    ++times[c];
    mean += x;
    ++samples;
  }
  if (samples == 0) return {};
  mean /= samples;
  std::vector<double> means, weights;
  double within = 0, between = 0;
  for (size_t c = 0; c < count; ++c) {
    if (times[c] == 0) continue;
    means.push_back(sums[c] / times[c]);
    weights.push_back(times[c]);
    within += squares[c] - sums[c] * means.back();
    between += times[c] * (means.back() - mean) * (means.back() - mean);
  }
  const double freedom = static_cast<double>(means.size()) - 1;
  // Of what is exactly told by the class a little is taken for chance, so that it does not rule alone.
  const double variance = std::max(within, 0.01 * (within + between)) / std::max(1.0, samples - freedom - 1);
  if (freedom < 1 || variance <= 0 || between / variance < freedom + 5 * std::sqrt(2 * freedom)) return {};
  double in_order = 0;
  for (size_t top = 0; top <= means.size(); ++top)
    if (feature.one_value || top == 0 || top == means.size())
      in_order = std::max(in_order, up_and_down(means, weights, mean, top));
  // A value that one class has is as likely of amounts as of codes.
  double own = 0;
  for (size_t c = 0; feature.one_value && c < means.size(); ++c)
    own = std::max(own, weights[c] * (means[c] - mean) * (means[c] - mean) * samples /
                            std::max(1.0, samples - weights[c]));
  return {(between - own) / variance, (in_order - own) / variance};
}

/// Of all features; 0 where they tell no more than chance would.
Apart apart(const std::vector<Feature>& features, const Targets& targets) {
  size_t count = 0;
  const std::vector<int> codes = codes_of(targets.numbers, count);
  constexpr size_t enough = 50;
  Apart sum;
  if (codes.size() < enough) return sum;
  for (const Feature& feature : features) {
    const Apart own = apart(feature, codes, count);
    sum.all += own.all;
    sum.in_order += own.in_order;
  }
  constexpr double least = 20;
  return sum.all < least ? Apart() : sum;
}

}  // namespace

Finding judge_codes(const Context& context, const Targets& all) {
  size_t count = 0;
  if (codes_of(all.numbers, count).empty()) return passed("");
  const Moments m = moments_of(all.numbers);
  constexpr const char* advice =
      "are these codes of classes? Then output.kind = \"class\": a number between two codes means nothing, "
      "and half-way between the first and the third is the second; amounts, grades and counts stay as they "
      "are";
  const std::string saw = fmt::format("{} has no values but whole numbers from {} to {}", all.column,
                                      short_number(m.least), short_number(m.most));
  constexpr size_t few = 3;
  if (count <= few) return warned(saw, advice);
  constexpr int64_t most = 4000;
  Targets targets = read_targets_of(*all.output, context, context.samples(), most);
  std::vector<Feature> features;
  for (const Columns table = read_table(context, *context.samples(), most);
       const Column& column : table.columns)
    if (column.input && !column.target && column.codes.size() == targets.numbers.size())
      add_column(column, features);
  Apart sum = apart(features, targets);
  if (sum.all == 0 && !context.quick()) {
    features = features_of_arrays(context, targets);
    sum = apart(features, targets);
  }
  constexpr double share_in_order = 0.7;
  if (sum.all == 0 || sum.in_order > share_in_order * sum.all) return passed("");
  return warned(
      fmt::format("{}, and inputs tell them apart, but not in this order: of what they tell {} goes up "
                  "or down with the number",
                  saw, share_text(sum.in_order / sum.all)),
      advice);
}

}  // namespace millrace::check
