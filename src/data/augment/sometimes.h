// Changes in place that are made with a probability; shared by augmentations.
#pragma once

#include <cstring>

#include "data/augment/augment.h"

namespace millrace::data {

class Sometimes : public Augmentation {
 public:
  explicit Sometimes(double probability) : probability_(probability) {}
  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const final {
    std::memcpy(out, in, extent.bytes());
    if (draw.random.uniform() < probability_) change(extent, out, draw);
  }
  virtual void change(const Extent& extent, uint8_t* planes, Draw& draw) const = 0;

 private:
  double probability_;
};

/// Uniform in [a, b).
inline double between(Draw& draw, std::pair<double, double> range) {
  return range.first + (range.second - range.first) * draw.random.uniform();
}

inline Setting p_setting(double usual) { return {"p", "how often, of 1", usual, 0, 1}; }

}  // namespace millrace::data
