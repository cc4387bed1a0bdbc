// The CIFAR-10 network of airbench94 (K. Jordan, arXiv 2404.00498): whitening convolution, three blocks,
// GELU, batch norm without scale, scaled logits. The first convolution whitens 2×2 patches: its filters are
// the eigenvectors of the patches' covariance, which fit() takes from training pictures.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// Eigenvalues of a symmetric matrix and its eigenvectors (columns of `vectors`), by cyclic Jacobi rotations
/// (Golub and Van Loan, Matrix Computations, 8.5).
std::vector<double> eigen(Matrix a, Matrix& vectors) {
  const size_t n = a.size();
  vectors.assign(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) vectors[i][i] = 1;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0, all = 0;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) (i == j ? all : off) += a[i][j] * a[i][j];
    if (off <= 1e-26 * all) break;
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        const auto rotate = [&](double& x, double& y) {
          const double old = x;
          x = c * old - s * y;
          y = s * old + c * y;
        };
        for (size_t k = 0; k < n; ++k) rotate(a[k][p], a[k][q]);
        for (size_t k = 0; k < n; ++k) rotate(a[p][k], a[q][k]);
        for (size_t k = 0; k < n; ++k) rotate(vectors[k][p], vectors[k][q]);
      }
  }
  std::vector<double> values;
  for (size_t i = 0; i < n; ++i) values.push_back(a[i][i]);
  return values;
}

/// Filters [8·channels, channels, 2, 2] that decorrelate the 2×2 patches of `pictures` (f32 [N, C, H, W]):
/// eigenvectors by falling eigenvalue over sqrt(eigenvalue + 5e-4), then the same negated.
Array whitening_filters(const Array& pictures) {
  const auto sizes = pictures.shape().sizes();
  const int64_t channels = sizes[1], height = sizes[2], width = sizes[3];
  const auto n = static_cast<size_t>(4 * channels);
  const auto values = pictures.as<float>();
  Matrix covariance(n, std::vector<double>(n));
  std::vector<double> patch(n);
  for (int64_t b = 0; b < sizes[0]; ++b)
    for (int64_t y = 0; y + 1 < height; ++y)
      for (int64_t x = 0; x + 1 < width; ++x) {
        for (size_t i = 0; i < n; ++i) {
          const auto c = static_cast<int64_t>(i / 4), dy = static_cast<int64_t>(i / 2 % 2),
                     dx = static_cast<int64_t>(i % 2);
          patch[i] = values[((b * channels + c) * height + y + dy) * width + x + dx];
        }
        for (size_t i = 0; i < n; ++i)
          for (size_t j = 0; j <= i; ++j) covariance[i][j] += patch[i] * patch[j];
      }
  const double patches = static_cast<double>(sizes[0] * (height - 1) * (width - 1));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) covariance[j][i] = covariance[i][j] /= patches;
  Matrix vectors;
  const std::vector<double> eigenvalues = eigen(covariance, vectors);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return eigenvalues[a] > eigenvalues[b]; });
  Array filters(f32, {8 * channels, channels, 2, 2});
  const auto out = filters.as<float>();
  for (size_t f = 0; f < n; ++f)
    for (size_t i = 0; i < n; ++i) {
      const double w = vectors[i][order[f]] / std::sqrt(std::max(eigenvalues[order[f]], 0.0) + 5e-4);
      out[f * n + i] = static_cast<float>(w);
      out[(n + f) * n + i] = static_cast<float>(-w);
    }
  return filters;
}

class AirbenchBlock : public Module {
 public:
  AirbenchBlock(int64_t in, int64_t out)
      : c1_(conv("c1", in, out)), c2_(conv("c2", out, out)), n1_(norm("n1", out)), n2_(norm("n2", out)) {}

  Tensor forward(const Tensor& x) override {
    const Tensor y = millrace::gelu(n1_(millrace::max_pool2d(c1_(x), {2, 2}, {2, 2})));
    return millrace::gelu(n2_(c2_(y)));
  }

 private:
  Conv2d& conv(const std::string& name, int64_t in, int64_t out) {
    return make<Conv2d>(
        name, in, out, 3,
        ConvOptions{.padding = 1, .bias = false, .init = init::dirac(init::kaiming_uniform(std::sqrt(5.0)))});
  }
  BatchNorm& norm(const std::string& name, int64_t channels) {
    return make<BatchNorm>(name, channels,
                           BatchNormOptions{.epsilon = 1e-12, .momentum = 0.4, .train_weight = false});
  }
  Conv2d &c1_, &c2_;
  BatchNorm &n1_, &n2_;
};

Model airbench(const std::string& kind, const Settings& /*settings*/, const ModelOptions& options) {
  const Shape input = picture_shape(options, {3, 32, 32}, kind);
  if (input[1].size() < 25 || input[2].size() < 25)
    fail<InputError>("airbench needs pictures of at least 25 × 25, not {}", input.str());
  const int64_t channels = input[0].size();
  auto white =
      std::make_shared<Conv2d>(channels, 8 * channels, 2, ConvOptions{.bias_init = init::constant(0)});
  auto blocks = std::make_shared<Sequential>(), whole = std::make_shared<Sequential>();
  int64_t in = 8 * channels;
  for (const int64_t width : {64, 256, 256}) {
    blocks->append(std::make_shared<AirbenchBlock>(in, width));
    in = width;
  }
  whole->append("white", white);
  whole->append("", nn::gelu());
  whole->append("blocks", blocks);
  whole->append("", nn::max_pool2d(3));
  whole->append("", nn::flatten());
  whole->append("head", std::make_shared<Linear>(in, options.classes ? options.classes : 10, false));
  whole->append("", std::make_shared<Function>([](const Tensor& x) { return x / 9; }));
  whole->set_trainable([](const std::string& name) { return name == "white.weight"; }, false);
  Model model{kind, whole, {{"x0", batch_of(input)}}};
  model.fit = [white](const Array& pictures) { white->weight = whitening_filters(pictures); };
  return model;
}

}  // namespace

MILLRACE_ARCHITECTURE(airbench){
    .name = "airbench",
    .doc = "quickly trained network for pictures of about 32 × 32",
    .takes = "picture",
    .make = airbench,
};

}  // namespace millrace::nn::models
