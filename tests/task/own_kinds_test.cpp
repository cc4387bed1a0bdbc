// What a program may add; that its kinds are used like the library's own is what Registry has in common for
// all (base/registry_test.cpp).
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "baseline/baseline.h"
#include "check/check.h"
#include "data/augment/augment.h"
#include "data/formats/formats.h"
#include "data/formats/streams/stream.h"
#include "data/order/order.h"
#include "eval/metric.h"
#include "nn/layers/layer.h"
#include "nn/models/architecture.h"
#include "optim/kinds.h"
#include "optim/schedules/schedule.h"
#include "passes/pass.h"
#include "passes/rules/rule.h"
#include "session/format.h"
#include "target/provider.h"
#include "task/input.h"
#include "task/loss.h"
#include "task/output.h"
#include "track/log_kind.h"

using namespace millrace;

TEST_CASE("every kind has a line of documentation, and so have its settings") {
  const auto look = [](const auto& registry) {
    for (const auto* kind : registry.all()) {
      INFO(std::string(kind->name));
      CHECK(!kind->doc.empty());
      CHECK(kind->doc.find('\n') == std::string::npos);
      if constexpr (requires { kind->settings; })
        for (const Setting& setting : kind->settings) {
          INFO(setting.name);
          CHECK(!setting.doc.empty());
        }
    }
  };
  look(passes());
  look(rules());
  look(cpu::providers());
  look(model_formats());
  look(optim::optimizer_kinds());
  look(optim::schedule_kinds());
  look(nn::architectures());
  look(nn::layers::kinds());
  look(data::formats());
  look(data::stream_formats());
  look(data::augmentations());
  look(data::order_kinds());
  look(eval::metric_kinds());
  look(track::log_kinds());
  look(task::input_kinds());
  look(task::output_kinds());
  look(task::loss_kinds());
  look(check::check_kinds());
  look(baseline::baseline_kinds());
}

TEST_CASE("kinds of a program's own need their parts, and a name that is not taken") {
  const auto copied = [](auto kind, const char* name) {
    kind.name = name;
    return kind;
  };
  const auto& metric = eval::metric_kinds().at("accuracy");
  CHECK_THROWS_WITH_AS(eval::register_metric(metric), "there is a metric 'accuracy' already", InputError);
  CHECK_THROWS_WITH_AS(eval::register_metric({.name = "own", .outputs = {"class"}}),
                       "the metric 'own' lacks its `init`", InputError);
  const auto& loss = task::loss_kinds().at("mse");
  CHECK_THROWS_WITH_AS(task::register_loss(loss), "there is a loss 'mse' already", InputError);
  CHECK_THROWS_WITH_AS(task::register_loss({.name = "own", .make = loss.make}),
                       "the loss 'own' lacks its `outputs`", InputError);
  const auto& input = task::input_kinds().at("table");
  CHECK_THROWS_WITH_AS(task::register_input(input), "there is a kind of input 'table' already", InputError);
  auto deaf = copied(input, "own");
  deaf.learn = nullptr;
  CHECK_THROWS_WITH_AS(task::register_input(deaf), "the kind of input 'own' lacks its `learn`", InputError);
  const auto& output = task::output_kinds().at("class");
  CHECK_THROWS_WITH_AS(task::register_output(output), "there is a kind of output 'class' already",
                       InputError);
  auto lost = copied(output, "own");
  lost.load = nullptr;
  CHECK_THROWS_WITH_AS(task::register_output(lost), "the kind of output 'own' lacks its `load`", InputError);
  auto silent = copied(output, "own");
  silent.metrics = {"log-loss"};
  CHECK_THROWS_WITH_AS(task::register_output(silent),
                       doctest::Contains("none of its metrics (log-loss) is a mean over rows"), InputError);
  CHECK_THROWS_WITH_AS(optim::register_optimizer(optim::optimizer_kinds().at("sgd")),
                       "there is an optimizer 'sgd' already", InputError);
  CHECK_THROWS_WITH_AS(optim::register_schedule(optim::schedule_kinds().at("cosine")),
                       "there is a schedule 'cosine' already", InputError);
  CHECK_THROWS_WITH_AS(nn::register_architecture(nn::architectures().at("gpt")),
                       "there is a model 'gpt' already", InputError);
  CHECK_THROWS_WITH_AS(nn::register_architecture(copied(nn::architectures().at("gpt"), "two words")),
                       "the name of a model must be one word, not 'two words'", InputError);
}
