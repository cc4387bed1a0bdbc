#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "base/thread_pool.h"
#include "support/graphs.h"
#include "support/small_steps.h"

using namespace millrace;

namespace {

struct Disabled {
  explicit Disabled(const char* passes) { setenv("MILLRACE_DISABLE", passes, 1); }
  ~Disabled() { unsetenv("MILLRACE_DISABLE"); }
};

int64_t kept_in(const Program& program) {
  int64_t kept = 0;
  for (const CopyInfo& copy : program.copies()) kept += copy.why_not.empty() ? 1 : 0;
  return kept;
}

/// Precisions whose products read copies on any machine, and on those with bf16 units.
std::vector<std::string> precisions() { return test::precisions_here({"fp16", "bf16"}); }

/// A step with kept copies, and one that makes them in every run.
struct Twins {
  std::shared_ptr<nn::Module> models[2];
  std::unique_ptr<optim::TrainStep> steps[2];

  explicit Twins(const std::string& precision, int64_t parts = 1,
                 const std::shared_ptr<const optim::Optimizer>& optimizer = optim::adamw()) {
    optim::TrainOptions options;
    options.compile.precision = precision;
    options.accumulate = parts;
    for (int t = 0; t < 2; ++t) {
      setenv("MILLRACE_DISABLE", t == 0 ? "" : "keep-copies", 1);
      models[t] = model();
      steps[t] = step_of(models[t], optimizer, options);
      options.compile.choices = steps[0]->program().choices();
    }
    unsetenv("MILLRACE_DISABLE");
    CHECK(kept_in(steps[1]->program()) == 0);
  }

  static std::shared_ptr<nn::Module> model() {
    auto layers = std::make_shared<nn::Sequential>();
    layers->append(std::make_shared<nn::Linear>(48, 96));
    layers->append(std::make_shared<nn::Linear>(96, 80));
    layers->append(std::make_shared<nn::Linear>(80, 10));
    layers->initialise(3);
    return layers;
  }

  /// The batch is so large that copies are small beside what a step needs anyway.
  static std::unique_ptr<optim::TrainStep> step_of(const std::shared_ptr<nn::Module>& model,
                                                   const std::shared_ptr<const optim::Optimizer>& optimizer,
                                                   const optim::TrainOptions& options, int64_t batch = 6144) {
    auto step = std::make_unique<optim::TrainStep>(
        model, std::vector<optim::TensorSpec>{{"x", {f32, {batch, 48}}}, {"y", {i64, {batch}}}},
        [](nn::Module& m, std::span<const Tensor> in) {
          return optim::StepResult{cross_entropy(m(in[0]), in[1])};
        },
        optimizer, options);
    for (int64_t i = 0; i < step->input(0).count(); ++i)
      step->input(0).set(i, std::sin(static_cast<double>(i)));
    for (int64_t i = 0; i < batch; ++i) step->input(1).set_int(i, i % 10);
    return step;
  }

  Array weight(int t, const char* name = "1.weight") const { return models[t]->find(name)->to_array(); }

  void run(int count) {
    for (auto& step : steps)
      for (int i = 0; i < count; ++i) step->run(1e-2);
  }

  bool alike() const {
    const auto lists = {&nn::Module::parameters, &nn::Module::buffers};
    for (const auto list : lists) {
      const auto a = (models[0].get()->*list)(), b = (models[1].get()->*list)();
      for (size_t i = 0; i < a.size(); ++i)
        if (!a[i].tensor->to_array().identical(b[i].tensor->to_array())) return false;
    }
    const auto a = steps[0]->state(), b = steps[1]->state();
    for (size_t i = 0; i < a.size(); ++i)
      if (!a[i].second.identical(b[i].second)) return false;
    return steps[0]->loss() == steps[1]->loss();
  }
};

}  // namespace

TEST_CASE("steps that keep copies of parameters train as those that make them anew, bit for bit") {
  for (const std::string& precision : test::precisions_here({"fp32", "bf16", "bf16-pure", "fp16"}))
    for (const std::string& network : test::small_networks()) {
      CAPTURE(precision);
      CAPTURE(network);
      test::SmallStep kept = test::make_small_step(network, precision);
      const auto choices = kept.step->program().choices();
      const Disabled pass("keep-copies");
      test::SmallStep made = test::make_small_step(network, precision, choices);
      CHECK(made.step->program().copies().empty());
      for (int i = 0; i < 5; ++i) {
        kept.step->run(1e-2);
        made.step->run(1e-2);
        CHECK(kept.step->loss() == made.step->loss());
      }
      const auto a = kept.values(), b = made.values();
      for (const auto& [name, array] : a) {
        CAPTURE(name);
        CHECK(array.identical(b.at(name)));
      }
      CHECK(kept.step->program().times_copied() == (kept_in(kept.step->program()) > 0 ? 1 : 0));
    }
}

