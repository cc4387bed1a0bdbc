#include "train/optimizer.h"

#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/nn.h>

using namespace millrace;
using namespace millrace::train;

namespace {

Recipe with(const std::vector<std::string>& changes) { return parse_recipe("", "r.toml", changes); }

/// The learning rates of a run of 10 epochs of 10 steps.
optim::Schedule schedule(const std::vector<std::string>& changes) {
  return make_schedule(with(changes), 10, 100);
}

}  // namespace

TEST_CASE("every schedule of a recipe gives the rates that it describes") {
  const auto constant = schedule({"train.optimizer.lr=2"});
  CHECK(constant(0) == 2);
  CHECK(constant(99) == 2);

  const auto step = schedule({"train.optimizer.lr=1", "train.schedule={kind=step, every=3, factor=0.5}"});
  CHECK(step(29) == 1);
  CHECK(step(30) == 0.5);
  CHECK(step(60) == 0.25);

  const auto cosine = schedule({"train.optimizer.lr=1", "train.schedule={kind=cosine, end=0.1}"});
  CHECK(cosine(0) == 1);
  CHECK(cosine(50) == doctest::Approx(0.55));
  CHECK(cosine(100) == doctest::Approx(0.1));

  const auto linear = schedule({"train.optimizer.lr=1", "train.schedule={kind=linear, warmup=1}"});
  CHECK(linear(0) == doctest::Approx(0.1));
  CHECK(linear(4) == doctest::Approx(0.5 * 0.96));
  CHECK(linear(50) == doctest::Approx(0.5));
  CHECK(linear(100) == doctest::Approx(0));

  const auto triangle =
      schedule({"train.optimizer.lr=1", "train.schedule={kind=triangle, peak=0.2, start=0.2, end=0.1}"});
  CHECK(triangle(0) == doctest::Approx(0.2));
  CHECK(triangle(10) == doctest::Approx(0.6));
  CHECK(triangle(20) == doctest::Approx(1));
  CHECK(triangle(100) == doctest::Approx(0.1));

  const auto cycle =
      schedule({"train.optimizer.lr=1", "train.schedule={kind=one-cycle, peak=0.3, start=0.04, end=0.001}"});
  CHECK(cycle(0) == doctest::Approx(0.04));
  CHECK(cycle(29) == doctest::Approx(1));
  CHECK(cycle(99) == doctest::Approx(0.001));
  CHECK_THROWS_WITH_AS(schedule({"train.schedule={kind=triangle, peak=0}"}), doctest::Contains("peak"),
                       InputError);
}

TEST_CASE("only the biases of batch norms get their own rate, and their decay stays") {
  nn::Model model = nn::make_model("convnet");
  const auto optimizer =
      make_optimizer(with({"train.optimizer={kind=sgd, norm_bias_lr=64, weight_decay=0.5, decay_all=false}"}),
                     *model.module);
  REQUIRE(optimizer->options.groups.size() == 2);
  const auto& norms = optimizer->options.groups[0];
  int biases = 0;
  for (const nn::Named& p : model.module->parameters()) {
    const bool applies = norms.applies(p.name, p.tensor->type());
    biases += applies;
    if (applies) {
      CHECK(p.name.ends_with("bias"));
      CHECK(model.module->find(p.name.substr(0, p.name.size() - 4) + "running_mean") != nullptr);
    }
    CHECK(optimizer->options.groups[1].applies(p.name, p.tensor->type()) == (p.tensor->rank() <= 1));
  }
  CHECK(biases == 4);
  CHECK(norms.lr_scale == 64);
  CHECK(norms.weight_decay == 0);
  const auto decayed =
      make_optimizer(with({"train.optimizer={kind=sgd, norm_bias_lr=64, weight_decay=0.5}"}), *model.module);
  CHECK(decayed->options.groups[0].weight_decay == 0.5 / 64);
}
