#include "data/table/split.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>

#include <millrace/random.h>

#include "base/contains.h"
#include "base/fnv.h"
#include "base/format.h"
#include "base/number_from.h"
#include "base/suggest.h"
#include "base/words.h"
#include "data/table/dates.h"
#include "data/table/labels.h"
#include "data/table/query.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

using Samples = std::vector<std::vector<int64_t>>;

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

/// `ordered` cut at the shares; of two parts each gets one where there are two.
void cut(const std::vector<int64_t>& ordered, const std::vector<double>& ends, Samples& parts) {
  size_t from = 0;
  for (size_t p = 0; p < ends.size(); ++p) {
    auto to = static_cast<size_t>(std::llround(ends[p] * static_cast<double>(ordered.size())));
    if (p == 0 && ends.size() == 2 && ordered.size() > 1) to = std::clamp<size_t>(to, 1, ordered.size() - 1);
    for (; from < to; ++from) parts[p].push_back(ordered[from]);
  }
}

/// A column's values of all samples.
std::vector<Value> values_of(const Dataset& set, const SplitRule& rule) {
  const std::string& name = rule.by.column;
  std::vector<std::string> names;
  for (const Column& column : set.columns())
    if (is_tabular(column.kind)) names.push_back(column.name);
  const auto found = set.find_column(name);
  if (!found || !contains(names, name))
    fail<InputError>("{}: there is no column '{}' of numbers or texts to split by; {}there are: {}",
                     set.path(), name,
                     names.empty() ? "" : fmt::format("did you mean '{}'? ", nearest(name, names)),
                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  constexpr int64_t run = 1 << 14;
  std::vector<Value> values;
  for (int64_t first = 0; first < set.count(); first += run) {
    const int64_t count = std::min(run, set.count() - first);
    const auto read =
        std::make_shared<const ColumnValues>(std::move(read_columns(set, first, count, {&*found, 1})[0]));
    for (int64_t i = 0; i < count; ++i) {
      Value value = value_at(read, static_cast<size_t>(i));
      const auto* real = std::get_if<double>(&value);
      if (std::holds_alternative<std::monostate>(value) || (real && std::isnan(*real)))
        fail<InputError>("{} has no '{}' to split by; give it one, or leave such samples out: {} \"{}\"",
                         set.name(first + i), name, rule.where, has_a_value(name));
      values.push_back(std::move(value));
    }
  }
  return values;
}

void split_random(const Dataset& set, const SplitRule& rule, Samples& parts) {
  const std::vector<double> ends = ends_of(rule);
  for (int64_t i = 0; i < set.count(); ++i) {
    const auto place = static_cast<double>(split_hash(key_of(set, i), rule.seed) >> 11) * 0x1p-53;
    parts[part_at(ends, place)].push_back(i);
  }
}

/// Classes are whole numbers or texts.
struct ByClass {
  bool operator()(const Value& a, const Value& b) const {
    const auto *text = std::get_if<std::string>(&a), *other = std::get_if<std::string>(&b);
    if (text && other) return *text < *other;
    return text || other ? other != nullptr : std::get<int64_t>(a) < std::get<int64_t>(b);
  }
};

void split_stratified(const Dataset& set, const SplitRule& rule, std::span<const int64_t> given,
                      Samples& parts) {
  std::optional<size_t> column;
  if (given.empty()) column = set.class_column() ? set.class_column() : find_label(set);
  if (given.empty() && !column)
    fail<InputError>("{}: has no column of classes (label, class) to split by; use --split-by random",
                     set.path());
  std::map<Value, std::vector<std::pair<uint64_t, int64_t>>, ByClass> classes;
  for (int64_t i = 0; i < set.count(); ++i)
    classes[column ? class_of(set, i, *column) : Value(given[static_cast<size_t>(i)])].emplace_back(
        split_hash(key_of(set, i), rule.seed), i);
  const std::vector<double> ends = ends_of(rule);
  for (auto& [label, samples] : classes) {
    std::sort(samples.begin(), samples.end());
    std::vector<int64_t> ordered;
    for (const auto& [hash, i] : samples) ordered.push_back(i);
    cut(ordered, ends, parts);
  }
}

/// Runs that belong together, in their order. One belongs where its middle lies when all stand in a row, and
/// every part gets one.
void place_runs(const Dataset& set, const std::vector<std::vector<int64_t>>& runs, const SplitRule& rule,
                Samples& parts) {
  if (runs.size() < parts.size())
    fail<InputError>("{}: {} '{}', so that they cannot be on {} sides; split by another column", set.path(),
                     runs.size() == 1
                         ? fmt::format("all {} samples have the same", set.count())
                         : fmt::format("the {} samples have {} different", set.count(), runs.size()),
                     rule.by.column, parts.size());
  const std::vector<double> ends = ends_of(rule);
  size_t before = 0, next = 0;  // samples; the first part that has none
  for (size_t r = 0; r < runs.size(); ++r) {
    const double middle = static_cast<double>(before) + static_cast<double>(runs[r].size()) / 2;
    size_t p = std::min(part_at(ends, middle / static_cast<double>(set.count())), next);
    p = std::max(p, parts.size() - std::min(parts.size(), runs.size() - r));
    parts[p].insert(parts[p].end(), runs[r].begin(), runs[r].end());
    next = p + 1;
    before += runs[r].size();
  }
}

void split_groups(const Dataset& set, const SplitRule& rule, Samples& parts) {
  const std::vector<Value> values = values_of(set, rule);
  std::map<std::pair<uint64_t, std::string>, std::vector<int64_t>> groups;
  for (int64_t i = 0; i < set.count(); ++i) {
    const Value& value = values[static_cast<size_t>(i)];
    const std::string text = std::holds_alternative<std::string>(value) ? std::get<std::string>(value)
                             : std::holds_alternative<int64_t>(value)
                                 ? fmt::format("{}", std::get<int64_t>(value))
                                 : fmt::format("{}", std::get<double>(value));
    groups[{split_hash(text, rule.seed), text}].push_back(i);
  }
  std::vector<std::vector<int64_t>> runs;
  for (auto& [key, samples] : groups) runs.push_back(std::move(samples));
  place_runs(set, runs, rule, parts);
}

/// Replaces texts by days where most are dates, in whatever way they are written: "9 Jan 2025" is before
/// "2 Feb 2025", and "12/31/2024" before both.
void read_dates(const Dataset& set, const SplitRule& rule, std::vector<Value>& values) {
  size_t days = 0, months = 0, years = 0;
  bool differ = false;
  for (const Value& value : values) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) return;
    const auto by_day = parse_date(*text, DateOrder::day_first),
               by_month = parse_date(*text, DateOrder::month_first);
    days += by_day.has_value();
    months += by_month.has_value();
    differ = differ || by_day != by_month;
    // "24-12-31" may be of 2024 or of 2031.
    if (text->find('-') == 2) years += parse_date("20" + *text, DateOrder::day_first).has_value();
  }
  const size_t most = std::max(days, months);
  if (2 * most <= values.size()) return;
  const std::string& name = rule.by.column;
  const DateOrder order = days > months ? DateOrder::day_first : DateOrder::month_first;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string text = std::get<std::string>(values[i]);
    const auto day = parse_date(text, order);
    const auto sample = static_cast<int64_t>(i);
    if (!day)
      fail<InputError>(
          "{}: its '{}' is '{}', but most are dates; mend it, or leave such samples out: {} \"{} != '{}'\"",
          set.name(sample), name, text.substr(0, 40), rule.where, quoted_column(name), text.substr(0, 40));
    if ((differ && days == months) || years == most)
      fail<InputError>(
          "{}: its '{}' is '{}': is that the day first, the month or the year? Nothing in this column tells, "
          "so that the newest samples cannot be found; write the year first, with four digits: 2024-12-31",
          set.name(sample), name, text.substr(0, 40));
    values[i] = *day;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The alphabet, but for digits, which are numbers: "v9" is before "v10", "8:30" before "19:57".
