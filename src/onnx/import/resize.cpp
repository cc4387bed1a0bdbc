#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

// Resize: along each axis a known linear map, as picked rows (nearest), sums of a few, or a product with a
// matrix.
namespace {

struct Axis {
  int64_t from, to;
  double scale, low, high;  // low, high: of the region, as shares of the size
};

/// Sizes and places by a scale, which a file gives as an f32: 0.3333 is no third. What is a whole number or a
/// half but for that rounding is meant to be one, and is one in PyTorch and ONNX Runtime.
double meant(double number) {
  constexpr double rounding = 0x1.01p-24;
  const double half = std::round(2 * number) / 2;
  return std::abs(number - half) <= rounding * std::abs(number) ? half : number;
}

double source(const std::string& transformation, const Axis& axis, int64_t at) {
  const auto i = static_cast<double>(at), from = static_cast<double>(axis.from);
  // The standard's length_resized, a whole number: two cases of its tests have the fraction for
  // align_corners, which neither its text nor PyTorch nor ONNX Runtime has.
  const auto to = static_cast<double>(axis.to);
  if (transformation == "asymmetric") return meant(i / axis.scale);
  if (transformation == "align_corners") return to <= 1 ? 0 : i * (from - 1) / (to - 1);
  if (transformation == "pytorch_half_pixel") return to > 1 ? meant((i + 0.5) / axis.scale) - 0.5 : 0;
  if (transformation == "tf_half_pixel_for_nn") return meant((i + 0.5) / axis.scale);
  if (transformation == "half_pixel_symmetric") {
    const double adjustment = to / meant(axis.scale * from), centre = from / 2;
    return centre * (1 - adjustment) + meant((i + 0.5) / axis.scale) - 0.5;
  }
  if (transformation == "tf_crop_and_resize")
    return axis.to > 1 ? axis.low * (from - 1) + i * (axis.high - axis.low) * (from - 1) / (to - 1)
                       : 0.5 * (axis.low + axis.high) * (from - 1);
  return meant((i + 0.5) / axis.scale) - 0.5;  // half_pixel
}

int64_t nearest(const std::string& mode, double at, int64_t size) {
  double place = 0;
  if (mode == "floor")
    place = std::floor(at);
  else if (mode == "ceil")
    place = std::ceil(at);
  else if (mode == "round_prefer_ceil")
    place = std::floor(at + 0.5);
  else
    place = std::ceil(at - 0.5);
  return std::clamp<int64_t>(static_cast<int64_t>(place), 0, size - 1);
}

double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

struct Filter {
  bool cubic, antialias, exclude_outside;
  double a, outside;
  bool crops;
};

// What a few bytes of a file ask for is computed while it is read: places, and elements of a matrix.
constexpr int64_t kMostPlaces = 1 << 22, kMostTaps = 1 << 24, kMostShares = 1 << 26;

/// Of each position those that it is made of, with their shares; none outside of what is cropped.
using Taps = std::vector<std::vector<std::pair<int64_t, double>>>;

Taps taps_of(onnx::ImportCall& call, const std::string& transformation, const Axis& axis,
             const Filter& filter) {
  const double stretch = filter.antialias
                             ? std::clamp(1 / axis.scale, 1.0, std::max(1.0, static_cast<double>(axis.from)))
                             : 1.0,
               reach = (filter.cubic ? 2 : 1) * stretch;
  if ((2 * reach + 2) * static_cast<double>(axis.to) > static_cast<double>(kMostTaps))
    call.refuse(fmt::format("from {} to {} are too many elements times shares", axis.from, axis.to));
  Taps all(static_cast<size_t>(axis.to));
  for (int64_t i = 0; i < axis.to; ++i) {
    const double at = source(transformation, axis, i);
    if (filter.crops && (at < 0 || at > static_cast<double>(axis.from - 1))) continue;
    double total = 0;
    auto& taps = all[static_cast<size_t>(i)];
    for (int64_t k = static_cast<int64_t>(std::floor(at - reach));
         k <= static_cast<int64_t>(std::ceil(at + reach)); ++k) {
      const double distance = (at - static_cast<double>(k)) / stretch;
      const double weight = filter.cubic ? cubic(distance, filter.a) : std::max(0.0, 1 - std::abs(distance));
      const int64_t place = std::clamp<int64_t>(k, 0, axis.from - 1);
      if (weight == 0 || (filter.exclude_outside && place != k)) continue;
      total += weight;
      if (!taps.empty() && taps.back().first == place)
        taps.back().second += weight;
      else
        taps.emplace_back(place, weight);
    }
    for (auto& [place, weight] : taps) weight /= total;
  }
  return all;
}

/// Along an axis the sum of elements times their shares, `most` of each position.
Value sum_of_taps(onnx::ImportCall& call, Value x, int64_t axis, const Taps& taps, size_t most) {
  const auto count = static_cast<int64_t>(taps.size());
  Shape beside(Ints(static_cast<size_t>(call.b.shape(x).rank()), 1));
  beside[static_cast<size_t>(axis)] = count;
  Value sum;
  for (size_t t = 0; t < most; ++t) {
    Ints places;
    Array shares(f32, beside);
    for (const auto& own : taps) {
      // Those that have fewer take their last one by halves: 0 times infinity would be none.
      const auto [place, share] =
          own.empty() ? std::pair<int64_t, double>(0, 0) : own[std::min(t, own.size() - 1)];
      const size_t halves = t + 1 < own.size() ? 0 : std::min(t + 2, most) - own.size();
      shares.set(std::ssize(places), std::ldexp(share, -static_cast<int>(halves)));
      places.push_back(place);
    }
    const Value part = call.b.mul(call.gather(x, call.ints_constant(places), axis), call.constant(shares));
    sum = t == 0 ? part : call.b.add(sum, part);
  }
  return sum;
}

/// The same as a product with a matrix [to, from], where each position has many.
Value product_with_taps(onnx::ImportCall& call, Value x, int64_t axis, const Taps& taps) {
  Ints order = onnx::numbered(0, call.b.shape(x).rank());
  std::swap(order[static_cast<size_t>(axis)], order.back());
  const Value turned = call.b.transpose(x, order);
  Shape shape = call.b.shape(turned);
  const int64_t from = shape.back().size(), to = std::ssize(taps);
  if (from > kMostShares / to)
    call.refuse(fmt::format("from {} to {} needs a matrix that is too large", from, to));
  Array shares(f32, {to, from});
  for (int64_t i = 0; i < to; ++i)
    for (const auto& [place, share] : taps[static_cast<size_t>(i)]) shares.set(i * from + place, share);
  const Value flat = call.b.reshape(turned, {shape.count() / std::max<int64_t>(from, 1), from});
  shape.back() = to;
  return call.b.transpose(call.b.reshape(call.b.matmul(flat, call.constant(shares), false, true), shape),
                          order);
}

Value along(onnx::ImportCall& call, Value x, int64_t axis, const Taps& taps) {
  constexpr size_t few = 16;
  size_t most = 1;
  for (const auto& own : taps) most = std::max(most, own.size());
  return most <= few ? sum_of_taps(call, x, axis, taps, most) : product_with_taps(call, x, axis, taps);
}

/// Elements by their places along an axis.
Value picked(onnx::ImportCall& call, Value x, int64_t axis, const Ints& places) {
  Shape shape = call.b.shape(x);
  const int64_t from = shape[static_cast<size_t>(axis)].size(), to = std::ssize(places);
  const int64_t times = from > 0 ? to / from : 0;
  bool repeats = axis + 1 == shape.rank() && times > 1 && to == times * from;
  for (int64_t i = 0; repeats && i < to; ++i) repeats = places[static_cast<size_t>(i)] == i / times;
  if (!repeats) return call.gather(x, call.ints_constant(places), axis);
  // Each several times, side by side: no place has to be looked up.
  shape.push_back(1);
  const Value apart = call.b.reshape(x, shape);
  shape.back() = times;
  const Value spread = call.b.broadcast(apart, shape);
  shape.pop_back();
  shape.back() = to;
  return call.b.reshape(spread, shape);
}

/// The axes that change; sizes and scales from what is given.
std::vector<std::pair<int64_t, Axis>> axes_of(onnx::ImportCall& call, bool old) {
  const int rank = call.rank(0);
  Ints axes = call.ints("axes", onnx::numbered(0, rank));
  for (int64_t& each : axes) each = call.axis(each, rank);
  const int at_scales = old ? 1 : 2;
  std::vector<double> scales, region;
  if (call.given(at_scales) && call.shape(at_scales).count() > 0)
    scales = call.known_array(at_scales).to_doubles();
  if (!old && call.given(1) &&
      call.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    region = call.known_array(1).to_doubles();
  Ints sizes;
  if (!old && call.given(3) && call.shape(3).count() > 0) sizes = call.known_ints(3);
  if (call.has("scales")) scales = call.numbers("scales");
  if (scales.size() != axes.size() && sizes.size() != axes.size())
    call.refuse("it needs a scale or a size for each axis");
  if (!region.empty() && region.size() != 2 * axes.size())
    call.refuse("its region needs two numbers for each axis");
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  // Scales are any numbers, NaN among them.
  const auto whole = [&](double size) {
    if (!(size >= 1 && size <= 2147483648.0)) call.refuse("sizes must be positive");
    return static_cast<int64_t>(std::floor(size));
  };
  std::vector<std::pair<int64_t, Axis>> found;
  double common = 0;
  if (!sizes.empty() && policy != "stretch")
    for (size_t i = 0; i < axes.size(); ++i) {
      const double scale = static_cast<double>(sizes[i]) /
                           static_cast<double>(call.shape(0)[static_cast<size_t>(axes[i])].size());
      common = i == 0 ? scale : (policy == "not_larger" ? std::min(common, scale) : std::max(common, scale));
    }
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis axis{call.shape(0)[static_cast<size_t>(axes[i])].size(), 0, 1, 0, 1};
    if (axis.from == 0 && (sizes.empty() || sizes[i] == 0)) continue;  // an empty batch
    if (!region.empty()) {
      axis.low = region[i];
      axis.high = region[axes.size() + i];
      if (!(std::abs(axis.low) < 1e9 && std::abs(axis.high) < 1e9))
        call.refuse("its region is no part of a picture");
    }
    if (sizes.empty()) {
      axis.scale = scales[i];
      axis.to = whole(meant(static_cast<double>(axis.from) * (axis.high - axis.low) * axis.scale));
    } else if (common > 0) {
      axis.scale = common;
      axis.to = whole(static_cast<double>(axis.from) * common + 0.5);
    } else {
      axis.to = sizes[i];
      axis.scale = static_cast<double>(axis.to) / (static_cast<double>(axis.from) * (axis.high - axis.low));
      if (axis.low != 0 || axis.high != 1)
        axis.scale = static_cast<double>(axis.to) / static_cast<double>(axis.from);
    }
    if (axis.from < 1 || axis.to < 1) call.refuse("sizes must be positive");
    if (axis.to > kMostPlaces)
      call.refuse(
          fmt::format("a size of {} is more than {}, the most it is resized to", axis.to, kMostPlaces));
    if (axis.to != axis.from || axis.scale != 1 || axis.low != 0 || axis.high != 1)
      found.emplace_back(axes[i], axis);
  }
  return found;
}

/// The nearest whole numbers that the dtype holds.
Value rounded(onnx::ImportCall& call, Value x, DType dtype) {
  const Value near = call.b.unary("floor", call.b.add(x, 0.5));
  const bool negative = dtype.kind == Kind::signed_int;
  const double most = std::ldexp(1.0, dtype.bits - (negative ? 1 : 0));
  const Value low = call.fill(near, negative ? -most : 0), high = call.fill(near, most - 1);
  return call.b.binary("minimum", call.b.binary("maximum", near, low), high);
}

std::vector<Value> resized(onnx::ImportCall& call, bool old) {
  const std::string mode = call.text("mode", "nearest");
  const std::string transformation =
      old ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel");
  const bool crops = transformation == "tf_crop_and_resize";
  const Filter filter{mode == "cubic",
                      call.integer("antialias", 0) != 0,
                      call.integer("exclude_outside", 0) != 0,
                      call.number("cubic_coeff_a", -0.75),
                      call.number("extrapolation_value", 0),
                      crops};
  const DType dtype = call.dtype(0);
  Value x = call[0], inside;
  const std::string rounds = old ? "floor" : call.text("nearest_mode", "round_prefer_floor");
  // The last axis first, whose elements lie side by side: pictures of bytes are rounded each time, as Pillow
  // and ONNX Runtime do.
  const bool rounds_each = filter.antialias && dtype.is_int();
  auto axes = axes_of(call, old);
  std::sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [at, axis] : axes) {
    if (mode == "nearest") {
      Ints places;
      for (int64_t i = 0; i < axis.to; ++i)
        places.push_back(nearest(rounds, source(transformation, axis, i), axis.from));
      x = picked(call, x, at, places);
    } else {
      x = along(call, call.b.cast(x, f32), at, taps_of(call, transformation, axis, filter));
      if (rounds_each) x = rounded(call, x, dtype);
    }
    if (!crops) continue;
    Ints one(static_cast<size_t>(call.rank(0)), 1);
    one[static_cast<size_t>(at)] = axis.to;
    Array in(boolean, Shape(one));
    for (int64_t i = 0; i < axis.to; ++i) {
      const double place = source(transformation, axis, i);
      in.set(i, place >= 0 && place <= static_cast<double>(axis.from - 1) ? 1 : 0);
    }
    const Value here = call.constant(in);
    inside = inside.valid() ? call.b.binary("logical_and", inside, here) : here;
  }
  if (inside.valid()) x = call.b.select(inside, x, call.fill(x, filter.outside));
  return {call.b.cast(x, dtype)};
}

}  // namespace

MILLRACE_ONNX_IMPORT(Resize) { return resized(call, call.opset < 11); }
MILLRACE_ONNX_IMPORT(Upsample) { return resized(call, true); }
