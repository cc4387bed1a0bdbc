// Batches must be mixed: of all classes, and of samples that differ.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/rows.h"

namespace millrace::check {
namespace {

constexpr size_t looked_at_batches = 8;

/// The classes of a batch's rows: of the first target that is one for each row; empty where there is none.
std::vector<int64_t> batch_classes(const Context& context, const std::vector<Array>& batch, int64_t rows) {
  for (const size_t at : context.subject().targets) {
    const Array& target = batch[at];
    if (!target.dtype().is_int() || target.count() != rows || target.shape()[0].size() != rows) continue;
    std::vector<int64_t> classes;
    for (int64_t r = 0; r < rows; ++r) classes.push_back(target.int_at(r));
    return classes;
  }
  return {};
}

double share_of_most(const std::vector<int64_t>& classes) {
  std::map<int64_t, int64_t> counts;
  int64_t most = 0;
  for (const int64_t c : classes) most = std::max(most, ++counts[c]);
  return classes.empty() ? 0 : static_cast<double>(most) / static_cast<double>(classes.size());
}

/// Of the rows those that are given exactly what another row of the batch is given, and are to give something
/// else.
int64_t alike_rows(const Context& context, const std::vector<Array>& batch, int64_t rows) {
  const auto same = [&](size_t at, int64_t one, int64_t other) {
    const Array& array = batch[at];
    if (!has_rows(array, rows)) return true;
    const auto width = static_cast<size_t>(array.bytes() / rows);
    const auto* bytes = static_cast<const std::byte*>(array.data());
    return std::memcmp(bytes + static_cast<size_t>(one) * width, bytes + static_cast<size_t>(other) * width,
                       width) == 0;
  };
  const auto all_same = [&](const std::vector<size_t>& list, int64_t one, int64_t other) {
    return std::all_of(list.begin(), list.end(), [&](size_t at) { return same(at, one, other); });
  };
  int64_t alike = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t other = 0; other < rows; ++other)
      if (other != r && all_same(context.subject().given, r, other) &&
          !all_same(context.subject().targets, r, other)) {
        ++alike;
        break;
      }
  return alike;
}

/// The share of the most frequent class over all samples, where that is known; else over these batches.
double share_of_all(const Context& context, const std::vector<int64_t>& seen) {
  if (!context.samples() || context.task()->outputs.empty()) return share_of_most(seen);
  const auto labels = context.task()->outputs[0]->labels({context.task()->recipe, context.samples()});
  return labels.empty() ? share_of_most(seen) : share_of_most(labels);
}

Finding run_batch_variety(Context& context) {
  if (context.fitted()) return not_for("the model is fitted to all samples at once");
  std::vector<int64_t> seen;
  double most = 0;
  int64_t alike = 0, rows = 0, batches = 0;
  // Of a subject of C++ those that it has.
  const size_t count =
      context.task() ? looked_at_batches : std::min(looked_at_batches, context.subject().batches.size());
  for (size_t i = 0; i < count; ++i) {
    const std::vector<Array>& batch = context.batch(i);
    alike += alike_rows(context, batch, context.rows());
    rows += context.rows();
    const std::vector<int64_t> classes = batch_classes(context, batch, context.rows());
    most += share_of_most(classes);
    batches += classes.empty() ? 0 : 1;
    seen.insert(seen.end(), classes.begin(), classes.end());
  }
  // Batches of texts of like length are of like kind, too.
  if (context.training() && !context.training()->feed->lengths().empty()) batches = 0;
  const double same = batches ? most / static_cast<double>(batches) : 0,
               all = batches ? share_of_all(context, seen) : 0,
               twins = static_cast<double>(alike) / static_cast<double>(std::max<int64_t>(rows, 1));
  std::string saw =
      fmt::format("{} of the rows of a batch have a twin with another target", share_text(twins));
  if (batches)
    saw = fmt::format("{} of a batch are of one class, of all samples {}; ", share_text(same),
                      share_text(all)) +
          saw;
  const Finding finding = [&] {
    // One sample, or two or three, are often of one class.
    constexpr int64_t few = 4;
    if (batches > 1 && context.rows() >= few && same > 0.8 && same > all + 0.25)
      return failed(saw,
                    "batches of one class each unlearn all others: shuffle (data.order = \"shuffle\"; of a "
                    "stream a larger shuffle-buffer, or shuffle the files)");
    if (twins > 0.8)
      return failed(saw,
                    "the model is given the same for different samples: look at what cuts them (the length "
                    "of texts, a crop, columns that are left out)");
    if (twins > 0.3)
      return warned(saw,
                    "many samples are the same to the model: are texts cut too short, or columns missing?");
    return passed(saw);
  }();
  return with_numbers(finding, {{"one_class", same}, {"of_all", all}, {"twins", twins}});
}

}  // namespace

MILLRACE_CHECK_KIND(batch_variety){
    .name = "batch-variety",
    .doc = "batches of one class each (sorted and not shuffled), and rows that are all the same to the model",
    .matters =
        "a model that sees one class after the other forgets each for the next, and of samples that look the "
        "same to it there is nothing to learn",
    .place = 195,
    .run = run_batch_variety,
};

}  // namespace millrace::check
