#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <set>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "support/refusal.h"

using namespace millrace;

namespace {

std::vector<std::string> names_of(const std::vector<nn::Named>& list) {
  std::vector<std::string> names;
  for (const nn::Named& named : list) names.push_back(named.name);
  return names;
}

}  // namespace

TEST_CASE("parameters and buffers have the names of PyTorch's state_dict") {
  const nn::Model model = nn::make_model("resnet18_cifar");
  CHECK(model.module->parameter_count() == 11173962);
  const auto names = names_of(model.module->parameters());
  CHECK(names.size() == 62);
  CHECK(names.front() == "stem.0.weight");
  CHECK(model.module->find("layers.2.down.1.weight") != nullptr);
  CHECK(model.module->find("layers.2.conv1.weight")->shape() == Shape{128, 64, 3, 3});
  CHECK(model.module->find("layers.7.bn2.running_var") != nullptr);
  CHECK(model.module->find("stem.1.num_batches_tracked")->type() == Type{i64, {}});
  CHECK(model.module->find("layers.0.down.1.weight") == nullptr);
  CHECK(nn::make_model("mobilenet_v2").module->find("features.4.body.3.weight")->shape() ==
        Shape{96, 1, 3, 3});
  CHECK(nn::make_model("gpt_mini").module->find("blocks.5.norm2.bias") != nullptr);
}

TEST_CASE("the same seed gives the same weights whatever the rest of the model is") {
  nn::Sequential one, two;
  one.append(std::make_shared<nn::Linear>(5, 7));
  two.append(std::make_shared<nn::Linear>(5, 7));
  two.append(std::make_shared<nn::Linear>(7, 3));
  one.initialise(4);
  two.initialise(4);
  CHECK(one.find("0.weight")->to_array().identical(two.find("0.weight")->to_array()));
  const Array first = one.find("0.weight")->to_array();
  one.initialise(5);
  CHECK_FALSE(one.find("0.weight")->to_array().identical(first));
}

TEST_CASE("initialisers draw with the deviations of their papers") {
  const auto moments = [](const nn::Initialiser& init, const Shape& shape) {
    Array array(f32, shape);
    init(array, 1, "w");
    double sum = 0, squares = 0, largest = 0;
    for (const double v : array.to_doubles()) {
      sum += v;
      squares += v * v;
      largest = std::max(largest, std::abs(v));
    }
    const auto n = static_cast<double>(array.count());
    return std::array{sum / n, std::sqrt(squares / n), largest};
  };
  namespace init = nn::init;
  const Shape conv = {64, 32, 3, 3};  // fan_in 288, fan_out 576
  CHECK(moments(init::kaiming_normal(), conv)[1] == doctest::Approx(std::sqrt(2.0 / 288)).epsilon(0.02));
  CHECK(moments(init::kaiming_uniform(std::sqrt(5.0)), conv)[2] ==
        doctest::Approx(1 / std::sqrt(288.0)).epsilon(0.01));
  CHECK(moments(init::xavier_normal(), conv)[1] ==
        doctest::Approx(std::sqrt(2.0 / (288 + 576))).epsilon(0.02));
  CHECK(moments(init::xavier_uniform(), conv)[2] ==
        doctest::Approx(std::sqrt(6.0 / (288 + 576))).epsilon(0.01));
  CHECK(moments(init::trunc_normal(0.02), {100, 100})[2] < 0.0401);
  CHECK(std::abs(moments(init::normal(3, 0.5), {100, 100})[0] - 3) < 0.02);

  Array filters(f32, {6, 4, 3, 3});
  init::dirac()(filters, 1, "w");
  CHECK(filters.at(2 * 36 + 2 * 9 + 4) == 1);
  CHECK(filters.at(2 * 36 + 1 * 9 + 4) == 0);
  CHECK(filters.at(5 * 36 + 1 * 9 + 4) == 0);

  Array square(f32, {5, 8});
  init::orthogonal(2)(square, 1, "w");
  for (int64_t a = 0; a < 5; ++a)
    for (int64_t b = 0; b < 5; ++b) {
      double dot = 0;
      for (int64_t k = 0; k < 8; ++k) dot += square.at(a * 8 + k) * square.at(b * 8 + k);
      CHECK(dot == doctest::Approx(a == b ? 4 : 0).scale(1).epsilon(1e-5));
    }
}