TEST_CASE("copies are kept, made once, and are no inputs or outputs of the user's") {
  Twins twins("fp16");
  const Program &program = twins.steps[0]->program(), &plain = twins.steps[1]->program();
  REQUIRE(kept_in(program) == 3);
  CHECK(program.times_copied() == 0);
  CHECK(program.input_count() == plain.input_count());
  CHECK(program.output_count() == plain.output_count());
  CHECK(program.copies()[0].parameter == "0.weight");
  CHECK(program.copies()[0].origin.layer == "0");
  twins.run(4);
  CHECK(program.times_copied() == 1);
  CHECK(plain.times_copied() == 0);
  CHECK(twins.alike());
  CHECK_THROWS_AS(twins.steps[0]->program().input(program.input_count()), InputError);
  CHECK_THROWS_AS(twins.steps[0]->program().output(program.output_count()), InputError);
}

TEST_CASE("nobody's change of a parameter between steps is missed") {
  struct Way {
    const char* name;
    std::function<void(Twins&, int)> change;
  };
  const std::vector<Way> ways = {
      {"set", [](Twins& twins, int t) { twins.weight(t).set(17, 1.5); }},
      {"edit", [](Twins& twins,
                  int t) { twins.weight(t).edit<float>([](std::span<float> values) { values[3] = -2; }); }},
      {"assign",
       [](Twins& twins, int t) { twins.weight(t).assign(Array::full(f32, twins.weight(t).shape(), 0.01)); }},
      {"span", [](Twins& twins, int t) { twins.weight(t).as<float>()[5] = 3; }},
      {"memcpy",
       [](Twins& twins, int t) {
         const Array values = Array::full(f32, twins.weight(t).shape(), -0.02);
         std::memcpy(twins.weight(t).data(), values.data(), static_cast<size_t>(values.bytes()));
       }},
      {"view", [](Twins& twins, int t) { twins.weight(t).reshaped({80 * 96}).set(9, 2); }},
      {"program's input",
       [](Twins& twins, int t) {
         Program& program = twins.steps[t]->program();
         for (int i = 0; i < program.input_count(); ++i)
           if (program.input(i).shares_memory(twins.weight(t))) program.input(i).set(4, 4);
       }},
      {"another tensor",
       [](Twins& twins, int t) {
         *twins.models[t]->find("1.weight") = Tensor(Array::full(f32, twins.weight(t).shape(), 0.03));
       }},
      {"initialise", [](Twins& twins, int t) { twins.models[t]->initialise(99); }},
      {"foreign memory",
       [](Twins& twins, int t) {
         auto values = std::make_shared<std::vector<float>>(80 * 96, 0.04F);
         *twins.models[t]->find("1.weight") = Tensor(Array({f32, {80, 96}}, values->data(), values));
         twins.steps[t]->run(1e-2);
         (*values)[7] = 5;
       }},
      {"lookahead",
       [](Twins& twins, int t) {
         optim::Lookahead lookahead(*twins.models[t]);
         twins.steps[t]->run(1e-2);
         lookahead.update(0.5);
       }},
      {"a program by donation",
       [](Twins& twins, int t) {
         Graph graph;
         const Value x = graph.input("x", twins.weight(t).type());
         graph.set_outputs({graph.add("neg", {x})});
         Program program = Program::compile(graph, {.donations = {{0, 0}}, .inputs = {{0, twins.weight(t)}}});
         program.run();
       }},
      {"a program whose output it is",
       [](Twins& twins, int t) {
         Graph graph;
         const Value x = graph.input("x", twins.weight(t).type());
         graph.set_outputs({graph.add("neg", {x})});
         Program program = Program::compile(graph);
         program.input(0).set(0, 1);
         program.run();
         *twins.models[t]->find("1.weight") = Tensor(program.output(0));
         twins.steps[t]->run(1e-2);
         program.input(0).set(0, 2);
         program.run();
       }},
      {"another step",
       [](Twins& twins, int t) {
         optim::TrainOptions options;
         options.compile.precision = "fp32";
         Twins::step_of(twins.models[t], optim::sgd(), options, 16)->run(0.1);
       }},
  };
  for (const std::string& precision : precisions())
    for (const Way& way : ways) {
      CAPTURE(precision);
      const std::string way_name = way.name;
      CAPTURE(way_name);
      Twins twins(precision);
      twins.run(2);
      REQUIRE(twins.alike());
      const Array before = twins.weight(0).clone();
      for (int t = 0; t < 2; ++t) way.change(twins, t);
      CHECK_FALSE(twins.weight(0).identical(before));
      twins.run(1);
      CHECK(twins.alike());
      twins.run(2);
      CHECK(twins.alike());
      if (kept_in(twins.steps[0]->program()) > 0) CHECK(twins.steps[0]->program().times_copied() > 1);
    }
}

