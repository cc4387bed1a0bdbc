#include "data/encode/table_graph.h"

#include <algorithm>
#include <limits>
#include <numbers>

namespace millrace::data {

int64_t raw_numbers(const std::vector<TableEncoder::Dense>& dense) {
  return std::count_if(dense.begin(), dense.end(), [](const auto& column) { return !column.derived(); });
}

namespace {

constexpr double kParts = 4096;  // of 1, of which sines are multiples

/// What is done with the raw columns, one number each, and how the result is put together: behind the numbers
/// stand the flags, behind these the waves, then the ranges.
struct NumberColumns {
  std::vector<double> means, scales;
  std::vector<int64_t> flagged;     // raw columns with a flag
  std::vector<int64_t> waved;       // the raw column of each wave
  std::vector<double> frequencies;  // of the waves, per day
  std::vector<double> shifts;       // in turns: a cosine is a sine a quarter ahead
  std::vector<int64_t> ranged;      // the raw column of each range
  std::vector<double> lows, parts;  // where each range begins, and 1 / its width
  std::vector<int64_t> places;      // where each column of the result is

  explicit NumberColumns(const std::vector<TableEncoder::Dense>& dense) {
    const auto count = [&](auto of) { return std::count_if(dense.begin(), dense.end(), of); };
    const int64_t numbers = raw_numbers(dense), flags = count([](const auto&each) { return each.flag; }),
                  waves = count([](const auto&each) { return each.period > 0; });
    for (const TableEncoder::Dense& column : dense) {
      const int64_t raw = static_cast<int64_t>(means.size()) - 1;
      if (column.flag) {
        places.push_back(numbers + static_cast<int64_t>(flagged.size()));
        flagged.push_back(raw);
      } else if (column.period > 0) {
        places.push_back(numbers + flags + static_cast<int64_t>(waved.size()));
        waved.push_back(raw);
        frequencies.push_back(1 / column.period);
        shifts.push_back(column.cosine ? 0.25 : 0);
      } else if (column.ranged()) {
        places.push_back(numbers + flags + waves + static_cast<int64_t>(ranged.size()));
        ranged.push_back(raw);
        lows.push_back(column.low);
        parts.push_back(1 / (column.high - column.low));
      } else {
        places.push_back(static_cast<int64_t>(means.size()));
        means.push_back(column.mean);
        scales.push_back(1 / column.deviation);
      }
    }
  }
};

template <typename T>
Tensor constants(DType dtype, const Shape& shape, const std::vector<T>& values) {
  Array array(dtype, shape);
  std::copy(values.begin(), values.end(), array.as<T>().begin());
  return Tensor(std::move(array));
}

Tensor columns_of(const Tensor& from, const std::vector<int64_t>& which) {
  const Tensor operands[] = {from, constants(i64, {static_cast<int64_t>(which.size())}, which)};
  return apply("gather", operands, {{"axis", int64_t{from.rank() - 1}}})[0];
}

/// Sines of where days stand in periods: the turn is computed in f64, so that no day is lost. They are
/// multiples of 2⁻¹²: trees would tell apart by the last bits of two hours whose sines are equal, which are
/// others in another program.
Tensor waves(const Tensor& numbers, const Tensor& there, const NumberColumns& c) {
  const Shape shape{1, static_cast<int64_t>(c.waved.size())};
  const Tensor days = columns_of(numbers, c.waved);
  const Tensor turns = days * constants(f64, shape, c.frequencies) + constants(f64, shape, c.shifts);
  const auto of_each = [](const char* op, const Tensor& tensor) { return apply(op, {&tensor, 1})[0]; };
  const Tensor turn = cast(turns - of_each("floor", turns), f32);
  const Tensor none = constants(f32, shape, std::vector<float>(c.waved.size()));
  const Tensor sines = of_each("sin", turn * (2 * std::numbers::pi));
  const Tensor rounded = of_each("floor", sines * kParts + 0.5) * (1 / kParts);
  return where(columns_of(there, c.waved), rounded, none);
}

/// How much of each range lies below the number.
Tensor shares(const Tensor& numbers, const Tensor& there, const NumberColumns& c) {
  const Shape shape{1, static_cast<int64_t>(c.ranged.size())};
  const Tensor above = columns_of(numbers, c.ranged) - constants(f64, shape, c.lows);
  const Tensor share = clamp(cast(above * constants(f64, shape, c.parts), f32), 0, 1);
  const Tensor none = constants(f32, shape, std::vector<float>(c.ranged.size()));
  return where(columns_of(there, c.ranged), share, none);
}

}  // namespace

Tensor encode_numbers(const Tensor& numbers, const std::vector<TableEncoder::Dense>& dense) {
  const NumberColumns c(dense);
  const Shape shape{1, static_cast<int64_t>(c.means.size())};
  const Tensor there = abs(numbers) <= static_cast<double>(std::numeric_limits<float>::max());
  const Tensor standard = (numbers - constants(f64, shape, c.means)) * constants(f64, shape, c.scales);
  const Tensor mean = constants(f32, shape, std::vector<float>(c.means.size()));
  std::vector<Tensor> parts = {where(there, cast(standard, f32), mean)};
  if (!c.flagged.empty()) parts.push_back(cast(logical_not(columns_of(there, c.flagged)), f32));
  if (!c.waved.empty()) parts.push_back(waves(numbers, there, c));
  if (!c.ranged.empty()) parts.push_back(shares(numbers, there, c));
  return parts.size() == 1 ? parts[0] : columns_of(concat(parts, numbers.rank() - 1), c.places);
}

}  // namespace millrace::data