TEST_CASE("a wrong shape names the layer and its operator") {
  nn::Model model = nn::make_model("resnet18_cifar");
  const Tensor x = Tensor::symbol("x", {f32, {2, 3, 32, 32}});
  model.module->eval();
  CHECK((*model.module)(x).shape() == Shape{2, 10});
  CHECK_THROWS_WITH_AS((*model.module)(Tensor::symbol("x", {f32, {2, 1, 32, 32}})),
                       doctest::Contains("stem.0"), TypeError);
  CHECK_THROWS_WITH_AS(nn::make_model("resnet81"), doctest::Contains("did you mean 'resnet18'"), InputError);
}

TEST_CASE("batch norm normalises by the batch in training and moves its running statistics as PyTorch does") {
  auto model = std::make_shared<nn::Sequential>();
  model->append(std::make_shared<nn::BatchNorm>(2));
  model->initialise(0);
  const std::vector<double> values = {1, 2, 3, 5, -1, 0, 4, 8};
  const std::vector<optim::TensorSpec> spec = {{"x", {f32, {2, 2, 1, 2}}}};
  optim::TrainStep step(
      model, spec,
      [](nn::Module& m, std::span<const Tensor> in) {
        const Tensor y = m(in[0]);
        return optim::StepResult{mean(y * y), {{"mean", mean(y)}}};
      },
      optim::sgd());
  step.bind_input(0, Array::of(f32, {2, 2, 1, 2}, values));
  step.run(0);
  step.run(0);
  CHECK(step.loss() == doctest::Approx(1).epsilon(1e-4));
  CHECK(step.metrics()[0].second == doctest::Approx(0).scale(1));
  // Channel 0: 1, 2, -1, 0 (mean 0.5, unbiased variance 5/3); channel 1: 3, 5, 4, 8 (mean 5, variance 14/3).
  const Array mean = model->find("0.running_mean")->to_array(),
              var = model->find("0.running_var")->to_array();
  CHECK(mean.at(0) == doctest::Approx(0.1 * 0.5 + 0.9 * 0.1 * 0.5));
  CHECK(mean.at(1) == doctest::Approx(0.19 * 5));
  CHECK(var.at(0) == doctest::Approx(0.81 + 0.19 * 5 / 3));
  CHECK(var.at(1) == doctest::Approx(0.81 + 0.19 * 14 / 3));
  CHECK(model->find("0.num_batches_tracked")->to_array().int_at(0) == 2);

  optim::EvalStep eval(model, {{"x", {f32, {Dim::named("batch"), 2, 1, 2}}}},
                       [](nn::Module& m, std::span<const Tensor> in) {
                         return std::vector<optim::NamedTensor>{{"y", m(in[0])}};
                       });
  const Array x = Array::of(f32, {1, 2, 1, 2}, std::vector<double>{1, 2, 3, 5});
  const Array y = eval.run(std::span(&x, 1))[0];
  CHECK(y.at(1) == doctest::Approx((2 - mean.at(0)) / std::sqrt(var.at(0) + 1e-5)));
  const Array more = Array::of(f32, {2, 2, 1, 2}, values);
  CHECK(eval.run(std::span(&more, 1))[0].shape() == Shape{2, 2, 1, 2});
  const Array wrong(f32, {2, 3, 1, 2});
  CHECK_THROWS_WITH_AS(eval.run(std::span(&wrong, 1)),
                       "input 'x' is f32[2, 3, 1, 2], the model takes f32[batch, 2, 1, 2]", TypeError);
}

TEST_CASE("dropout draws anew each step, from the seed and the step alone") {
  auto model = std::make_shared<nn::Sequential>();
  model->append(std::make_shared<nn::Linear>(1, 1));
  model->append(std::make_shared<nn::Dropout>(0.5));
  model->initialise(0);
  const auto losses = [&](uint64_t seed, int64_t from) {
    optim::TrainStep step(model, {{"x", {f32, {64, 1}}}},
                          [](nn::Module& m, std::span<const Tensor> in) {
                            return optim::StepResult{mean(not_equal(m(in[0]), 0).cast(f32))};
                          },
                          optim::sgd(), {.seed = seed});
    step.bind_input(0, Array::full(f32, {64, 1}, 1));
    step.set_step(from);
    std::vector<double> found;
    for (int i = 0; i < 6; ++i) {
      step.run(0);
      found.push_back(step.loss());
    }
    return found;
  };
  const auto a = losses(1, 0), b = losses(1, 0), later = losses(1, 3), other = losses(2, 0);
  CHECK(a == b);
  CHECK(a != other);
  CHECK(std::vector(a.begin() + 3, a.end()) == std::vector(later.begin(), later.begin() + 3));
  CHECK(std::set(a.begin(), a.end()).size() > 1);
  for (const double kept : a) CHECK(std::abs(kept - 0.5) < 0.3);
}