TEST_CASE("a pointer into a parameter may be used for as long as it lives") {
  for (const std::string& precision : precisions()) {
    Twins twins(precision);
    float* pointers[2];
    for (int t = 0; t < 2; ++t) pointers[t] = twins.weight(t).as<float>().data();
    for (int i = 0; i < 4; ++i) {
      for (float* pointer : pointers) pointer[100 + i] = static_cast<float>(i);
      twins.run(1);
      CHECK(twins.alike());
    }
  }
}

TEST_CASE("what only reads parameters leaves their copies") {
  for (const std::string& precision : precisions()) {
    Twins twins(precision);
    twins.run(1);
    optim::EvalStep eval(twins.models[0], {{"x", {f32, {4, 48}}}},
                         [](nn::Module& m, std::span<const Tensor> in) {
                           return std::vector<optim::NamedTensor>{{"y", m(in[0])}};
                         });
    const Array x(f32, {4, 48});
    eval.run(std::span(&x, 1));
    CHECK(twins.steps[0]->run_verified(1e-2).empty());
    CHECK(twins.steps[0]->find_non_finite().empty());
    twins.steps[0]->program().set_profiling(true);
    twins.steps[0]->run(1e-2);
    twins.steps[0]->program().set_profiling(false);
    const Array kept = twins.weight(0).clone();
    twins.steps[0]->run(1e-2);
    for (int i = 0; i < 4; ++i)
      if (i > 0) twins.steps[1]->run(1e-2);
    CHECK(twins.steps[0]->program().times_copied() == (kept_in(twins.steps[0]->program()) > 0 ? 1 : 0));
    CHECK(twins.weight(0).identical(twins.weight(1)));
  }
}

TEST_CASE("copies are made once a step that works a batch off in parts, on any number of threads") {
  for (const std::string& precision : precisions())
    for (const int threads : {1, 2, 5}) {
      CAPTURE(threads);
      ThreadPool::set_default_threads(threads);
      Twins twins(precision, 4);
      twins.run(3);
      CHECK(twins.alike());
      CHECK(twins.steps[0]->program().times_copied() <= 1);
    }
  ThreadPool::set_default_threads(0);
}

TEST_CASE("steps that share parameters share their copies") {
  for (const std::string& precision : precisions()) {
    std::shared_ptr<nn::Module> models[2];
    int64_t kept = 0, times = 0;
    for (int t = 0; t < 2; ++t) {
      setenv("MILLRACE_DISABLE", t == 0 ? "" : "keep-copies", 1);
      models[t] = Twins::model();
      optim::TrainOptions options;
      options.compile.precision = precision;
      const auto large = Twins::step_of(models[t], optim::adamw(), options, 6144);
      options.share = large.get();
      const auto small = Twins::step_of(models[t], optim::adamw(), options, 4096);
      for (int i = 0; i < 6; ++i) {
        optim::TrainStep& step = i % 3 == 1 ? *small : *large;
        step.set_step(i);
        step.run(1e-2);
      }
      if (t == 1) continue;
      kept = kept_in(small->program());
      CHECK(kept == kept_in(large->program()));
      times = large->program().times_copied();
      CHECK(small->program().times_copied() == times);
    }
    unsetenv("MILLRACE_DISABLE");
    CHECK(times == (kept > 0 ? 1 : 0));
    const auto a = models[0]->parameters(), b = models[1]->parameters();
    for (size_t i = 0; i < a.size(); ++i) CHECK(a[i].tensor->to_array().identical(b[i].tensor->to_array()));
  }
}

