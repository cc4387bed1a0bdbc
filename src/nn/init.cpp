// Initialisers; the formulas are those of the papers named in nn.h, the conventions (fans, gains) PyTorch's.
#include <cmath>
#include <numbers>

#include <millrace/nn.h>
#include <millrace/random.h>

#include "base/fnv.h"
#include "base/format.h"

namespace millrace::nn::init {
namespace {

/// Standard normal numbers by pairs (Box and Muller).
class Normal {
 public:
  Normal(uint64_t seed, const std::string& name) : random_(seed, fnv1a(name)) {}
  double next() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2 * std::log(1.0 - random_.uniform()));
    const double angle = 2 * std::numbers::pi * random_.uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  RandomStream random_;
  double spare_ = 0;
  bool has_spare_ = false;
};

struct Fans {
  double in, out;
};

Fans fans_of(const Array& parameter, const std::string& name) {
  const Shape& shape = parameter.shape();
  if (shape.rank() < 2) fail<InputError>("{}: this initialiser needs at least two dimensions", name);
  double window = 1;
  for (int d = 2; d < shape.rank(); ++d) window *= static_cast<double>(shape[d].size());
  return {static_cast<double>(shape[1].size()) * window, static_cast<double>(shape[0].size()) * window};
}

void fill_uniform(Array& parameter, double low, double high, uint64_t seed, const std::string& name) {
  RandomStream random(seed, fnv1a(name));
  for (float& value : parameter.as<float>())
    value = static_cast<float>(low + (high - low) * random.uniform());
}

void fill_normal(Array& parameter, double mean, double deviation, uint64_t seed, const std::string& name) {
  Normal normal(seed, name);
  for (float& value : parameter.as<float>()) value = static_cast<float>(mean + deviation * normal.next());
}

/// Makes the rows (length `width`) orthonormal, one after the other (modified Gram–Schmidt).
void orthonormalise(std::vector<double>& rows, int64_t count, int64_t width) {
  for (int64_t i = 0; i < count; ++i) {
    double* row = rows.data() + i * width;
    for (int64_t j = 0; j < i; ++j) {
      const double* other = rows.data() + j * width;
      double dot = 0;
      for (int64_t k = 0; k < width; ++k) dot += row[k] * other[k];
      for (int64_t k = 0; k < width; ++k) row[k] -= dot * other[k];
    }
    double norm = 0;
    for (int64_t k = 0; k < width; ++k) norm += row[k] * row[k];
    for (int64_t k = 0; k < width; ++k) row[k] /= std::sqrt(norm);
  }
}

}  // namespace

Initialiser constant(double value) {
  return [value](Array& parameter, uint64_t, const std::string&) {
    for (float& v : parameter.as<float>()) v = static_cast<float>(value);
  };
}

Initialiser uniform(double low, double high) {
  return [low, high](Array& parameter, uint64_t seed, const std::string& name) {
    fill_uniform(parameter, low, high, seed, name);
  };
}

Initialiser normal(double mean, double deviation) {
  return [mean, deviation](Array& parameter, uint64_t seed, const std::string& name) {
    fill_normal(parameter, mean, deviation, seed, name);
  };
}

Initialiser trunc_normal(double deviation) {
  return [deviation](Array& parameter, uint64_t seed, const std::string& name) {
    Normal normal(seed, name);
    for (float& value : parameter.as<float>()) {
      double x = normal.next();
      while (std::abs(x) > 2) x = normal.next();
      value = static_cast<float>(deviation * x);
    }
  };
}

Initialiser kaiming_uniform(double a) {
  return [a](Array& parameter, uint64_t seed, const std::string& name) {
    const double bound = std::sqrt(6 / ((1 + a * a) * fans_of(parameter, name).in));
    fill_uniform(parameter, -bound, bound, seed, name);
  };
}

Initialiser kaiming_normal(double a) {
  return [a](Array& parameter, uint64_t seed, const std::string& name) {
    fill_normal(parameter, 0, std::sqrt(2 / ((1 + a * a) * fans_of(parameter, name).in)), seed, name);
  };
}

Initialiser xavier_uniform(double gain) {
  return [gain](Array& parameter, uint64_t seed, const std::string& name) {
    const Fans fans = fans_of(parameter, name);
    const double bound = gain * std::sqrt(6 / (fans.in + fans.out));
    fill_uniform(parameter, -bound, bound, seed, name);
  };
}

Initialiser xavier_normal(double gain) {
  return [gain](Array& parameter, uint64_t seed, const std::string& name) {
    const Fans fans = fans_of(parameter, name);
    fill_normal(parameter, 0, gain * std::sqrt(2 / (fans.in + fans.out)), seed, name);
  };
}

Initialiser dirac(Initialiser rest) {
  return [rest](Array& parameter, uint64_t seed, const std::string& name) {
    const Shape& shape = parameter.shape();
    if (shape.rank() != 4)
      fail<InputError>("{}: dirac is for convolutions, not {}", name, parameter.type().str());
    if (rest) rest(parameter, seed, name);
    const auto sizes = shape.sizes();
    const auto values = parameter.as<float>();
    const int64_t filter = sizes[1] * sizes[2] * sizes[3], window = sizes[2] * sizes[3];
    const int64_t middle = sizes[2] / 2 * sizes[3] + sizes[3] / 2;
    for (int64_t o = 0; o < std::min(sizes[0], sizes[1]); ++o) {
      std::fill_n(values.begin() + o * filter, filter, 0.0F);
      values[o * filter + o * window + middle] = 1;
    }
  };
}

Initialiser orthogonal(double gain) {
  return [gain](Array& parameter, uint64_t seed, const std::string& name) {
    fans_of(parameter, name);  // checks the rank
    const int64_t rows = parameter.shape()[0].size(),
                  columns = parameter.count() / std::max<int64_t>(rows, 1);
    const bool wide = rows <= columns;
    const int64_t count = wide ? rows : columns, width = wide ? columns : rows;
    std::vector<double> basis(static_cast<size_t>(count * width));
    Normal normal(seed, name);
    for (double& value : basis) value = normal.next();
    orthonormalise(basis, count, width);
    const auto values = parameter.as<float>();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        values[r * columns + c] = static_cast<float>(gain * basis[wide ? r * width + c : c * width + r]);
  };
}

Initialiser values(Array array) {
  return [array](Array& parameter, uint64_t, const std::string& name) {
    if (array.type() != parameter.type())
      fail<InputError>("{}: values of type {} for a parameter of type {}", name, array.type().str(),
                       parameter.type().str());
    std::memcpy(parameter.data(), array.data(), static_cast<size_t>(array.bytes()));
  };
}

}  // namespace millrace::nn::init