TEST_CASE("a model from lines has the shapes that they say, and says which line is wrong") {
  const nn::Model model = nn::make_layers({"conv 8 3", "batch-norm", "relu", "max-pool 2",
                                           "residual 16 3 stride=2", "dropout 0.1", "flatten", "linear 10"},
                                          {1, 28, 28});
  CHECK(model.module->find("7.weight")->shape() == Shape{10, 16 * 7 * 7});
  CHECK(model.module->find("4.0.shortcut.0.weight") != nullptr);
  const auto message = [](const std::vector<std::string>& lines) {
    return testing::refusal([&] { nn::make_layers(lines, {1, 28, 28}); });
  };
  CHECK(message({"conv 8 3", "batchnorm"}) ==
        "layer \"batchnorm\": there is no layer 'batchnorm'; did you mean 'batch-norm'?");
  CHECK(message({"conv 8"})
            .starts_with("layer \"conv 8\": KERNEL is missing; write it as conv CHANNELS KERNEL"));
  CHECK(message({"conv 8 3 strides=2"}).find("there is no strides; did you mean \"stride\"?") !=
        std::string::npos);
  CHECK(message({"conv 8 strides=2 3"}).find("there is no strides; did you mean") != std::string::npos);
  CHECK(message({"linear 10"}).find("put \"flatten\" before it") != std::string::npos);
  CHECK(message({"conv 8 x"})
            .starts_with("layer \"conv 8 x\": KERNEL must be a number from 1 to 1000000, not \"x\"; write it "
                         "as conv CHANNELS KERNEL"));
  CHECK(message({"max-pool 30"}).starts_with("layer \"max-pool 30\": "));
}

TEST_CASE("preprocessing is a part of the model and leaves its parameters' names") {
  nn::Model model = nn::normalised(nn::make_model("lenet"), {0.5}, {0.25});
  CHECK(model.inputs[0].type == Type{u8, {Dim::named("batch"), 1, 28, 28}});
  CHECK(model.module->find("body.0.weight") != nullptr);
  nn::Normalise normalise({0.5, 0.25}, {0.25, 0.5});
  const Array pictures = Array::of(u8, {1, 2, 1, 2}, std::vector<double>{0, 255, 51, 102});
  const Array y = normalise(pictures).to_array();
  CHECK(y.at(0) == doctest::Approx(-2));
  CHECK(y.at(1) == doctest::Approx(2));
  CHECK(y.at(2) == doctest::Approx((0.2 - 0.25) / 0.5));
  CHECK_THROWS_AS(normalise(Array(u8, {1, 3, 2, 2})), TypeError);
}

TEST_CASE("airbench's first layer whitens the patches of the pictures it is fitted to") {
  nn::Model model = nn::make_model("airbench");
  model.module->initialise(1);
  Array pictures(f32, {8, 3, 32, 32});
  nn::init::normal(0, 1)(pictures, 5, "pictures");
  // Neighbours and channels correlate.
  for (int64_t i = pictures.count() - 1; i > 0; --i)
    pictures.set(i, pictures.at(i) + 0.9 * pictures.at(i - 1));
  model.fit(pictures);
  const Tensor white = conv2d(Tensor(pictures), *model.module->find("white.weight"));
  const Tensor rows = reshape(transpose(white, {1, 0, 2, 3}), {24, 8 * 31 * 31});
  const Array covariance = (matmul(rows, rows, false, true) / (8.0 * 31 * 31)).to_array();
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < 12; ++j)
      CHECK(covariance.at(i * 24 + j) == doctest::Approx(i == j ? 1 : 0).scale(1).epsilon(0.02));
  CHECK(covariance.at(12) == doctest::Approx(-1).epsilon(0.02));
}

