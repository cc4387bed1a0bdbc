#include "data/tools/pack/split.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "base/fnv.h"
#include "base/format.h"
#include "data/table/labels.h"

namespace millrace::data {
namespace {

using Samples = std::vector<std::vector<int64_t>>;

/// FNV-1a of the seed and the text, its bits then mixed.
uint64_t hash_of(std::string_view text, uint64_t seed) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(seed >> (8 * i));
  return mixed_bits(fnv1a(bytes.append(text)) + 0x9e3779b97f4a7c15);
}

/// Where parts end: shares summed up, the last one exactly 1.
std::vector<double> ends_of(const SplitRule& rule) {
  std::vector<double> ends;
  double sum = 0;
  for (const SplitRule::Part& part : rule.parts) ends.push_back(sum += part.share);
  ends.back() = 1;
  return ends;
}

size_t part_at(const std::vector<double>& ends, double place) {
  return std::min<size_t>(
      static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), place) - ends.begin()), ends.size() - 1);
}

/// `ordered` cut at the shares.
void cut(const std::vector<int64_t>& ordered, const std::vector<double>& ends, Samples& parts) {
  size_t from = 0;
  for (size_t p = 0; p < ends.size(); ++p) {
    const auto to = static_cast<size_t>(std::llround(ends[p] * static_cast<double>(ordered.size())));
    for (; from < to; ++from) parts[p].push_back(ordered[from]);
  }
}

/// A column's values of all samples.
std::vector<Value> values_of(const Dataset& set, const std::string& name) {
  std::vector<std::string> names;
  for (const Column& column : set.columns()) {
    const bool small = column.kind == ColumnKind::integer || column.kind == ColumnKind::real ||
                       column.kind == ColumnKind::text;
    if (small) names.push_back(column.name);
  }
  const auto found = set.find_column(name);
  if (!found || std::find(names.begin(), names.end(), name) == names.end())
    fail<InputError>("{}: there is no column '{}' of numbers or texts to split by; there are: {}", set.path(),
                     name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  std::vector<Value> values;
  for (int64_t i = 0; i < set.count(); ++i) {
    values.push_back(set.read(i, *found));
    if (std::holds_alternative<std::monostate>(values.back()))
      fail<InputError>("{} has no '{}' to split by; give it one, or leave it out with --where", set.name(i),
                       name);
  }
  return values;
}

void split_random(const Dataset& set, const SplitRule& rule, Samples& parts) {
  const std::vector<double> ends = ends_of(rule);
  for (int64_t i = 0; i < set.count(); ++i) {
    const auto place = static_cast<double>(hash_of(key_of(set, i), rule.seed) >> 11) * 0x1p-53;
    parts[part_at(ends, place)].push_back(i);
  }
}

void split_stratified(const Dataset& set, const SplitRule& rule, Samples& parts) {
  const Labels labels(set);
  if (!labels.there()) fail<InputError>("{}: has no classes to split by; use --split-by random", set.path());
  std::map<int64_t, std::vector<std::pair<uint64_t, int64_t>>> classes;
  for (int64_t i = 0; i < set.count(); ++i)
    classes[labels[i]].emplace_back(hash_of(key_of(set, i), rule.seed), i);
  const std::vector<double> ends = ends_of(rule);
  for (auto& [label, samples] : classes) {
    std::sort(samples.begin(), samples.end());
    std::vector<int64_t> ordered;
    for (const auto& [hash, i] : samples) ordered.push_back(i);
    cut(ordered, ends, parts);
  }
}

void split_groups(const Dataset& set, const SplitRule& rule, const std::string& column, Samples& parts) {
  const std::vector<Value> values = values_of(set, column);
  std::map<std::pair<uint64_t, std::string>, std::vector<int64_t>> groups;
  for (int64_t i = 0; i < set.count(); ++i) {
    const Value& value = values[static_cast<size_t>(i)];
    const std::string text = std::holds_alternative<std::string>(value) ? std::get<std::string>(value)
                             : std::holds_alternative<int64_t>(value)
                                 ? fmt::format("{}", std::get<int64_t>(value))
                                 : fmt::format("{}", std::get<double>(value));
    groups[{hash_of(text, rule.seed), text}].push_back(i);
  }
  // A group belongs where its middle lies when all stand in a row.
  const std::vector<double> ends = ends_of(rule);
  int64_t before = 0;
  for (const auto& [key, samples] : groups) {
    const auto size = static_cast<int64_t>(samples.size());
    const double middle =
        (static_cast<double>(before) + static_cast<double>(size) / 2) / static_cast<double>(set.count());
    auto& part = parts[part_at(ends, middle)];
    part.insert(part.end(), samples.begin(), samples.end());
    before += size;
  }
}

void split_time(const Dataset& set, const SplitRule& rule, const std::string& column, Samples& parts) {
  const std::vector<Value> values = values_of(set, column);
  for (int64_t i = 0; i < set.count(); ++i) {
    const auto* real = std::get_if<double>(&values[static_cast<size_t>(i)]);
    if (real && std::isnan(*real)) fail<InputError>("{} has NaN as its '{}'", set.name(i), column);
  }
  std::vector<int64_t> ordered(static_cast<size_t>(set.count()));
  std::iota(ordered.begin(), ordered.end(), 0);
  // Compared as variants: all values of a column are of one kind.
  const auto older = [&](int64_t a, int64_t b) {
    const Value &x = values[static_cast<size_t>(a)], &y = values[static_cast<size_t>(b)];
    if (const auto* text = std::get_if<std::string>(&x)) return *text < std::get<std::string>(y);
    if (const auto* whole = std::get_if<int64_t>(&x)) return *whole < std::get<int64_t>(y);
    return std::get<double>(x) < std::get<double>(y);
  };
  std::stable_sort(ordered.begin(), ordered.end(), older);
  cut(ordered, ends_of(rule), parts);
}

}  // namespace

