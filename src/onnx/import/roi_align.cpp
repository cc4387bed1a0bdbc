#include "onnx/import/sampling.h"

using namespace millrace;
using onnx::Ints;

namespace {

struct Sides {
  Value low, high, weight;  // indices, and the weight of the high one, [rois, places]
  Value inside;
};

/// The elements on both sides of a place; what lies further than one element outside counts nothing.
Sides sides_of(onnx::ImportCall& call, Value x, int64_t size) {
  const auto most = static_cast<double>(size - 1);
  Sides s;
  s.inside = call.graph.add("logical_and", {call.compare("greater_equal", x, -1),
                                            call.compare("less_equal", x, static_cast<double>(size))});
  const Value at = call.clamp(x, 0, most);
  const Value low = call.graph.add("floor", {at});
  s.low = call.b.cast(low, i64);
  s.high = call.b.cast(call.clamp(call.b.add(low, 1), 0, most), i64);
  s.weight = call.b.sub(at, low);
  return s;
}

}  // namespace

MILLRACE_ONNX_IMPORT(RoiAlign) {
  const Ints x = call.shape(0).sizes(), rois = call.shape(1).sizes();
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4) call.refuse("its regions do not fit its picture");
  const int64_t ratio = call.integer("sampling_ratio", 0), height = call.integer("output_height", 1),
                width = call.integer("output_width", 1), many = rois[0];
  if (ratio < 1) call.refuse("how many points it looks at depends on its regions: give it a sampling_ratio");
  if (ratio > 64 || height < 1 || width < 1 || height > 4096 || width > 4096) call.refuse("it is too large");
  const bool half =
      call.opset >= 16 && call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const double scale = call.number("spatial_scale", 1);
  const Value corners = call.b.sub(call.b.mul(call[1], scale), half ? 0.5 : 0.0);
  const int64_t places = height * ratio * width * ratio;
  const auto points = [&](int64_t first, int64_t bins, bool down) {
    const Value from = call.part(corners, 1, first, first + 1);
    Value size = call.b.sub(call.part(corners, 1, first + 2, first + 3), from);
    if (!half) size = call.b.binary("maximum", size, call.fill(size, 1));
    Array steps(f32, {1, places});  // in parts of the region
    for (int64_t p = 0; p < places; ++p) {
      const int64_t bin = down ? p / (width * ratio * ratio) : p / (ratio * ratio) % width;
      const int64_t within = down ? p / ratio % ratio : p % ratio;
      steps.set(
          p, (static_cast<double>(bin) + (static_cast<double>(within) + 0.5) / static_cast<double>(ratio)) /
                 static_cast<double>(bins));
    }
    const Value at = call.b.mul(size, call.b.cast(call.constant(steps), call.dtype(1)));
    return call.b.add(at, from);
  };
  // Places are [height, width, ratio, ratio].
  const Sides y = sides_of(call, points(1, height, true), x[2]),
              across = sides_of(call, points(0, width, false), x[3]);
  const Value flat = call.b.reshape(call[0], {x[0], x[1], x[2] * x[3]}), samples = call.b.cast(call[2], i64);
  const bool most = call.text("mode", "avg") == "max";
  const Value inside = call.graph.add("logical_and", {y.inside, across.inside});
  const Shape shape{many, x[1], places};
  Value total;
  for (int corner = 0; corner < 4; ++corner) {
    const auto part = [&](const Sides& s, bool high) {
      return high ? s.weight : call.b.sub(call.fill(s.weight, 1), s.weight);
    };
    const bool down = corner / 2 == 1, right = corner % 2 == 1;
    const Value index = call.b.add(call.b.mul(down ? y.high : y.low, static_cast<double>(x[3])),
                                   right ? across.high : across.low);
    Value weight = call.b.mul(part(y, down), part(across, right));
    weight = call.b.select(inside, weight, call.fill(weight, 0));
    const Value seen = call.b.mul(onnx::picked(call, flat, index, samples),
                                  call.b.broadcast(call.b.reshape(weight, {many, 1, places}), shape));
    total = !total.valid() ? seen : call.b.binary(most ? "maximum" : "add", total, seen);
  }
  const Value bins = call.b.reshape(total, {many, x[1], height, width, ratio * ratio});
  return {most ? call.b.max(bins, {4}, false) : call.b.mean(bins, {4}, false)};
}
