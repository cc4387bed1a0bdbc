#include <algorithm>
#include <cmath>
#include <numbers>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

// Fourier transforms as products with matrices of sines and cosines, long ones in two steps (Cooley and
// Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965).
namespace {

constexpr int64_t kMostElements = int64_t{1} << 26;  // of such a matrix

/// The last axis' real and imaginary parts; not valid: 0.
struct Complex {
  Value re, im;
};

/// In f64 what should be 0 is.
DType exact_if_small(int64_t elements, DType dtype) { return elements <= (1 << 12) ? f64 : dtype; }

/// factor(j, k) · cos or sin of 2π j k / length, [rows, columns].
template <typename Factor>
Value angles(onnx::ImportCall& call, DType dtype, int64_t rows, int64_t columns, int64_t length, bool sine,
             const Factor& factor) {
  if (rows < 1 || columns < 1 || length < 1) call.refuse("its length is not positive");
  if (rows > kMostElements / columns)
    call.refuse("it is too long for the way in which it is computed: its length has a large prime factor");
  Array array(dtype, {rows, columns});
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t k = 0; k < columns; ++k) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(j * k % length) / static_cast<double>(length);
      array.set(j * columns + k, factor(j) * (sine ? std::sin(angle) : std::cos(angle)));
    }
  return call.constant(array);
}

Value times(onnx::ImportCall& call, Value x, Value factors) {
  x = call.b.cast(x, call.b.dtype(factors));
  const Shape shape = call.b.shape(x);
  const int64_t last = shape.back().size(), rows = shape.count() / std::max<int64_t>(1, last);
  Shape to = shape;
  to.back() = call.b.shape(factors)[1];
  return call.b.reshape(call.b.matmul(call.b.reshape(x, {rows, last}), factors), to);
}

/// What of the last axis is not beyond `length`.
Value cut(onnx::ImportCall& call, Value x, int64_t length) {
  const Shape& shape = call.b.shape(x);
  return shape.back().size() <= length ? x : call.part(x, shape.rank() - 1, 0, length);
}

Complex transformed(onnx::ImportCall& call, Complex x, int64_t length, int64_t bins, bool inverse,
                    bool alone);

/// What is done to both parts.
template <typename Do>
Complex each(const Complex& x, const Do& what) {
  return {what(x.re), x.im.valid() ? what(x.im) : x.im};
}

/// The first of two factors of a length whose transforms together take much less work than that of `bins` of
/// it at once; 1: there is none.
int64_t first_factor(int64_t given, int64_t length, int64_t bins) {
  constexpr double much = 4;
  auto first = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  while (first > 1 && length % first != 0) --first;
  const auto other = static_cast<double>(length) / static_cast<double>(first);
  const double at_once = 2 * static_cast<double>(given) * static_cast<double>(bins),
               in_two = static_cast<double>(length) * (2 * static_cast<double>(first) + 4 * other + 40);
  return first > 1 && at_once > much * in_two ? first : 1;
}

/// The whole transform of the last axis of `first` · m elements: those of m apart, each times the angle by
/// which it is late, then those of what these give.
Complex in_two_steps(onnx::ImportCall& call, Complex x, int64_t first, int64_t length, bool inverse) {
  const int64_t other = length / first;
  Shape matrix = call.b.shape(x.re);
  const int rank = matrix.rank();
  Shape line = matrix;
  line.back() = Dim(length);
  matrix.back() = Dim(first);
  matrix.push_back(Dim(other));
  Ints turned = onnx::numbered(0, rank + 1);
  std::swap(turned[static_cast<size_t>(rank) - 1], turned.back());
  const auto turn = [&](Value part) { return call.b.transpose(part, turned); };
  x = each(x, [&](Value part) {
    const int64_t given = call.b.shape(part).back().size();
    Ints none(static_cast<size_t>(rank), 0), high = none;
    high.back() = length - given;
    if (given < length) part = call.graph.add("pad", {part}, {{"low", none}, {"high", high}});
    return turn(call.b.reshape(part, matrix));
  });
  x = transformed(call, x, first, first, inverse, false);  // [..., m, first]
  const auto late = [&](bool sine) {
    const Value angle = angles(call, f64, other, first, length, sine, [](int64_t) { return 1.0; });
    return call.b.broadcast(call.b.cast(angle, call.b.dtype(x.re)), call.b.shape(x.re));
  };
  const Value cosine = late(false), sine = late(true);
  const Value crossed = call.b.mul(x.im, sine), kept = call.b.mul(x.re, cosine);
  const Value other_crossed = call.b.mul(x.re, sine), other_kept = call.b.mul(x.im, cosine);
  x = inverse ? Complex{call.b.sub(kept, crossed), call.b.add(other_kept, other_crossed)}
              : Complex{call.b.add(kept, crossed), call.b.sub(other_kept, other_crossed)};
  x = transformed(call, each(x, turn), other, other, inverse, false);  // [..., first, m]
  return each(x, [&](Value part) { return call.b.reshape(turn(part), line); });
}

