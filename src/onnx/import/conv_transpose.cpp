#include <algorithm>
#include <map>

#include "onnx/import/places.h"
#include "onnx/import/windows.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// Of two dimensions. What the pads take away behind is counted here.
Value of_two(onnx::ImportCall& call, Value dy, Value kernel, onnx::Windows w, int64_t groups,
             const Ints& result) {
  const Ints from = call.b.shape(dy).sizes();
  // The convolution whose gradient this is may not leave more over than a stride: what output_padding adds
  // beyond is bias alone.
  Shape reached{from[0], call.b.shape(kernel)[1].size() * groups};  // without rows that no window reaches
  Ints low(4, 0), high(4, 0);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t behind = (from[d + 2] - 1) * w.strides[d] + w.extent(d) - w.pads[d] - result[d];
    high[d + 2] = std::max<int64_t>(0, -behind);
    reached.emplace_back(result[d] - high[d + 2]);
    if (result[d] <= high[d + 2]) call.refuse("its pads leave nothing");
    w.pads[d + 2] = std::max<int64_t>(0, behind);
  }
  const Value y = call.graph.add("conv2d_input_grad", {dy, kernel},
                                 {{"strides", w.strides},
                                  {"pads", w.pads},
                                  {"dilations", w.dilations},
                                  {"groups", groups},
                                  {"input_shape", reached}});
  return high == low ? y : call.graph.add("pad", {y}, {{"low", low}, {"high", high}});
}

/// Of three dimensions, in steps of 1: a convolution of the input with the weights turned round.
Value as_convolution(onnx::ImportCall& call, const onnx::Windows& own, int64_t groups, const Ints& result) {
  const Ints weight = call.shape(1).sizes();
  Value x = call[0];
  onnx::Windows w = own;
  for (size_t d = 0; d < 3; ++d) {
    const auto axis = static_cast<int64_t>(d) + 2;
    const int64_t size = call.shape(0)[d + 2].size();
    w.pads[d] = w.extent(d) - 1 - own.pads[d];
    w.pads[d + 3] = result[d] - 1 + w.extent(d) - size - w.pads[d];
    // What the pads take away is not computed at all.
    const int64_t start = std::max<int64_t>(0, -w.pads[d]), end = size - std::max<int64_t>(0, -w.pads[d + 3]);
    if (start >= end) call.refuse("its pads leave nothing");
    x = call.part(x, axis, start, end);
    w.pads[d] = std::max<int64_t>(0, w.pads[d]);
    w.pads[d + 3] = std::max<int64_t>(0, w.pads[d + 3]);
  }
  Value turned = call[1];
  for (int64_t d = 2; d < 5; ++d) turned = turned_round(call, turned, d);
  const int64_t from = weight[0] / groups, to = weight[1];
  turned = call.b.transpose(call.b.reshape(turned, {groups, from, to, weight[2], weight[3], weight[4]}),
                            {0, 2, 1, 3, 4, 5});
  return onnx::convolved(
      call, x, call.b.reshape(turned, {groups * to, from, weight[2], weight[3], weight[4]}), w, groups);
}

/// Of three dimensions, in steps: slices along the first one are samples of two.
class OfSlices {
 public:
  OfSlices(onnx::ImportCall& call, const onnx::Windows& w, int64_t groups, const Ints& result)
      : call_(call),
        w_(w),
        groups_(groups),
        result_(result),
        x_(call.shape(0).sizes()),
        weight_(call.shape(1).sizes()),
        slices_(call.b.transpose(call[0], {0, 2, 1, 3, 4})) {}

  Value all() {
    const int64_t step = w_.strides[0], to = weight_[1] * groups_;
    if (w_.kernel[0] == step && w_.dilations[0] == 1 && w_.pads[0] == 0 && result_[0] == x_[2] * step) {
      // They do not meet: a slice's result has the window's places beside its channels.
      const Value y = samples(slices_, x_[2], call_[1], weight_[1] * step);
      const Value apart = call_.b.reshape(y, {x_[0], x_[2], to, step, result_[1], result_[2]});
      return call_.b.reshape(call_.b.transpose(apart, {0, 2, 1, 3, 4, 5}),
                             {x_[0], to, result_[0], result_[1], result_[2]});
    }
    // A step has places that parts of the window reach, and others.
    const int64_t places = std::min(step, result_[0]), rounds = (result_[0] + step - 1) / step;
    std::map<int64_t, Ints> reached;
    for (int64_t k = 0; k < w_.kernel[0]; ++k) {
      const int64_t place = (k * w_.dilations[0] - w_.pads[0]) % step;
      reached[place < 0 ? place + step : place].push_back(k);
    }
    std::vector<Value> parts;
    int64_t done = 0;
    const auto nothing_until = [&](int64_t place) {
      if (place > done) parts.push_back(nothing(rounds, place - done));
    };
    for (const auto& [place, by] : reached) {
      if (place >= places) break;
      nothing_until(place);
      parts.push_back(of_place(place, rounds, by));
      done = place + 1;
    }
    nothing_until(places);
    const Value whole =
        call_.b.reshape(call_.concat(parts, 2), {x_[0], rounds * places, to, result_[1], result_[2]});
    return call_.b.transpose(call_.part(whole, 1, 0, result_[0]), {0, 2, 1, 3, 4});
  }

