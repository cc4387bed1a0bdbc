#include <algorithm>
#include <cmath>
#include <limits>

#include <millrace/optim.h>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

constexpr double tiny = std::numeric_limits<float>::epsilon();

Shape matrix_shape(const Shape& shape) {
  const int64_t rows = shape[0].size();
  return {rows, rows > 0 ? shape.count() / rows : 0};
}

}  // namespace

std::shared_ptr<const Optimizer> adafactor(const AdafactorOptions& o) {
  if (!(o.beta2_decay <= 0 && std::isfinite(o.beta2_decay)))
    fail<InputError>("beta2_decay must be at most 0, not {}", o.beta2_decay);
  if (!(o.epsilon >= 0 && std::isfinite(o.epsilon)))
    fail<InputError>("epsilon must be at least 0, not {}", o.epsilon);
  if (!(o.clip > 0)) fail<InputError>("clip must be more than 0, not {}", o.clip);
  const auto state_of = [](const std::string& /*name*/, const Type& type) -> std::vector<StateArray> {
    if (type.shape.rank() < 2) return {{"variance", type}};
    const Shape matrix = matrix_shape(type.shape);
    return {{"row_variance", {f32, {matrix[0].size(), 1}}},
            {"column_variance", {f32, {1, matrix[1].size()}}}};
  };
  // The weight of the new second moment, and the most that lr may be.
  const auto scalars = [decay = o.beta2_decay](int64_t step) -> std::vector<double> {
    const auto t = static_cast<double>(step);
    return {std::pow(t, decay), 1 / std::sqrt(t)};
  };
  const auto update = [o](Update& u) {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, true);
    const Shape shape = b.shape(u.gradient);
    const auto count = static_cast<double>(std::max<int64_t>(shape.count(), 1));
    const auto root_mean_square = [&](Value v) {
      return b.unary("sqrt", b.div(b.sum(b.mul(v, v), {}, false), count));
    };
    const Value size = b.binary("maximum", root_mean_square(u.parameter), b.scalar(f32, o.epsilon));
    const Value rate = b.mul(size, b.binary("minimum", u.lr, u.scalars[1]));
    const Value squares = b.mul(u.gradient, u.gradient);
    const auto blend = [&](Value& old, Value fresh) {
      old = b.add(old, b.mul(b.sub(fresh, old), u.scalars[0]));
    };
    Value second;
    if (shape.rank() < 2) {
      blend(u.state[0], squares);
      second = u.state[0];
    } else {
      const Shape matrix = matrix_shape(shape);
      const Value each = b.reshape(squares, matrix);
      blend(u.state[0], b.mean(each, {1}, true));
      blend(u.state[1], b.mean(each, {0}, true));
      const Value all = b.mean(u.state[0], {0}, true);
      const Value rows = b.div(u.state[0], b.binary("maximum", all, b.fill(all, tiny)));
      second = b.reshape(b.mul(rows, u.state[1]), shape);
    }
    const Value direction =
        b.mul(u.gradient, b.unary("rsqrt", b.binary("maximum", second, b.fill(second, tiny * tiny))));
    const Value over = b.binary("maximum", b.div(root_mean_square(direction), o.clip), b.scalar(f32, 1));
    return b.sub(parameter, b.mul(direction, b.div(rate, over)));
  };
  return optimizer_by(o.common, {.state_of = state_of, .update = update, .scalars = scalars});
}

MILLRACE_OPTIMIZER(adafactor){
    .name = "adafactor",
    .doc = "keeps of a matrix's second moment only its rows' and columns' means: nearly no state",
    .settings = {{"lr", "learning rate beside the size of a parameter, which the schedule multiplies", 1e-2,
                  0},
                 {"beta2_decay", "the second moment takes step ^ this of the new squares", -0.8, -10, 0},
                 {"eps", "the least size of a parameter that lr is relative to", 1e-3, 0, 1},
                 {"clip", "updates whose root mean square is larger are scaled down to it", 1.0, 1e-6, 1e6}},
    .make =
        [](const Settings& settings, Options common) {
          return adafactor({settings.number("beta2_decay"), settings.number("eps"), settings.number("clip"),
                            std::move(common)});
        },
};

}  // namespace millrace::optim
