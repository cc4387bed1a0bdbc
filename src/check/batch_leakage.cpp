// A sample's output may depend on that sample alone.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/rows.h"

namespace millrace::check {
namespace {

constexpr double most_rounding = 1e-4;  // of the outputs' size

/// By how much outputs change, as a share of their size.
struct RowChange {
  double most = 0;
  int64_t rows = 0;  // that changed
};

/// Row r becomes row from[r], and its outputs must be what that one's were in `before`. Those of row `but`
/// are not looked at.
RowChange when_moved(Context& context, const std::vector<Array>& given, const std::vector<Array>& before,
                     const std::vector<int64_t>& from, int64_t but = -1) {
  std::vector<Array> moved;
  for (const Array& array : given) moved.push_back(with_rows(array, from));
  const std::vector<Array> now = context.outputs(moved);
  RowChange change;
  const auto rows = std::ssize(from);
  std::vector<char> changed(from.size(), 0);
  for (size_t k = 0; k < before.size(); ++k) {
    if (!has_rows(before[k], rows)) continue;
    const int64_t width = before[k].count() / rows;
    const auto x = before[k].as<float>();
    const auto y = now[k].as<float>();
    const double size = std::max(rms(before[k]), 1e-6);
    for (int64_t r = 0; r < rows; ++r) {
      if (r == but) continue;
      for (int64_t i = 0; i < width; ++i) {
        const double a = x[static_cast<size_t>(from[static_cast<size_t>(r)] * width + i)],
                     b = y[static_cast<size_t>(r * width + i)];
        const double off = std::abs(a - b) / size;
        if (off > most_rounding || std::isnan(off) != (std::isnan(a) && std::isnan(b))) {
          change.most = std::max(change.most, off);
          changed[static_cast<size_t>(r)] = 1;
        }
      }
    }
  }
  change.rows = std::count(changed.begin(), changed.end(), 1);
  return change;
}

Finding run_batch_leakage(Context& context) {
  const std::vector<Array> given = context.given(context.batch());
  const int64_t rows = context.rows();
  if (rows < 2) return not_for("a batch is one sample");
  widen_weights(context);
  const std::vector<Array> before = context.outputs(given);
  if (std::none_of(before.begin(), before.end(), [&](const Array& a) { return has_rows(a, rows); }))
    return not_for("no output has a row for each sample");
  constexpr const char* advice =
      "find the operation that takes the batch for another axis: attention, a recurrent layer or positions "
      "along dimension 0, a norm or softmax over axis 0, statistics of the batch used in evaluation";
  std::vector<int64_t> places(static_cast<size_t>(rows));
  std::iota(places.begin(), places.end(), int64_t{0});
  RowChange worst;
  int64_t tried = 0, row_of_worst = 0;
  for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
    const int64_t by = different_row(given, row, rows);
    if (by < 0) continue;
    ++tried;
    // A sample is put in the place of another.
    std::vector<int64_t> from = places;
    from[static_cast<size_t>(row)] = by;
    const RowChange change = when_moved(context, given, before, from, row);
    if (change.rows <= worst.rows) continue;
    worst = change;
    row_of_worst = row;
  }
  if (tried == 0) return not_for("all samples of the batch are alike");
  if (worst.rows > 0)
    return with_numbers(
        failed(fmt::format("another sample in row {} changes the outputs of {} of the {} others, by up to {} "
                           "of their size",
                           row_of_worst, worst.rows, rows - 1, short_number(worst.most)),
               advice),
        {{"rows_changed", worst.rows}, {"change", worst.most}});
  std::rotate(places.begin(), places.begin() + 1, places.end());  // all move one place on
  const RowChange moved = when_moved(context, given, before, places);
  if (moved.rows > 0)
    return with_numbers(
        failed(fmt::format("what is made of a sample depends on its row: with all samples one row on, {} of "
                           "{} outputs are others, by up to {} of their size",
                           moved.rows, rows, short_number(moved.most)),
               advice),
        {{"rows_changed", moved.rows}, {"change", moved.most}});
  return with_numbers(
      passed(fmt::format("{} samples exchanged, and all of {} moved: each output stayed with its sample",
                         tried, rows)),
      {{"rows_changed", 0}, {"change", 0}});
}

}  // namespace

MILLRACE_CHECK_KIND(batch_leakage){
    .name = "batch-leakage",
    .doc = "in evaluation, a sample is exchanged and all are moved: no other output may change",
    .matters =
        "a model whose outputs depend on who else is in the batch, or on the row, scores well in training "
        "and gives something else for each way in which samples are served",
    .place = 260,
    .run = run_batch_leakage,
};

}  // namespace millrace::check
