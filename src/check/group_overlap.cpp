// Groups of which one part is trained on, and another tested on.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"
#include "data/table/labels.h"

namespace millrace::check {
namespace {

bool named_as_group(const std::string& name) {
  return named_like(
      name, {"id",      "patient", "subject", "user",      "customer", "client", "person", "speaker",
             "author",  "session", "group",   "household", "family",   "query",  "device", "account",
             "student", "player",  "store",   "shop",      "site",     "scene",  "video",  "document"},
      {"no", "nr", "nbr", "num", "number", "key", "code", "name", "hash", "uuid", "guid", "uid", "index",
       "ref", "identifier", "email", "label"});
}

/// What names of files are made of: "cats/ann_007.png" → cats, ann, 007.
std::vector<std::string> parts_of_name(const std::string& key) {
  std::vector<std::string> parts(1);
  const size_t slash = key.rfind('/'), dot = key.rfind('.');
  const size_t end =
      dot != std::string::npos && (slash == std::string::npos || dot > slash) ? dot : key.size();
  for (size_t i = 0; i < end; ++i)
    if (key[i] == '/' || key[i] == '_' || key[i] == '-' || key[i] == ' ')
      parts.emplace_back();
    else
      parts.back() += key[i];
  return parts;
}

/// The parts of the names of some thousand samples, those of the first one's number of parts; `classes` of
/// the same.
struct Names {
  std::vector<std::vector<std::string>> parts;
  std::vector<int64_t> classes;
};
Names names_of(const Context& context, const std::shared_ptr<const data::Dataset>& from) {
  constexpr int64_t most = 4000;
  Names names;
  const Targets targets = read_targets(context, from, most);
  size_t at = 0;
  for (const auto& [first, count] : looked_at(from->count(), most))
    for (int64_t i = first; i < first + count; ++i, ++at) {
      std::vector<std::string> parts = parts_of_name(data::key_of(*from, i));
      if (!names.parts.empty() && parts.size() != names.parts[0].size()) continue;
      names.parts.push_back(std::move(parts));
      names.classes.push_back(at < targets.classes.size() ? targets.classes[at] : -1);
    }
  if (at > names.parts.size() + at / 20) names.parts.clear();  // names of no common form
  return names;
}

/// Does a part of the names look like who or what a sample is of: words, each of several samples, that do not
/// just say the class?
bool is_group_part(const Names& names, size_t part) {
  std::map<std::string, int64_t> times;
  std::set<std::pair<std::string, int64_t>> pairs;
  std::set<int64_t> classes;
  int64_t words = 0;
  for (size_t i = 0; i < names.parts.size(); ++i) {
    const std::string& word = names.parts[i][part];
    ++times[word];
    pairs.emplace(word, names.classes[i]);
    classes.insert(names.classes[i]);
    words += std::any_of(word.begin(), word.end(),
                         [](char c) { return std::isalpha(static_cast<unsigned char>(c)); });
  }
  const auto count = std::ssize(names.parts);
  const bool tells_class = pairs.size() == times.size() && times.size() <= 3 * classes.size();
  constexpr size_t least = 3;
  return 20 * words > 19 * count && times.size() >= least && 3 * std::ssize(times) < count && !tells_class;
}

/// Of samples that are files: groups in their names, which no column has.
std::optional<Finding> judge_names(Context& context) {
  const auto& training = context.samples();
  const auto& tests = context.test_samples();
  const bool files =
      std::any_of(training->columns().begin(), training->columns().end(), [](const auto& column) {
        return column.kind == data::ColumnKind::picture || column.kind == data::ColumnKind::audio ||
               column.kind == data::ColumnKind::bytes;
      });
  if (!files) return std::nullopt;
  const Names own = names_of(context, training), other = names_of(context, tests);
  if (own.parts.empty() || other.parts.empty() || own.parts[0].size() != other.parts[0].size())
    return std::nullopt;
  std::optional<Finding> worst;
  double most = 0;
  for (size_t part = 0; part < own.parts[0].size(); ++part) {
    if (!is_group_part(own, part)) continue;
    std::set<std::string> trained;
    for (const auto& each : own.parts) trained.insert(each[part]);
    int64_t known = 0;
    for (const auto& each : other.parts) known += trained.contains(each[part]);
    const double share = static_cast<double>(known) / static_cast<double>(other.parts.size());
    if (worst && share <= most) continue;
    most = share;
    const std::string saw = fmt::format(
        "{} of the samples to test on have a word of their names ('{}') that names of training have at this "
        "place",
        share_text(share), other.parts[0][part]);
    worst = with_numbers(
        share > 0.02
            ? warned(saw, fmt::format(
                              "is that who or what the sample is of, and is the model to serve others? Then "
                              "test on some of them alone: data.test_where = \"__key__ like '*{}*'\"",
                              other.parts[0][part]))
            : passed(saw),
        {{"share_of_tests", share}});
  }
  return worst;
}

Finding run_group_overlap(Context& context) {
  if (!context.samples() || !context.test_samples())
    return not_for("there is no test set beside samples to train on");
  const Columns training = read_table(context, *context.samples()),
                tests = read_table(context, *context.test_samples());
  std::string looked, worst;
  double most = 0;
  for (const Column& column : training.columns) {
    const Column* other = find_column(tests, column.name);
    if (column.target || !other || !named_as_group(column.name)) continue;
    std::map<uint64_t, int64_t> times;
    for (const uint64_t code : column.codes) ++times[code];
    const double each =
        static_cast<double>(column.codes.size()) / static_cast<double>(std::max<size_t>(1, times.size()));
    if (times.size() < 3 || each < 1.2) continue;  // a number for each row, or one of a few kinds
    int64_t known = 0;
    for (const uint64_t code : other->codes) known += times.contains(code);
    looked += (looked.empty() ? "" : ", ") + column.name;
    const double share =
        static_cast<double>(known) / static_cast<double>(std::max<size_t>(1, other->codes.size()));
    if (share <= most) continue;
    most = share;
    worst = column.name;
  }
  const auto names = most > 0 || context.quick() ? std::nullopt : judge_names(context);
  if (looked.empty() && names) return *names;
  if (looked.empty())
    return not_for("no column is called like a group of samples (patient, user, session, … id)");
  const std::string saw =
      most == 0 ? fmt::format("no value of {} is on both sides", looked)
                : fmt::format("{} of the samples to test on have a value of {} that training has",
                              share_text(most), worst);
  const Finding finding = with_numbers(
      most > 0.02
          ? warned(saw, fmt::format("where the model is to serve others than those of training, keep each "
                                    "together: data.test_by = \"group:{}\"",
                                    worst))
          : passed(saw),
      {{"share_of_tests", most}});
  return names ? worse(finding, *names) : finding;
}

}  // namespace

MILLRACE_CHECK_KIND(group_overlap){
    .name = "group-overlap",
    .doc = "samples of one patient, user, session … in training and in the test set",
    .matters =
        "what is particular to one of them is recognised, and new ones will do worse than the test says",
    .place = 140,
    .quick = true,
    .run = run_group_overlap,
};

}  // namespace millrace::check