SplitRule SplitRule::parse(std::string_view parts, std::string by, uint64_t seed) {
  SplitRule rule;
  rule.by = std::move(by);
  rule.seed = seed;
  double sum = 0;
  for (size_t at = 0; at <= parts.size();) {
    const size_t comma = std::min(parts.find(',', at), parts.size());
    const std::string_view item = parts.substr(at, comma - at);
    const size_t equals = item.find('=');
    double share = 0;
    const char* end = item.data() + item.size();
    const bool number =
        equals != std::string_view::npos && equals > 0 &&
        std::from_chars(item.data() + equals + 1, end, share) == std::from_chars_result{end, std::errc()};
    if (!number || !(share > 0 && share <= 1))
      fail<InputError>(
          "split \"{}\": \"{}\" is no NAME=SHARE with a share above 0; write train=0.8,val=0.1,test=0.1",
          parts, item);
    const std::string name(item.substr(0, equals));
    for (const Part& part : rule.parts)
      if (part.name == name) fail<InputError>("split \"{}\": {} is there twice", parts, name);
    rule.parts.push_back({name, share});
    sum += share;
    at = comma + 1;
  }
  if (std::abs(sum - 1) > 1e-3)
    fail<InputError>("split \"{}\": the shares sum up to {:.4g}, not 1", parts, sum);
  const std::string& how = rule.by;
  const bool column =
      (how.starts_with("group:") && how.size() > 6) || (how.starts_with("time:") && how.size() > 5);
  if (how != "random" && how != "stratified" && !column)
    fail<InputError>("--split-by {}: it must be random, stratified, group:COLUMN or time:COLUMN", how);
  return rule;
}

std::vector<std::vector<int64_t>> split_samples(const Dataset& set, const SplitRule& rule) {
  Samples parts(rule.parts.size());
  if (rule.by == "random")
    split_random(set, rule, parts);
  else if (rule.by == "stratified")
    split_stratified(set, rule, parts);
  else if (rule.by.starts_with("group:"))
    split_groups(set, rule, rule.by.substr(6), parts);
  else
    split_time(set, rule, rule.by.substr(5), parts);
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].empty())
      fail<InputError>("{}: of {} samples the part {} gets none; give it a larger share, or another --seed",
                       set.path(), set.count(), rule.parts[p].name);
    std::sort(parts[p].begin(), parts[p].end());
  }
  return parts;
}

}  // namespace millrace::data
