// What the random operators share: type rule, and Philox (millrace/random.h) written in scalars.
#pragma once

#include <array>

#include <millrace/operator.h>

namespace millrace::ops {

/// A generator with operand key i64[2] = (seed, step) and attributes shape, stream and dtype; the element at
/// flat position i is made from philox(counter = (low i, high i, stream, low step), key = (low seed, high
/// seed)), so it depends on nothing else. `dtype` is the default, `dtypes` names those that it may be; empty:
/// any.
Operator random_operator(std::string_view name, std::string_view doc, DType dtype,
                         std::vector<std::string> dtypes);

/// The flat position (i64) of the element at `index`.
Scalar flat_index(ElementBuilder& b, std::span<const Scalar> index, const ElementContext& context);
/// Those four words (u32) for the element at a flat position.
std::array<Scalar, 4> random_words(ElementBuilder& b, Scalar flat, const ElementContext& context);

/// A whole number in [0, 2^bits) of one or two words, and as a float of dtype f32 or f64.
Scalar random_whole(ScalarBuilder& b, Scalar high, Scalar low, int bits);

/// A sample with a fixed key.
Sample random_sample(const Shape& shape, Attributes attributes = {});

}  // namespace millrace::ops