bool naturally_before(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  const auto digits = [](std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
    size_t count = 0;
    while (count < text.size() && is_digit(text[count])) ++count;
    const std::string_view run = text.substr(0, count);
    text.remove_prefix(count);
    return run;
  };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const std::string_view x = digits(a), y = digits(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && b.empty() ? whole_a < whole_b : a.empty();
}

/// "Jan-24", "Monday": names of which the alphabet says nothing about time.
bool is_named_time(const std::string& text) {
  static const std::array<std::string_view, 19> names = {
      "monday",  "tuesday",   "wednesday", "thursday", "friday",  "saturday", "sunday",
      "january", "february",  "march",     "april",    "may",     "june",     "july",
      "august",  "september", "october",   "november", "december"};
  const std::string small = lower_case(text);
  for (size_t i = 0; i < small.size();) {
    size_t end = i;
    while (end < small.size() && std::isalpha(static_cast<unsigned char>(small[end]))) ++end;
    const std::string_view word = std::string_view(small).substr(i, end - i);
    if (word.size() >= 3 && std::any_of(names.begin(), names.end(),
                                        [&](std::string_view name) { return name.starts_with(word); }))
      return true;
    i = std::max(end, i + 1);
  }
  return false;
}

/// Refuses texts that are times by name.
void refuse_names(const Dataset& set, const SplitRule& rule, const std::vector<Value>& values) {
  size_t named = 0, last = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (const auto* text = std::get_if<std::string>(&values[i]); text && is_named_time(*text)) {
      ++named;
      last = i;
    }
  if (2 * named > values.size())
    fail<InputError>(
        "{}: its '{}' is '{}', which says a month or a day by name, but is no date that could be read: write "
        "it as 2024-12-31, or as a number that grows",
        set.name(static_cast<int64_t>(last)), rule.by.column,
        std::get<std::string>(values[last]).substr(0, 40));
}

void split_time(const Dataset& set, const SplitRule& rule, Samples& parts) {
  std::vector<Value> values = values_of(set, rule);
  read_dates(set, rule, values);
  refuse_names(set, rule, values);
  std::vector<int64_t> ordered(static_cast<size_t>(set.count()));
  std::iota(ordered.begin(), ordered.end(), 0);
  // All values of a column are of one kind.
  const auto older = [&](int64_t a, int64_t b) {
    const Value &x = values[static_cast<size_t>(a)], &y = values[static_cast<size_t>(b)];
    if (const auto* text = std::get_if<std::string>(&x))
      return naturally_before(*text, std::get<std::string>(y));
    if (const auto* whole = std::get_if<int64_t>(&x)) return *whole < std::get<int64_t>(y);
    return std::get<double>(x) < std::get<double>(y);
  };
  std::stable_sort(ordered.begin(), ordered.end(), older);
  std::vector<std::vector<int64_t>> runs;
  for (size_t i = 0; i < ordered.size(); ++i) {
    if (i == 0 || older(ordered[i - 1], ordered[i])) runs.emplace_back();
    runs.back().push_back(ordered[i]);
  }
  place_runs(set, runs, rule, parts);
}

}  // namespace

