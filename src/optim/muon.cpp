#include <algorithm>
#include <cmath>
#include <fnmatch.h>

#include <millrace/optim.h>

#include "base/format.h"
#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/moments.h"

namespace millrace::optim {
namespace {

constexpr int64_t most_iterations = 99;

/// Newton and Schulz's iteration with Jordan's coefficients, which brings all singular values near 1.
Value orthogonal(ops::Build& b, Value matrix, int64_t iterations) {
  constexpr double a = 3.4445, c = -4.7750, d = 2.0315, least = 1e-7;
  const Value norm = b.unary("sqrt", b.sum(b.mul(matrix, matrix), {}, false));
  Value x = b.div(matrix, b.binary("maximum", norm, b.scalar(f32, least)));
  // Products with the smaller of both squares.
  const bool tall = b.shape(x)[0].size() > b.shape(x)[1].size();
  for (int64_t i = 0; i < iterations; ++i) {
    const Value square = tall ? b.matmul(x, x, true, false) : b.matmul(x, x, false, true);
    const Value polynomial = b.add(b.mul(square, c), b.mul(b.matmul(square, square), d));
    x = b.add(b.mul(x, a), tall ? b.matmul(x, polynomial) : b.matmul(polynomial, x));
  }
  return x;
}

}  // namespace

std::shared_ptr<const Optimizer> muon(const MuonOptions& o) {
  check_moments(o.beta1, o.beta2, o.epsilon);
  check_moments(o.momentum, 0, 0);
  if (o.iterations < 1 || o.iterations > most_iterations)
    fail<InputError>("muon makes 1 to {} iterations, not {}", most_iterations, o.iterations);
  const auto is_matrix = [by_adamw = o.by_adamw](const std::string& name, const Type& type) {
    return type.shape.rank() >= 2 && type.shape.count() > 0 && !(by_adamw && by_adamw(name));
  };
  const auto state_of = [is_matrix](const std::string& name, const Type& type) -> std::vector<StateArray> {
    if (is_matrix(name, type)) return {{"momentum", type}};
    return {{"exp_avg", type}, {"exp_avg_sq", type}};
  };
  const auto update = [o, is_matrix](Update& u) {
    ops::Build b(u.graph);
    const Value parameter = decayed(u, true);
    const Shape shape = b.shape(u.gradient);
    if (!is_matrix(u.name, {f32, shape})) return adam_step(u, parameter, o.beta1, o.beta2, o.epsilon);
    const auto towards = [&](Value from, Value to, double part) {
      return b.add(from, b.mul(b.sub(to, from), part));
    };
    u.state[0] = towards(u.state[0], u.gradient, 1 - o.momentum);
    const Value blended = o.nesterov ? towards(u.gradient, u.state[0], o.momentum) : u.state[0];
    const int64_t rows = shape[0].size(), columns = shape.count() / rows;
    const Value direction =
        b.reshape(orthogonal(b, b.reshape(blended, {rows, columns}), o.iterations), shape);
    const auto tall = static_cast<double>(rows), wide = static_cast<double>(columns);
    const double scale =
        o.match_adamw ? 0.2 * std::sqrt(std::max(tall, wide)) : std::sqrt(std::max(1.0, tall / wide));
    return b.sub(parameter, b.mul(direction, b.mul(u.lr, scale)));
  };
  return optimizer_by(o.common, {.state_of = state_of, .update = update, .scalars = [o](int64_t t) {
                                   return corrections(t, o.beta1, o.beta2);
                                 }});
}

MILLRACE_OPTIMIZER(muon){
    .name = "muon",
    .doc = "nearly orthogonal steps of matrices; what is no matrix, and adamw's, as adamw",
    .settings = {{"lr", "learning rate, which the schedule multiplies", 1e-3, 0},
                 {"momentum", "share of the momentum kept", 0.95, 0, 0.999999},
                 {"nesterov", "momentum looks one step ahead", true},
                 {"iterations", "of Newton and Schulz", int64_t{5}, 1, 99},
                 {"scale",
                  "how large a matrix's step is: as adamw's would be, or as Jordan has it (lr is then 0.02)",
                  std::string("match-adamw"),
                  -1e18,
                  1e18,
                  {"match-adamw", "original"}},
                 {"adamw", "names of matrices that adamw updates; * is any letters",
                  std::vector<std::string>{"*emb*", "*tok*", "*pos*", "*head*"}},
                 {"betas", "adamw's decays of the first and second moment", std::vector<double>{0.9, 0.95}, 0,
                  0.9999999},
                 {"eps", "adamw's, keeps the division by the second moment from zero", 1e-8, 1e-30, 1}},
    .make =
        [](const Settings& settings, Options common) {
          const auto [beta1, beta2] = betas_of(settings);
          return muon({.momentum = settings.number("momentum"),
                       .nesterov = settings.flag("nesterov"),
                       .iterations = settings.integer("iterations"),
                       .match_adamw = settings.text("scale") == "match-adamw",
                       .beta1 = beta1,
                       .beta2 = beta2,
                       .epsilon = settings.number("eps"),
                       .by_adamw =
                           [patterns = settings.texts("adamw")](const std::string& name) {
                             return std::any_of(patterns.begin(), patterns.end(),
                                                [&](const std::string& each) {
                                                  return ::fnmatch(each.c_str(), name.c_str(), 0) == 0;
                                                });
                           },
                       .common = std::move(common)});
        },
};

}  // namespace millrace::optim