TEST_CASE("mistakes in modules are told when they are made") {
  CHECK_THROWS_WITH_AS(nn::Linear(3, -4),
                       doctest::Contains("'weight': the shape [-4, 3] has a negative size"), TypeError);
  CHECK_THROWS_AS(nn::Conv2d(3, 4, 3, {.groups = 0}), InputError);
  CHECK_THROWS_AS(nn::Conv2d(3, 4, -1), TypeError);
  CHECK_THROWS_AS(nn::MultiheadAttention(8, 0), InputError);
  CHECK_THROWS_AS(nn::BatchNorm(4, {.momentum = NAN}), InputError);
  CHECK_THROWS_AS(nn::Function(nullptr), InputError);
  nn::BatchNorm norm(4, {.epsilon = -1});
  norm.initialise(1);
  CHECK_THROWS_WITH_AS(norm(Tensor::ones({3, 4})), doctest::Contains("must be at least 0, not -1"),
                       TypeError);
  nn::BatchNorm none(0);
  none.initialise(1);
  CHECK(none(Tensor::ones({3, 0})).shape() == Shape{3, 0});
  struct Parts : nn::Module {
    using Module::buffer;
    using Module::child;
    using Module::parameter;
  } parts;
  const auto linear = parts.child("a", std::make_shared<nn::Linear>(2, 2));
  CHECK_THROWS_AS(parts.child("a", nn::relu()), InputError);
  CHECK_THROWS_AS(parts.child("b", linear), InputError);
  CHECK_THROWS_AS(parts.child("b", std::shared_ptr<nn::Linear>()), InputError);
  CHECK_THROWS_AS(parts.buffer("a", Array(f32, {2})), InputError);
  CHECK_THROWS_AS(parts.parameter("w", {2}, {}), InputError);
  CHECK_THROWS_WITH_AS(parts(Tensor::ones({2})), "a module must override forward or forward_many", TypeError);
  const auto twice = nn::relu();
  CHECK(nn::Sequential({twice, twice})(Tensor::of({1}, {-1})).to_array().at(0) == 0);
}

TEST_CASE("numbers that no layer can have name the line") {
  const auto message = [](const std::string& line, const Shape& input = {1, 8, 8}) {
    return testing::refusal([&] { nn::make_layers({line}, input); });
  };
  CHECK(message("conv 8 3 stride=1 stride=2")
            .starts_with("layer \"conv 8 3 stride=1 stride=2\": stride is given twice; write it as conv "));
  CHECK(message("conv 8 3 bias=nan").starts_with("layer \"conv 8 3 bias=nan\": bias must be a number"));
  CHECK(message("batch-norm eps=0").starts_with("layer \"batch-norm eps=0\": eps must be "));
  CHECK(message("batch-norm momentum=2").starts_with("layer \"batch-norm momentum=2\": "));
  CHECK(message("conv 1e15 3").starts_with("layer \"conv 1e15 3\": "));
  CHECK(message("relu", {-3, 2}) ==
        "a sample of shape [-3, 2] has no elements: every size must be at least 1");
  CHECK_THROWS_AS(nn::make_model("resnet18", {.input = {3, 0, 8}}), InputError);
}

TEST_CASE("grouped heads give what the shared keys and values repeated for every head give") {
  const int64_t heads = 4, shared = 2, width = 3, length = 5;
  manual_seed(4);
  const Tensor x = random_normal({2, length, (heads + 2 * shared) * width}, next_random_key());
  const auto head = [&](int64_t h) { return slice(x, 2, h * width, (h + 1) * width); };
  std::vector<Tensor> parts;
  for (int64_t h = 0; h < heads; ++h) parts.push_back(head(h));
  for (int64_t kind = 0; kind < 2; ++kind)
    for (int64_t h = 0; h < heads; ++h) parts.push_back(head(heads + kind * shared + h / (heads / shared)));
  Array mask(boolean, {2, 1, 1, length});
  for (int64_t i = 0; i < mask.count(); ++i) mask.set(i, i != 4 && i < 8);
  const Tensor grouped = nn::self_attention(x, heads, true, shared, mask),
               repeated = nn::self_attention(concat(parts, 2), heads, true, 0, mask);
  CHECK(grouped.shape() == Shape{2, length, heads * width});
  CHECK(max(abs(grouped - repeated)).item() < 1e-6);

  nn::MultiheadAttention layer(12, 4, false, 2);
  CHECK(layer.find("qkv.weight")->shape() == Shape{24, 12});
  CHECK(layer(random_normal({1, 7, 12}, next_random_key())).shape() == Shape{1, 7, 12});
  CHECK_THROWS_WITH_AS(nn::MultiheadAttention(12, 4, false, 3),
                       "attention of width 12 cannot have 4 heads that share 3 of k and v", InputError);
}