 private:
  /// Of [batch, slices, channels, …].
  Value samples(Value x, int64_t slices, Value kernel, int64_t to) {
    const int64_t from = call_.b.shape(kernel)[0].size();
    const onnx::Windows inner{2,
                              {w_.kernel[1], w_.kernel[2]},
                              {w_.strides[1], w_.strides[2]},
                              {w_.dilations[1], w_.dilations[2]},
                              {w_.pads[1], w_.pads[2], 0, 0}};
    return of_two(call_, call_.b.reshape(x, {x_[0] * slices, from, x_[3], x_[4]}),
                  call_.b.reshape(kernel, {from, to, w_.kernel[1], w_.kernel[2]}), inner, groups_,
                  {result_[1], result_[2]});
  }

  Shape shape(int64_t rounds, int64_t places) const {
    return {x_[0], rounds, places, weight_[1] * groups_, result_[1], result_[2]};
  }
  Value nothing(int64_t rounds, int64_t places) {
    return call_.b.broadcast(call_.scalar(call_.dtype(0), 0), shape(rounds, places));
  }

  /// The slices of the result at a place within a step: those that the window's parts make them of have their
  /// channels beside each other.
  Value of_place(int64_t place, int64_t rounds, const Ints& by) {
    const int64_t from = weight_[0] / groups_, to = weight_[1];
    std::vector<Value> met, kernels;
    for (const int64_t k : by) {
      const int64_t first = (place + w_.pads[0] - k * w_.dilations[0]) / w_.strides[0],
                    start = std::max<int64_t>(0, first), end = std::min(x_[2], first + rounds);
      if (start >= end) continue;
      const Value there =
          call_.pad(call_.part(slices_, 1, start, end), 1, start - first, first + rounds - end);
      met.push_back(call_.b.reshape(there, {x_[0], rounds, groups_, from, x_[3], x_[4]}));
      kernels.push_back(call_.b.reshape(call_.part(call_[1], 2, k, k + 1),
                                        {groups_, from, to, w_.kernel[1], w_.kernel[2]}));
    }
    if (met.empty()) return nothing(rounds, 1);
    const Value kernel =
        call_.b.reshape(call_.concat(kernels, 1),
                        {weight_[0] * static_cast<int64_t>(met.size()), to, w_.kernel[1], w_.kernel[2]});
    return call_.b.reshape(samples(call_.concat(met, 3), rounds, kernel, to), shape(rounds, 1));
  }

  onnx::ImportCall& call_;
  const onnx::Windows& w_;
  int64_t groups_;
  const Ints &result_, x_, weight_;
  Value slices_;  // [batch, slices, channels, …]
};

}  // namespace

MILLRACE_ONNX_IMPORT(ConvTranspose) {
  const Ints weight = call.shape(1).sizes(), x = call.shape(0).sizes();
  if (weight.size() < 3 || weight.size() > 5 || x.size() != weight.size())
    call.refuse("it has another number of dimensions than 1, 2 or 3");
  const size_t dims = weight.size() - 2;
  const Ints strides = call.ints("strides", Ints(dims, 1)), dilations = call.ints("dilations", Ints(dims, 1)),
             extra = call.ints("output_padding", Ints(dims, 0));
  const int64_t groups = call.integer("group", 1);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  Ints pads = call.ints("pads", Ints(2 * dims, 0)), result;
  if (strides.size() != dims || dilations.size() != dims || extra.size() != dims || pads.size() != 2 * dims)
    call.refuse("its attributes are not as many as the dimensions");
  for (size_t d = 0; d < dims; ++d) {
    const int64_t full = strides[d] * (x[d + 2] - 1) + extra[d] + (weight[d + 2] - 1) * dilations[d] + 1;
    if (call.has("output_shape") || automatic.starts_with("SAME")) {
      const int64_t wanted = call.has("output_shape")
                                 ? call.ints("output_shape").at(call.ints("output_shape").size() - dims + d)
                                 : x[d + 2] * strides[d];
      const int64_t all = std::max<int64_t>(0, full - wanted);
      const bool half_in_front = automatic == "SAME_UPPER" || (automatic == "NOTSET" && call.opset < 11);
      pads[d] = half_in_front ? all / 2 : all - all / 2;
      pads[d + dims] = all - pads[d];
      result.push_back(wanted);
    } else {
      result.push_back(full - pads[d] - pads[d + dims]);
    }
  }
  const onnx::Windows own{static_cast<int>(dims), Ints(weight.begin() + 2, weight.end()), strides, dilations,
                          pads};
  if (dims == 3) {
    if (groups < 1 || weight[0] % groups != 0) call.refuse("its groups do not fit its weights");
    for (const int64_t size : result)
      if (size < 1) call.refuse("its pads leave nothing");
    const Value y = strides == Ints(3, 1) ? as_convolution(call, own, groups, result)
                                          : OfSlices(call, own, groups, result).all();
    return {call.given(2) ? call.b.add(y, call.b.reshape(call[2], {call.shape(2)[0], 1, 1, 1})) : y};
  }
  if (dims == 1) result.insert(result.begin(), 1);
  const Value dy = two_dimensional(call, call[0], own), kernel = two_dimensional(call, call[1], own);
  Value y = of_two(call, dy, kernel, as_two(own), groups, result);
  if (call.given(2)) y = call.b.add(y, call.b.reshape(call[2], {call.shape(2)[0], 1, 1}));
  return {as_it_was(call, y, own)};
}