/// The transform of the last axis, as if it had `length` elements; `bins` of the result. `alone`: it is no
/// step of another one.
Complex transformed(onnx::ImportCall& call, Complex x, int64_t length, int64_t bins, bool inverse,
                    bool alone = true) {
  x = each(x, [&](Value part) { return cut(call, part, length); });
  DType dtype = call.b.dtype(x.re);
  if (const int64_t first = first_factor(call.b.shape(x.re).back().size(), length, bins); first > 1) {
    const Complex whole = in_two_steps(call, x, first, length, inverse);
    return each(whole, [&](Value part) { return cut(call, part, bins); });
  }
  const int64_t given = call.b.shape(x.re).back().size();
  if (alone) dtype = exact_if_small(given * bins, dtype);
  const double scale = inverse ? 1 / static_cast<double>(length) : 1;
  const auto factor = [&](int64_t) { return scale; };
  const Value cosines = angles(call, dtype, given, bins, length, false, factor),
              sines = angles(call, dtype, given, bins, length, true, factor);
  // e^∓iωt = cos ∓ i sin
  Complex y{times(call, x.re, cosines), times(call, x.re, sines)};
  if (!inverse) y.im = call.graph.add("neg", {y.im});
  if (!x.im.valid()) return y;
  const Value crossed = times(call, x.im, sines);
  y.re = inverse ? call.b.sub(y.re, crossed) : call.b.add(y.re, crossed);
  y.im = call.b.add(y.im, times(call, x.im, cosines));
  return y;
}

/// The real signal of which one half of the transform is given.
Value real_inverse(onnx::ImportCall& call, Complex x, int64_t length) {
  const int64_t bins = length / 2 + 1;
  x = each(x, [&](Value part) { return cut(call, part, bins); });
  const int64_t given = call.b.shape(x.re).back().size();
  const DType dtype = exact_if_small(given * length, call.b.dtype(x.re));
  if (given == bins && first_factor(length, length, length) > 1) {
    // The other half is the same backwards, conjugated.
    Array backwards(i64, {length - bins});
    for (int64_t k = 0; k < backwards.count(); ++k) backwards.set_int(k, length - bins - k);
    const auto both = [&](Value part, bool imaginary) {
      const int rank = call.b.shape(part).rank();
      const Value rest = call.gather(part, call.constant(backwards), rank - 1);
      return call.graph.add("concat", {part, imaginary ? call.graph.add("neg", {rest}) : rest},
                            {{"axis", int64_t{rank - 1}}});
    };
    return transformed(call, {both(x.re, false), x.im.valid() ? both(x.im, true) : x.im}, length, length,
                       true)
        .re;
  }
  const auto factor = [&](int64_t k) {
    const bool once = k == 0 || 2 * k == length;
    return (once ? 1.0 : 2.0) / static_cast<double>(length);
  };
  Value y = times(call, x.re, angles(call, dtype, given, length, length, false, factor));
  if (x.im.valid())
    y = call.b.sub(y, times(call, x.im, angles(call, dtype, given, length, length, true, factor)));
  return y;
}

/// x [..., n, ..., 1 or 2] with axis `axis` last and its parts apart.
Complex apart(onnx::ImportCall& call, Value x, const Ints& order) {
  const Ints sizes = call.b.shape(x).sizes();
  const auto part = [&](int64_t k) {
    const Shape shape(Ints(sizes.begin(), sizes.end() - 1));
    return call.b.transpose(call.b.reshape(call.part(x, std::ssize(sizes) - 1, k, k + 1), shape), order);
  };
  if (sizes.back() != 1 && sizes.back() != 2) call.refuse("the last axis of its signal is neither 1 nor 2");
  return {part(0), sizes.back() == 2 ? part(1) : Value{}};
}

Value together(onnx::ImportCall& call, const Complex& y) {
  return call.stacked({y.re, y.im}, call.b.shape(y.re).rank());
}

}  // namespace