uint64_t split_hash(std::string_view text, uint64_t seed) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(seed >> (8 * i));
  return mixed_bits(fnv1a(bytes.append(text)) + 0x9e3779b97f4a7c15);
}

bool kept_for_test(int64_t index, double share) {
  const auto words = philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                            {0x74657374, 0x73706c69});
  return words[0] * 0x1p-32 < share;
}

SplitBy SplitBy::parse(std::string_view text) {
  static const std::vector<std::string> words = {"random", "stratified", "group", "time"};
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string word(text.substr(0, colon));
  const auto found = std::find(words.begin(), words.end(), word);
  SplitBy by{static_cast<How>(found - words.begin()),
             std::string(text.substr(std::min(colon + 1, text.size())))};
  const bool of_column = by.how == How::group || by.how == How::time;
  if (found != words.end() && of_column != by.column.empty() && of_column == (colon < text.size())) return by;
  const std::string meant = nearest(word, words);
  fail<InputError>(
      "cannot be '{}': it is random, stratified, group:COLUMN or time:COLUMN; did you mean '{}{}'?", text,
      meant, meant == "group" || meant == "time" ? ":" + (by.column.empty() ? "COLUMN" : by.column) : "");
}

SplitRule SplitRule::parse(std::string_view parts, std::string_view by, uint64_t seed) {
  SplitRule rule;
  rule.seed = seed;
  double sum = 0;
  for (const std::string& item : split(parts)) {
    const size_t equals = item.find('=');
    const bool named = equals != std::string_view::npos && equals > 0;
    const double share = named ? number_from<double>(item.substr(equals + 1)).value_or(0) : 0;
    if (!(share > 0 && share <= 1))
      fail<InputError>(
          "split \"{}\": \"{}\" is no NAME=SHARE with a share above 0; write train=0.8,val=0.1,test=0.1",
          parts, item);
    const std::string name = item.substr(0, equals);
    for (const Part& part : rule.parts)
      if (part.name == name) fail<InputError>("split \"{}\": {} is there twice", parts, name);
    rule.parts.push_back({name, share});
    sum += share;
  }
  if (std::abs(sum - 1) > 1e-3)
    fail<InputError>("split \"{}\": the shares sum up to {:.4g}, not 1", parts, sum);
  try {
    rule.by = SplitBy::parse(by);
  } catch (const InputError& error) {
    fail<InputError>("--split-by {}", error.what());
  }
  return rule;
}

std::vector<std::vector<int64_t>> split_samples(const Dataset& set, const SplitRule& rule,
                                                std::span<const int64_t> classes) {
  Samples parts(rule.parts.size());
  switch (rule.by.how) {
    case SplitBy::How::random:
      split_random(set, rule, parts);
      break;
    case SplitBy::How::stratified:
      split_stratified(set, rule, classes, parts);
      break;
    case SplitBy::How::group:
      split_groups(set, rule, parts);
      break;
    case SplitBy::How::time:
      split_time(set, rule, parts);
      break;
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].empty())
      fail<InputError>("{}: of {} samples the part {} gets none; give it a larger share, or another --seed",
                       set.path(), set.count(), rule.parts[p].name);
    std::sort(parts[p].begin(), parts[p].end());
  }
  return parts;
}

}  // namespace millrace::data