TEST_CASE("copies are not kept where they would take memory that is not allowed, or raise the peak") {
  optim::TrainOptions options;
  options.compile.precision = "fp16";
  // Not what this machine would choose: scratch memory of other kernels may be larger than the copies.
  const auto first = Twins::step_of(Twins::model(), optim::adamw(), options);
  for (const auto& [key, choice] : first->program().choices())
    options.compile.choices[key] = key.starts_with("bf16 or f32") ? choice : "onednn";
  const auto loose = Twins::step_of(Twins::model(), optim::adamw(), options);
  CHECK(kept_in(loose->program()) > 0);
  const int64_t with = loose->program().arena_bytes() + loose->program().bound_bytes();
  options.compile.memory = with - 1000;
  const auto model = Twins::model();
  const auto tight = Twins::step_of(model, optim::adamw(), options);
  CHECK(kept_in(tight->program()) == 0);
  REQUIRE(!tight->program().copies().empty());
  CHECK(tight->program().copies()[0].why_not == "no memory allowed for it");
  CHECK(tight->program().arena_bytes() + tight->program().bound_bytes() < with);
  // With few items a step is all parameters: the copies would be there while the update's gradients are.
  options.compile.memory = 0;
  for (const int64_t batch : {1, 2, 16, 64, 512}) {
    const auto step = Twins::step_of(Twins::model(), optim::adamw(), options, batch);
    const Disabled pass("keep-copies");
    const auto plain = Twins::step_of(Twins::model(), optim::adamw(), options, batch);
    const auto bytes = [](const optim::TrainStep& s) {
      return s.program().arena_bytes() + s.program().bound_bytes();
    };
    CAPTURE(batch);
    CHECK(bytes(*step) <= bytes(*plain) + bytes(*plain) / 100);
  }
}

TEST_CASE("with few items copies are made where they are read, so that bf16 takes no more memory than fp32") {
  const auto make = [](const std::string& precision, std::map<std::string, std::string> choices = {}) {
    auto layers = std::make_shared<nn::Sequential>();
    layers->append(std::make_shared<nn::Linear>(48, 512));
    for (int i = 0; i < 6; ++i) layers->append(std::make_shared<nn::Linear>(512, 512));
    layers->append(std::make_shared<nn::Linear>(512, 10));
    layers->initialise(3);
    optim::TrainOptions options;
    options.compile.precision = precision;
    options.compile.choices = std::move(choices);
    return std::pair(layers, Twins::step_of(layers, optim::sgd(), options, 2));
  };
  const auto bytes = [](const optim::TrainStep& s) {
    return s.program().arena_bytes() + s.program().bound_bytes();
  };
  // Not what this machine would choose: where f32 products are faster, there are hardly any copies.
  const std::map<std::string, std::string> products{
      {"bf16 or f32: matmul [2, 512] [512, 512] transpose_b", "bf16"},
      {"bf16 or f32: matmul [2, 512] of bf16 [2, 512] transpose_a", "bf16"},
      {"bf16 or f32: matmul [2, 512] of bf16 [512, 512]", "bf16"}};
  auto [model, step] = make("bf16", products);
  if (step->program().precision() != "bf16") {
    MESSAGE("skipped: this CPU has no bf16 units");
    return;
  }
  for (const auto& [contest, winner] : products) CHECK(step->program().choices().at(contest) == winner);
  CHECK(bytes(*step) <= bytes(*make("fp32").second));
  REQUIRE(!step->program().copies().empty());
  for (const CopyInfo& copy : step->program().copies())
    CHECK(copy.why_not == "would take more memory than fp32");
  const Disabled pass("keep-copies");
  auto [plain_model, plain] = make("bf16", step->program().choices());
  CHECK(bytes(*step) < bytes(*plain));
  for (int i = 0; i < 4; ++i) {
    step->run(1e-2);
    plain->run(1e-2);
    CHECK(step->loss() == plain->loss());
  }
  const auto a = model->parameters(), b = plain_model->parameters();
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i].tensor->to_array().identical(b[i].tensor->to_array()));
}

TEST_CASE("tables that are updated by rows have no copies, nor have f32 copies of bf16 parameters") {
  for (const std::string& precision : test::precisions_here({"bf16", "fp16", "bf16-pure"})) {
    const test::SmallStep lstm = test::make_small_step("lstm", precision);
    for (const CopyInfo& copy : lstm.step->program().copies())
      if (precision == "bf16-pure" || copy.parameter.find("embedding") != std::string::npos)
        CHECK(copy.why_not != "");
  }
}
