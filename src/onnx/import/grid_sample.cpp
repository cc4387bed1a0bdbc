#include "onnx/import/sampling.h"

using namespace millrace;
using onnx::Ints;

MILLRACE_ONNX_IMPORT(GridSample) {
  const Ints sizes = call.shape(0).sizes(), grid = call.shape(1).sizes();
  const size_t dims = sizes.size() - 2;
  if (sizes.size() < 3 || grid.size() != sizes.size() || grid.back() != static_cast<int64_t>(dims) ||
      grid[0] != sizes[0])
    call.refuse("its grid does not fit its picture");
  onnx::Sampling sampling;
  const std::string mode = call.text("mode", "linear"), outside = call.text("padding_mode", "zeros");
  if (mode == "nearest")
    sampling.between = onnx::Between::nearest;
  else if (mode == "cubic" || mode == "bicubic")
    sampling.between = onnx::Between::cubic;
  else if (mode != "linear" && mode != "bilinear")
    call.refuse("the mode '" + mode + "' is not known");
  if (outside == "border")
    sampling.outside = onnx::Outside::border;
  else if (outside == "reflection")
    sampling.outside = onnx::Outside::reflection;
  else if (outside != "zeros")
    call.refuse("the padding '" + outside + "' is not known");
  sampling.align_corners = call.integer("align_corners", 0) != 0;

  Shape out{sizes[0], sizes[1]};
  int64_t places = 1;
  for (size_t d = 1; d + 1 < grid.size(); ++d) {
    out.emplace_back(grid[d]);
    places *= grid[d];
  }
  const Value flat = call.b.reshape(call[1], {sizes[0], places, static_cast<int64_t>(dims)});
  std::vector<Value> at;
  for (size_t d = 0; d < dims; ++d) {
    const auto column = static_cast<int64_t>(dims - 1 - d);  // x comes first
    const Value n = call.b.reshape(call.part(flat, 2, column, column + 1), {sizes[0], places});
    const auto size = static_cast<double>(sizes[d + 2]);
    // −1 and 1 are the centres of the outer elements, or their edges.
    Value x = call.b.add(n, 1);
    x = sampling.align_corners ? call.b.mul(x, (size - 1) / 2)
                               : call.b.div(call.b.sub(call.b.mul(x, size), 1), 2);
    if (sampling.between == onnx::Between::nearest) x = call.graph.add("round", {x});
    at.push_back(x);
  }
  return {call.b.reshape(onnx::sampled(call, call[0], at, sampling), out)};
}
