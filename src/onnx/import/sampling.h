// Values between the elements of pictures, for operators that look at computed places.
#pragma once

#include "onnx/import/call.h"

namespace millrace::onnx {

enum class Between { nearest, linear, cubic };
enum class Outside { zeros, border, reflection };

struct Sampling {
  Between between = Between::linear;
  Outside outside = Outside::zeros;
  bool align_corners =
      false;  // where reflections happen: at the outer elements' centres, else at their edges
};

/// x [n, channels, sizes …] at places: for each spatial axis a float [n, places]. The result is
/// [n, channels, places].
Value sampled(ImportCall& call, Value x, const std::vector<Value>& at, const Sampling& sampling);

/// x [n, channels, many] at the indices [m, places], which lie inside, of the samples i64[m]; not valid: of
/// each its own. The result is [m, channels, places].
Value picked(ImportCall& call, Value x, Value indices, Value samples = {});

}  // namespace millrace::onnx
