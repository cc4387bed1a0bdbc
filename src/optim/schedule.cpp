// Learning-rate schedules.
#include <cmath>
#include <numbers>

#include <millrace/optim.h>

#include "base/format.h"

namespace millrace::optim {
namespace {

/// From a to b along half a cosine, at 0 ≤ part ≤ 1.
double cosine_between(double a, double b, double part) {
  return b + (a - b) / 2 * (1 + std::cos(std::numbers::pi * part));
}

void check_total(int64_t total) {
  if (total < 1) fail<InputError>("a schedule needs at least one step, not {}", total);
}

}  // namespace

Schedule constant(double lr) {
  return [lr](int64_t) { return lr; };
}

Schedule step_decay(double lr, int64_t every, double factor) {
  check_total(every);
  return [=](int64_t step) {
    const int64_t drops = step / every;
    return lr * std::pow(factor, static_cast<double>(drops));
  };
}

Schedule cosine(double lr, int64_t total, double last) {
  check_total(total);
  return [=](int64_t step) {
    return step >= total ? last
                         : cosine_between(lr, last, static_cast<double>(step) / static_cast<double>(total));
  };
}

Schedule one_cycle(double lr, int64_t total, double rise, double divide, double final_divide) {
  check_total(total);
  if (!(rise >= 0 && rise <= 1) || !(divide > 0) || !(final_divide > 0))
    fail<InputError>(
        "a one-cycle schedule rises for a share of its steps and divides by numbers above 0, not {}, {} and "
        "{}",
        rise, divide, final_divide);
  const double first = lr / divide, last = first / final_divide;
  const double up = rise * static_cast<double>(total) - 1, end = static_cast<double>(total - 1);
  return [=](int64_t step) {
    const auto at = static_cast<double>(std::min(step, total - 1));
    if (at <= up) return up > 0 ? cosine_between(first, lr, at / up) : lr;
    return end > up ? cosine_between(lr, last, (at - up) / (end - up)) : last;
  };
}

Schedule triangle(double lr, int64_t total, double peak, double first, double last) {
  check_total(total);
  if (!(peak > 0 && peak < 1))
    fail<InputError>("the peak of a triangle schedule lies between 0 and 1, not at {}", peak);
  return [=](int64_t step) {
    const double part = std::min(1.0, static_cast<double>(step) / static_cast<double>(total));
    const double factor =
        part < peak ? first + (1 - first) * part / peak : 1 - (1 - last) * (part - peak) / (1 - peak);
    return lr * factor;
  };
}

Schedule warm_up(Schedule inner, int64_t steps) {
  if (!inner) fail<InputError>("there is no schedule to warm up to");
  return [=](int64_t step) {
    const double factor = step < steps ? static_cast<double>(step + 1) / static_cast<double>(steps) : 1;
    return factor * inner(step);
  };
}

}  // namespace millrace::optim
