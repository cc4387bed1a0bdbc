// Categories and classes that are written in several ways, and those of a test set that training does not
// have.
#include <algorithm>
#include <map>
#include <string>
#include <unicode/normalizer2.h>
#include <unicode/unistr.h>
#include <unordered_map>
#include <vector>

#include "base/format.h"
#include "base/utf8.h"
#include "base/words.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"
#include "data/table/dates.h"
#include "data/table/read_columns.h"

namespace millrace::check {
namespace {

using Counts = std::unordered_map<std::string, int64_t>;

/// A text without what people write now in one way, now in another: case of letters, blanks at the ends,
/// several blanks for one, accents that are letters of their own, signs that nobody sees.
std::string plain(const std::string& text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* form = icu::Normalizer2::getNFKCCasefoldInstance(error);
  std::string folded = text;
  if (U_SUCCESS(error) && is_utf8(text)) {
    const icu::UnicodeString made = form->normalize(icu::UnicodeString::fromUTF8(text), error);
    folded.clear();
    made.toUTF8String(folded);
    if (U_FAILURE(error)) folded = text;
  }
  return fmt::format("{}", fmt::join(split_words(trimmed(folded)), " "));
}

/// How often a column of texts has which value; empty where it has very many.
Counts counts_of(const Context& context, const data::Dataset& from, const std::string& column) {
  constexpr size_t most = 20'000;
  Counts counts;
  const auto place = from.find_column(column);
  if (!place || from.columns()[*place].kind != data::ColumnKind::text) return counts;
  for (const auto& [first, count] : looked_at(from.count(), context.most_samples())) {
    const auto values = data::read_columns(from, first, count, {&*place, 1});
    for (size_t i = 0; i < values[0].size(); ++i)
      if (values[0].has(i)) ++counts[std::string(values[0].contents[i])];
    if (counts.size() > most) return {};
  }
  return counts;
}

int64_t all_of(const Counts& counts) {
  int64_t all = 0;
  for (const auto& [value, count] : counts) all += count;
  return all;
}

/// Dates are read as numbers.
bool are_dates(const Counts& counts) {
  const auto share = [&](data::DateOrder order) {
    return std::count_if(counts.begin(), counts.end(),
                         [&](const auto& each) { return data::parse_date(each.first, order).has_value(); });
  };
  return 2 * std::max(share(data::DateOrder::day_first), share(data::DateOrder::month_first)) >
         std::ssize(counts);
}

struct Spellings {
  int64_t odd = 0;      // samples that write a value otherwise than most do
  std::string example;  // "'oak' and 'OAK'"
};
Spellings spellings_of(const Counts& counts) {
  std::map<std::string, std::vector<std::pair<int64_t, std::string>>> groups;
  for (const auto& [value, count] : counts) groups[plain(value)].emplace_back(count, value);
  Spellings found;
  int64_t most = 0;
  for (auto& [key, values] : groups) {
    if (values.size() < 2) continue;
    std::sort(values.rbegin(), values.rend());
    int64_t others = 0;
    for (size_t i = 1; i < values.size(); ++i) others += values[i].first;
    found.odd += others;
    if (others <= most) continue;
    most = others;
    found.example = fmt::format("'{}' and '{}'", printable(values[0].second), printable(values[1].second));
  }
  return found;
}

Finding judge_spellings(const std::string& what, const Counts& counts, const char* advice) {
  const Spellings found = spellings_of(counts);
  const auto share =
      static_cast<double>(found.odd) / static_cast<double>(std::max<int64_t>(1, all_of(counts)));
  constexpr double least = 0.002;
  return share > least ? warned(fmt::format("{} has {}, which may be the same: {} of the samples", what,
                                            found.example, share_text(share)),
                                advice)
                       : passed("");
}

/// Values that training does not have, in more of the test set than chance would have it.
Finding judge_unseen(const std::string& name, const Counts& trained, const Counts& tested) {
  int64_t unseen = 0, once = 0;
  std::string example;
  for (const auto& [value, count] : tested)
    if (!trained.contains(value)) {
      unseen += count;
      if (example.empty() || value < example) example = value;
    }
  for (const auto& [value, count] : trained) once += count == 1 ? 1 : 0;
  // So many of the next samples have a new value (Good and Turing).
  const double chance =
                   static_cast<double>(once) / static_cast<double>(std::max<int64_t>(1, all_of(trained))),
               share =
                   static_cast<double>(unseen) / static_cast<double>(std::max<int64_t>(1, all_of(tested)));
  constexpr double least = 0.1;
  return share > least + 3 * chance
             ? warned(
                   fmt::format("{} of the samples to test on have a value of {} that training has not ('{}')",
                               share_text(share), name, printable(example)),
                   "are the sets written in the same way (case, codes, a language)? To the model these are "
                   "all one unknown value")
             : passed("");
}

Finding run_spelling(Context& context) {
  if (!context.samples()) return not_for("no table to look at");
  const task::Task& task = *context.task();
  const auto training = rows_of_samples(context, context.samples());
  const auto tests = context.test_samples() ? rows_of_samples(context, context.test_samples()) : nullptr;
  Finding finding = passed("");
  int64_t looked = 0;
  const auto add = [&](const Finding& one) {
    if (one.verdict != Verdict::pass) finding = finding.verdict == Verdict::pass ? one : worse(finding, one);
  };
  for (const auto& output : task.outputs) {
    if (output->classes().empty() || !output->settings().find("column")) continue;
    const std::string& column = output->settings().text("column");
    const Counts names = counts_of(context, *training, column);
    if (names.empty()) continue;
    ++looked;
    add(judge_spellings(fmt::format("the column of classes, {},", column), names,
                        "then the model must tell one class from itself: write it in one way (output.trim "
                        "takes blanks off the ends)"));
  }
  for (const auto& input : task.inputs) {
    if (input->gives() != "table") continue;
    for (const std::string& name : input->columns()) {
      const Counts trained = counts_of(context, *training, name);
      // Names and texts, which nearly all differ, are no categories.
      if (trained.empty() || 2 * std::ssize(trained) > all_of(trained) || are_dates(trained)) continue;
      ++looked;
      add(judge_spellings(name, trained, "write each value in one way: to the model they are several"));
      if (tests) add(judge_unseen(name, trained, counts_of(context, *tests, name)));
    }
  }
  if (looked == 0) return not_for("there are no categories and no names of classes");
  if (finding.verdict == Verdict::pass)
    finding = passed(fmt::format("{} column{} of categories or classes write each value in one way", looked,
                                 looked == 1 ? "" : "s"));
  return with_numbers(finding, {{"columns", looked}});
}

}  // namespace

MILLRACE_CHECK_KIND(spelling){
    .name = "spelling",
    .doc = "categories and classes written in several ways, or otherwise in the test set",
    .matters =
        "to a model 'oak', 'Oak' and 'oak ' are three things, each with fewer samples, and what it never saw "
        "is unknown to it",
    .place = 105,
    .quick = true,
    .run = run_spelling,
};

}  // namespace millrace::check
