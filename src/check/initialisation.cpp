// Weights that are all alike stay alike.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/words.h"
#include "check/check.h"
#include "check/context.h"

namespace millrace::check {
namespace {

bool all_zero(const Array& array) {
  const auto x = array.as<float>();
  return std::all_of(x.begin(), x.end(), [](float v) { return v == 0; });
}

bool all_same(const Array& array) {
  const auto x = array.as<float>();
  return std::all_of(x.begin(), x.end(), [&](float v) { return v == x[0]; });
}

/// Are all rows (units) as good as the same?
bool rows_alike(const Array& array) {
  const int64_t rows = array.shape()[0].size(), width = array.count() / rows;
  const auto x = array.as<float>();
  const double size = rms(array);
  for (int64_t r = 1; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i)
      if (std::abs(x[static_cast<size_t>(r * width + i)] - x[static_cast<size_t>(i)]) > 1e-5 * size)
        return false;
  return true;
}

Finding run_initialisation(Context& context) {
  std::vector<std::string> alike, dead, constant;
  int64_t weights = 0;
  for (const Signal& signal : context.signals()) {
    const Shape& shape = signal.value.shape();
    if (!signal.parameter || shape.rank() < 2 || signal.value.count() < 2) continue;
    ++weights;
    const bool zero = all_zero(signal.value);
    if (zero && all_zero(signal.gradient))
      dead.push_back(signal.name);
    else if (shape[0].size() > 1 && rows_alike(signal.value) && rows_alike(signal.gradient))
      alike.push_back(signal.name);
    else if (!zero && all_same(signal.value))
      constant.push_back(signal.name);
  }
  const Finding finding = [&] {
    if (weights == 0) return not_for("the model has no weights of two or more dimensions that are trained");
    if (!alike.empty())
      return failed(
          fmt::format("all units of {} have the same weights and the same gradient", few_names(alike)),
          "draw the weights at random (nn::init::kaiming_uniform, trunc_normal): units that are alike stay "
          "alike, and the layer has one unit in truth");
    if (!dead.empty())
      return failed(fmt::format("{} begins at zero and has no gradient", few_names(dead)),
                    "only one of two layers that follow each other may begin at zero: draw the other at "
                    "random");
    if (!constant.empty())
      return warned(fmt::format("all weights of {} are one number", few_names(constant)),
                    "draw them at random, unless what follows tells the units apart");
    return passed(fmt::format("{} weights: units differ, in their weights or their gradients", weights));
  }();
  return with_numbers(finding,
                      {{"alike", alike.size()}, {"zero", dead.size()}, {"constant", constant.size()}});
}

}  // namespace

MILLRACE_CHECK_KIND(initialisation){
    .name = "initialisation",
    .doc = "weights that are zero or constant, so that units cannot come to differ",
    .matters =
        "units with the same weights get the same gradient and stay the same for ever; two layers of zeros "
        "in a row never move",
    .place = 210,
    .run = run_initialisation,
};

}  // namespace millrace::check