MILLRACE_ONNX_IMPORT(DFT) {
  const int rank = call.rank(0);
  if (rank < 2) call.refuse("its signal has no axis for the parts of its numbers");
  const int64_t said = call.opset < 20 ? call.integer("axis", 1)
                       : call.given(2) ? static_cast<int64_t>(call.known_number(2))
                                       : -2;
  const int64_t axis = call.axis(said, rank);
  if (axis == rank - 1) call.refuse("its axis is that of the parts of its numbers");
  const bool inverse = call.integer("inverse", 0) != 0, onesided = call.integer("onesided", 0) != 0;
  Ints order = onnx::numbered(0, rank - 1);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  const Complex x = apart(call, call[0], order);
  const int64_t given = call.shape(0)[static_cast<size_t>(axis)].size();
  const int64_t length = call.given(1) ? call.known_int(1) : inverse && onesided ? 2 * (given - 1) : given;
  if (inverse && onesided) {
    const Value y = call.b.transpose(real_inverse(call, x, length), order);
    return {call.b.cast(call.stacked({y}, rank - 1), call.dtype(0))};
  }
  const Complex y = transformed(call, x, length, onesided ? length / 2 + 1 : length, inverse);
  return {call.b.cast(together(call, {call.b.transpose(y.re, order), call.b.transpose(y.im, order)}),
                      call.dtype(0))};
}

MILLRACE_ONNX_IMPORT(STFT) {
  // PyTorch's exporter leaves the last axis out.
  const Ints sizes = call.shape(0).sizes();
  if (sizes.size() != 2 && sizes.size() != 3) call.refuse("its signal is not [batch, samples, 1 or 2]");
  const int64_t step = call.known_int(1);
  const int64_t length = call.given(3) ? call.known_int(3) : call.given(2) ? call.shape(2).count() : sizes[1];
  if (step < 1 || length < 1 || length > sizes[1]) call.refuse("its frames do not fit its signal");
  const int64_t frames = (sizes[1] - length) / step + 1;
  if (frames > kMostElements / length) call.refuse("its frames are too many");
  Array places(i64, {frames, length});
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < length; ++i) places.set_int(f * length + i, f * step + i);
  Complex x = sizes.size() == 2 ? Complex{call[0], {}} : apart(call, call[0], {0, 1});
  const auto framed = [&](Value part) {
    const Value cut = call.gather(part, call.constant(places), 1);
    return call.given(2) ? call.b.mul(cut, call[2]) : cut;
  };
  x = {framed(x.re), x.im.valid() ? framed(x.im) : x.im};
  const bool onesided = call.integer("onesided", 1) != 0;
  const Complex y = transformed(call, x, length, onesided ? length / 2 + 1 : length, false);
  return {call.b.cast(together(call, y), call.dtype(0))};
}

/// A bank of triangles on the mel scale; all that it depends on is known.
MILLRACE_ONNX_IMPORT(MelWeightMatrix) {
  const auto bands = static_cast<int64_t>(call.known_number(0)),
             length = static_cast<int64_t>(call.known_number(1));
  const double rate = call.known_number(2), low = call.known_number(3), high = call.known_number(4);
  const int64_t bins = length / 2 + 1;
  if (bands < 1 || length < 1 || bins > kMostElements / bands || !(rate > 0))
    call.refuse("its sizes are not positive, or too large");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<double> edges;
  const double from = mel(low), step = (mel(high) - from) / static_cast<double>(bands + 2);
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10.0, (from + static_cast<double>(i) * step) / 2595) - 1);
    edges.push_back(std::floor(static_cast<double>(length + 1) * hertz / rate));
  }
  const std::optional<DType> dtype = onnx::dtype_of(call.integer("output_datatype", 1));
  if (!dtype) call.refuse("its type is not known");
  Array weights(*dtype, {bins, bands});
  for (int64_t band = 0; band < bands; ++band) {
    const auto at = static_cast<size_t>(band);
    const double left = edges[at], centre = edges[at + 1], right = edges[at + 2];
    for (int64_t bin = 0; bin < bins; ++bin) {
      const auto b = static_cast<double>(bin);
      double weight = 0;
      if (b == centre)
        weight = 1;
      else if (b > left && b < centre)
        weight = (b - left) / (centre - left);
      else if (b > centre && b < right)
        weight = (right - b) / (right - centre);
      weights.set(bin * bands + band, weight);
    }
  }
  return {call.constant(weights)};
}
