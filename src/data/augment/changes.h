// Augmentations that are functions; shared by augmentations.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "data/augment/augment.h"
#include "data/augment/pass.h"

namespace millrace::data {

/// As Augmentation::check(); null where pictures of any size can be changed.
using ExtentCheck = std::function<void(const Extent& extent)>;

/// As Augmentation::apply().
std::unique_ptr<Augmentation> change_by(
    std::function<void(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw)> apply);
/// With probability `p`, a change in place.
std::unique_ptr<Augmentation> change_sometimes(
    double p, std::function<void(const Extent& extent, uint8_t* planes, Draw& draw)> change,
    ExtentCheck check = nullptr);
/// A part of a pass, as Augmentation::collect().
std::unique_ptr<Augmentation> change_in_pass(std::function<bool(Draw& draw, Pass& pass)> collect,
                                             ExtentCheck check = nullptr);
/// With probability `p`, each value becomes what the table has for it.
std::unique_ptr<Augmentation> look_up_sometimes(double p, const Table& table);

inline Setting p_setting(double usual) { return {"p", "how often, of 1", usual, 0, 1}; }

/// Uniform in [a, b).
inline double between(Draw& draw, std::pair<double, double> range) {
  return range.first + (range.second - range.first) * draw.random.uniform();
}

}  // namespace millrace::data
