#include "baseline/neighbours.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/parallel_for.h"
#include "baseline/context.h"

namespace millrace::baseline {
namespace {

template <typename T>
void join_columns(std::vector<T>& all, size_t& width, std::span<const T> more, size_t rows) {
  const size_t add = more.size() / rows;
  std::vector<T> joined;
  joined.reserve(all.size() + more.size());
  for (size_t row = 0; row < rows; ++row) {
    joined.insert(joined.end(), all.begin() + static_cast<std::ptrdiff_t>(row * width),
                  all.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    joined.insert(joined.end(), more.begin() + static_cast<std::ptrdiff_t>(row * add),
                  more.begin() + static_cast<std::ptrdiff_t>((row + 1) * add));
  }
  all = std::move(joined);
  width += add;
}

/// Numbers are standardised: a category that differs counts as two one-hot columns do.
double distance(const Features& f, size_t a, size_t b, double most) {
  double sum = 0;
  const int64_t *ids_a = f.ids.data() + a * f.columns, *ids_b = f.ids.data() + b * f.columns;
  for (size_t c = 0; c < f.columns; ++c) sum += ids_a[c] != ids_b[c] ? 2 : 0;
  if (sum >= most) return sum;
  constexpr size_t part = 256;
  const float *x = f.numbers.data() + a * f.width, *y = f.numbers.data() + b * f.width;
  for (size_t begin = 0; begin < f.width && sum < most; begin += part) {
    float some = 0;
    for (size_t i = begin; i < std::min(begin + part, f.width); ++i) some += (x[i] - y[i]) * (x[i] - y[i]);
    sum += static_cast<double>(some);
  }
  return sum;
}

/// How far two targets differ: 1 of different classes, else the square.
double difference(const Array& targets, size_t a, size_t b) {
  if (targets.dtype() == i64) return targets.as<int64_t>()[a] != targets.as<int64_t>()[b] ? 1 : 0;
  const std::span<const float> values = targets.as<float>();
  const size_t width = values.size() / static_cast<size_t>(targets.shape()[0].size());
  double sum = 0;
  for (size_t c = 0; c < width; ++c)
    sum +=
        std::pow(static_cast<double>(values[a * width + c]) - static_cast<double>(values[b * width + c]), 2);
  return sum;
}

}  // namespace

std::vector<int64_t> spread(int64_t all, int64_t most) {
  std::vector<int64_t> samples;
  const int64_t count = std::min(all, most);
  for (int64_t i = 0; i < count; ++i) samples.push_back(i * all / count);
  return samples;
}

Features features_of(Context& context, std::span<const int64_t> samples, bool tests) {
  Features features;
  for (const auto& input : context.task().inputs) {
    const auto& from = context.samples(tests);
    const auto part = input->part({context.task().recipe, from}, task::Purpose::evaluation);
    const PartRows rows = read_rows(*part, *from, samples);
    std::vector<Tensor> fields;
    for (const Array& each : rows.arrays) fields.emplace_back(each);
    for (const Tensor& tensor : input->graph(fields, false)) {
      const Array array = tensor.to_array();
      if (array.dtype() == i64)
        join_columns(features.ids, features.columns, array.as<int64_t>(), samples.size());
      else
        join_columns(features.numbers, features.width,
                     std::as_const(static_cast<const Array&>(array.converted(f32))).as<float>(),
                     samples.size());
    }
  }
  return features;
}

std::optional<Neighbours> look_at_neighbours(Context& context) {
  constexpr int64_t most_samples = 20'000, most_looked = 2'000, least_samples = 50, enough = 30;
  constexpr double most_work = 2e10, nearly = 1e-4;
  const task::Task& task = context.task();
  if (task.outputs.size() != 1 || task.outputs[0]->from()) return std::nullopt;
  for (const auto& input : task.inputs)
    if (input->gives() == "tokens") return std::nullopt;
  const int64_t all = context.samples(false)->count();
  std::vector<int64_t> samples = spread(all, most_samples);
  if (std::ssize(samples) < least_samples) return std::nullopt;
  // Large samples: fewer of them.
  const Features few = features_of(context, spread(all, 2), false);
  const double dimensions = static_cast<double>(few.width + few.columns);
  const auto fitting = static_cast<int64_t>(most_work / (dimensions * static_cast<double>(most_looked)));
  samples = spread(all, std::clamp<int64_t>(fitting, least_samples, most_samples));
  context.progress("near duplicates", 0, 1);
  const Features features = features_of(context, samples, false);
  const PartRows rows = read_rows(*task.outputs[0]->part({task.recipe, context.samples(false)}),
                                  *context.samples(false), samples);
  const Array& targets = rows.arrays[0];
  const size_t count = samples.size(), looked = std::min<size_t>(count, most_looked);
  std::vector<double> random;
  Neighbours found;
  for (size_t i = 0; i + 1 < count; ++i) {
    const size_t other = (i * 7919 + count / 2) % count;
    if (other == i) continue;
    random.push_back(distance(features, i, other, INFINITY));
    found.chance += difference(targets, i, other);
  }
  found.chance /= static_cast<double>(std::max<size_t>(1, random.size()));
  std::nth_element(random.begin(), random.begin() + std::ssize(random) / 2, random.end());
  const double usual = random[random.size() / 2];
  struct Nearest {
    double distance = INFINITY, differs = 0;
  };
  std::vector<Nearest> nearest(looked);
  parallel_for(static_cast<int64_t>(looked), 0, [&](int64_t q) {
    const size_t own = static_cast<size_t>(q) * count / looked;
    Nearest& best = nearest[static_cast<size_t>(q)];
    for (size_t other = 0; other < count; ++other) {
      if (other == own) continue;
      const double far = distance(features, own, other, best.distance);
      if (far < best.distance) best = {far, difference(targets, own, other)};
    }
  });
  double of_near = 0, of_all = 0;
  for (const Nearest& each : nearest) {
    of_all += each.differs;
    if (each.distance > nearly * usual) continue;
    ++found.near;
    of_near += each.differs;
  }
  found.looked = static_cast<int64_t>(looked);
  found.duplicates = found.near >= enough;
  found.disagreement =
      found.duplicates ? of_near / static_cast<double>(found.near) : of_all / static_cast<double>(looked);
  return found;
}

std::string neighbours_text(const Neighbours& found) {
  if (found.duplicates)
    return fmt::format(
        "{} of {} samples have a near duplicate; their targets differ {:.0f} % as much as those of any two",
        found.near, found.looked, 100 * found.ratio());
  return fmt::format("targets of nearest neighbours differ {:.0f} % as much as those of any two",
                     100 * found.ratio());
}

}  // namespace millrace::baseline
