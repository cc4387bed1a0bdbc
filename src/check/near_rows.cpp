#include "check/near_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/format.h"
#include "check/check.h"

namespace millrace::check {
namespace {

constexpr size_t most_rows = 50'000, most_asked = 300, most_columns = 64;

/// Rows as points: numbers in deviations of the training set, and one number for all other columns together.
struct Points {
  size_t width = 0;
  std::vector<float> places;
  std::vector<uint64_t> kinds;
  std::span<const float> of(size_t row) const { return std::span(places).subspan(row * width, width); }
};

Points points_of(const Columns& table, const Columns& training, size_t most) {
  const auto all = static_cast<size_t>(table.samples);
  Points points;
  points.kinds.resize(std::min(all, most));
  std::vector<std::pair<const Column*, Moments>> numbers;
  for (const Column* column : columns_seen(training)) {
    const Column* own = find_column(table, column->name);
    if (!own || own->codes.size() != all || own->numeric != column->numeric) continue;
    if (own->numeric && numbers.size() < most_columns) numbers.emplace_back(own, moments_of(column->numbers));
    for (size_t r = 0; r < points.kinds.size() && !own->numeric; ++r)
      points.kinds[r] = (points.kinds[r] ^ own->codes[r * all / points.kinds.size()]) * 0x9E3779B97F4A7C15;
  }
  points.width = numbers.size();
  for (size_t r = 0; r < points.kinds.size(); ++r)
    for (const auto& [column, m] : numbers) {
      const double x =
          (column->numbers[r * all / points.kinds.size()] - m.mean) / std::max(m.deviation, 1e-300);
      points.places.push_back(std::isfinite(x) ? static_cast<float>(x) : 0.0F);
    }
  return points;
}

/// Of some rows the distance to the nearest other one of `among` that is of the same kinds.
std::vector<float> nearest(const Points& rows, const Points& among, bool same_set) {
  std::vector<float> distances;
  const size_t asked = std::min(most_asked, rows.kinds.size());
  for (size_t a = 0; a < asked; ++a) {
    const size_t row = a * rows.kinds.size() / asked;
    const auto place = rows.of(row);
    float best = std::numeric_limits<float>::infinity();
    for (size_t other = 0; other < among.kinds.size(); ++other) {
      if ((same_set && other == row) || among.kinds[other] != rows.kinds[row]) continue;
      const auto there = among.of(other);
      float sum = 0;
      for (size_t k = 0; k < place.size() && sum < best; ++k)
        sum += (place[k] - there[k]) * (place[k] - there[k]);
      best = std::min(best, sum);
    }
    distances.push_back(std::sqrt(best));
  }
  return distances;
}

double share_below(const std::vector<float>& distances, float limit) {
  const auto below = std::count_if(distances.begin(), distances.end(), [&](float d) { return d < limit; });
  return static_cast<double>(below) / static_cast<double>(std::max<size_t>(1, distances.size()));
}

}  // namespace

std::vector<const Column*> columns_seen(const Columns& table) {
  std::vector<const Column*> seen;
  for (const Column& column : table.columns)
    if (column.input && !column.target) seen.push_back(&column);
  std::sort(seen.begin(), seen.end(), [](const Column* a, const Column* b) { return a->name < b->name; });
  return seen;
}

Finding judge_near(const Columns& training, const Columns& tests) {
  const Points trained = points_of(training, training, most_rows),
               tested = points_of(tests, training, most_asked);
  // One number alone is near another by chance.
  constexpr size_t least_rows = 50, least_width = 2;
  if (trained.width < least_width || trained.width != tested.width || trained.kinds.size() < least_rows)
    return passed("");
  std::vector<float> own = nearest(trained, trained, true);
  const std::vector<float> others = nearest(tested, trained, false);
  std::nth_element(own.begin(), own.begin() + std::ssize(own) / 2, own.end());
  constexpr float near = 0.05F;  // of the usual distance between neighbours
  const float limit = near * own[own.size() / 2];
  if (!std::isfinite(limit) || limit == 0) return passed("");
  const double share = share_below(others, limit), usual = share_below(own, limit);
  return with_numbers(
      share > 0.1 && share > 0.05 + 3 * usual
          ? warned(
                fmt::format(
                    "{} of the rows to test on are right beside a row of training, of training's own {}",
                    share_text(share), share_text(usual)),
                "are these copies with rounded or slightly changed numbers? Keep all versions of a thing on "
                "one side (data.test_by = \"group:COLUMN\")")
          : passed(""),
      {{"near", share}, {"near_in_training", usual}});
}

}  // namespace millrace::check
