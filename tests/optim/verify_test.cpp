// That run_verified finds what is wrong with a step, and nothing where nothing is.
#include "optim/verify.h"

#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/random.h>

#include "ops/build.h"

using namespace millrace;

namespace {

/// A small network, its weights, and batches for it.
struct Network {
  nn::Model model;
  int64_t batch;

  std::vector<optim::TensorSpec> specs() const {
    const nn::InputSpec& input = model.inputs[0];
    const Type data{input.type.dtype, input.type.shape.specialise({{"batch", batch}})};
    const Shape output = nn::output_type(*model.module, {&data, 1}).shape;
    return {{"x", data}, {"target", {i64, Shape(output.begin(), output.end() - 1)}}};
  }

  optim::StepFunction function() const {
    return [task = model.task](nn::Module& module, std::span<const Tensor> in) {
      return optim::StepResult{nn::task_loss(task, module(in[0]), in[1])};
    };
  }

  std::vector<Array> draw(uint64_t seed) const {
    const nn::InputSpec& input = model.inputs[0];
    const auto given = specs();
    const Shape output = nn::output_type(*model.module, {&given[0].type, 1}).shape;
    std::vector<Array> arrays;
    for (size_t i = 0; i < given.size(); ++i) {
      RandomStream random(seed, i);
      Array array(given[i].type);
      const double end = i == 0 ? input.high : static_cast<double>(output.back().size());
      for (int64_t k = 0; k < array.count(); ++k)
        if (array.dtype().is_float())
          array.set(k, 2 * random.uniform() - 1);
        else
          array.set_int(k, random.below(static_cast<uint32_t>(end)));
      arrays.push_back(array);
    }
    return arrays;
  }
};

Network network_named(const std::string& name, uint64_t seed) {
  Network network = [&]() -> Network {
    if (name == "mlp") return {nn::make_layers({"linear 48", "relu", "layer-norm", "linear 10"}, {20}), 24};
    if (name == "conv")
      return {nn::make_layers({"conv 8 3", "batch-norm", "relu", "max-pool 2", "residual 16 3",
                               "global-avg-pool", "dropout 0.1", "linear 10"},
                              {3, 10, 10}),
              6};
    if (name == "wide") return {nn::make_layers({"linear 512", "relu", "linear 10"}, {512}), 4};
    if (name == "lstm") return {nn::make_model("lstm", {.input = {6}}), 5};
    if (name == "gpt")
      return {nn::make_model("gpt", {.input = {12}, .vocabulary = 40, .width = 32, .depth = 2, .heads = 4}),
              3};
    return {nn::make_model("bag", {.input = {9}, .vocabulary = 60, .width = 16}), 10};
  }();
  network.model.module->initialise(seed);
  return network;
}

using Rule = std::shared_ptr<const optim::Optimizer>;
const std::map<std::string, std::pair<Rule, double>>& rules() {  // and their learning rates
  static const std::map<std::string, std::pair<Rule, double>> all = {
      {"sgd", {optim::sgd(), 0.05}},
      {"momentum", {optim::sgd({.momentum = 0.9, .common = {.weight_decay = 1e-3}}), 0.02}},
      {"adam", {optim::adam({.common = {.clip_norm = 1}}), 1e-3}},
      {"adamw", {optim::adamw({.common = {.weight_decay = 0.05}}), 1e-3}},
      {"adagrad", {optim::adagrad({.common = {.weight_decay = 1e-3}}), 0.01}},
      {"rmsprop", {optim::rmsprop({.momentum = 0.9, .centred = true}), 1e-3}},
      {"nadam", {optim::nadam({.common = {.weight_decay = 1e-3}}), 1e-3}},
      {"radam", {optim::radam(), 1e-3}},
      {"lion", {optim::lion({.common = {.weight_decay = 0.05}}), 1e-4}},
      {"lamb", {optim::lamb({.common = {.weight_decay = 0.01}}), 1e-3}},
      {"adafactor", {optim::adafactor(), 0.01}},
      {"muon", {optim::muon({.common = {.weight_decay = 0.01}}), 0.01}},
      {"sam", {optim::sam(optim::sgd({.momentum = 0.9})), 0.02}},
      {"lazy momentum", {optim::sgd({.momentum = 0.9, .common = {.lazy = true}}), 0.02}},
      {"lazy adam", {optim::adam({.common = {.lazy = true}}), 1e-3}},
      {"lazy adagrad", {optim::adagrad({.common = {.lazy = true}}), 0.01}}};
  return all;
}

/// A training whose steps are made by the graphs of any rule: by the one that belongs to it, or by one with a
/// fault.
class Training {
 public:
  Training(const std::string& name, const std::string& rule, const std::string& precision, uint64_t seed)
      : network_(network_named(name, seed)), rule_(rules().at(rule).first), seed_(seed) {
    compile_.precision = precision;
    made_ = graph_of(*rule_);
    const Graph& graph = made_.graph;
    for (size_t i = 0; i < graph.inputs().size(); ++i) inputs_.emplace_back(graph.type(graph.inputs()[i]));
    for (int i = 0; i < made_.lr_inputs; ++i) inputs_[made_.data_inputs + i].set(0, rules().at(rule).second);
    int at = made_.first_parameter();
    for (const auto& list : {network_.model.module->parameters(), network_.model.module->buffers()})
      for (const nn::Named& named : list) inputs_[at++] = named.tensor->to_array().clone();
    if (made_.scales_loss) inputs_[made_.first_state()].set(0, kScaling.initial);
    prepare();
  }

  std::string output_name(const optim::StepDifference& found) const {
    return found.output < 0 ? "" : made_.graph.output_names()[static_cast<size_t>(found.output)];
  }

  /// Arrays that a rule keeps for the first parameter.
  size_t states_of_first(const optim::Optimizer& rule) const {
    const nn::Named first = network_.model.module->parameters()[0];
    return rule.state_of(first.name, first.tensor->type()).size();
  }

  /// A step with another rule, compared with the right one; the training stays where it is.
  optim::StepDifference compare(const optim::Optimizer& other) {
    const optim::TrainGraph graph = graph_of(other);
    const Program program = ran(graph);
    return reference().compare(program);
  }

  /// A sound step; how far it was off.
  optim::StepDifference go_on(bool compared = true) {
    if (!program_) program_ = std::make_unique<Program>(Program::compile(made_.graph, compile_));
    run(*program_);
    optim::StepDifference found;
    if (compared) found = reference().compare(*program_);
    for (const auto& [output, input] : made_.donations) inputs_[input] = program_->output(output).clone();
    ++step_;
    prepare();
    return found;
  }

 private:
  static constexpr optim::LossScaling kScaling{1024, 1000};

  optim::TrainGraph graph_of(const optim::Optimizer& rule) const {
    return build_train_graph(*network_.model.module, network_.specs(), network_.function(), rule,
                             compile_.precision == "fp16" ? &kScaling : nullptr);
  }

  /// Of the step that comes next.
  optim::StepReference& reference() {
    if (!reference_) reference_ = std::make_unique<optim::StepReference>(made_, inputs_, compile_);
    return *reference_;
  }

  void prepare() {
    reference_.reset();
    const auto arrays = network_.draw(seed_ * 1000 + static_cast<uint64_t>(step_));
    for (size_t i = 0; i < arrays.size(); ++i) inputs_[i] = arrays[i];
    int at = made_.data_inputs + made_.lr_inputs;
    for (const double scalar : rule_->scalars(step_ + 1)) inputs_[at++].set(0, scalar);
    inputs_[at].set_int(0, 5);
    inputs_[at].set_int(1, step_);
  }

  void run(Program& program) const {
    for (size_t i = 0; i < inputs_.size(); ++i) program.bind_input(static_cast<int>(i), inputs_[i].clone());
    program.run();
  }

  Program ran(const optim::TrainGraph& graph) const {
    Program program = Program::compile(graph.graph, compile_);
    run(program);
    return program;
  }

  Network network_;
  Rule rule_;
  CompileOptions compile_;
  uint64_t seed_;
  optim::TrainGraph made_;
  std::vector<Array> inputs_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<optim::StepReference> reference_;
  int64_t step_ = 0;
};

/// A rule that works wrongly on one parameter.
class Faulty final : public optim::Optimizer {
 public:
  struct After {
    Graph& graph;
    Value parameter;
    std::vector<Value> state;
    Value fresh;
    std::vector<Value> new_state;
  };
  using Before = std::function<void(optim::Update&)>;
  using Afterwards = std::function<void(After&)>;
  /// `before` changes what the rule is given, `after` what it has made.
  Faulty(Rule rule, int parameter, Before before, Afterwards after)
      : Optimizer(rule->options),
        rule_(std::move(rule)),
        parameter_(parameter),
        before_(std::move(before)),
        after_(std::move(after)) {}
  std::vector<std::string> state_names() const override { return rule_->state_names(); }
  std::vector<optim::StateArray> state_of(const std::string& name, const Type& type) const override {
    return rule_->state_of(name, type);
  }
  double ascent() const override { return rule_->ascent(); }
  std::vector<double> scalars(int64_t step) const override { return rule_->scalars(step); }
  bool rows_suffice(double decay) const override { return rule_->rows_suffice(decay); }
  Value update(optim::Update& u) const override {
    const bool here = met_++ == parameter_;
    if (here && before_) before_(u);
    const std::vector<Value> state = u.state;
    const Value parameter = u.parameter, fresh = rule_->update(u);
    if (!here || !after_) return fresh;
    After made{u.graph, parameter, state, fresh, u.state};
    after_(made);
    u.state = made.new_state;
    return made.fresh;
  }

 private:
  Rule rule_;
  int parameter_;
  Before before_;
  Afterwards after_;
  mutable int met_ = 0;
};

/// What may go wrong with one parameter.
struct Fault {
  std::string name;
  Faulty::Before before = {};
  Faulty::Afterwards after = {};
};

Value scaled(Graph& graph, Value value, double by) { return ops::Build(graph).mul(value, by); }

std::vector<Fault> faults(double little, size_t states) {
  const auto gradient = [](double by) {
    return [by](optim::Update& u) { u.gradient = scaled(u.graph, u.gradient, by); };
  };
  std::vector<Fault> all = {{"scaled gradient", gradient(1 + little)},
                            {"turned gradient", gradient(-1)},
                            {"no gradient", gradient(0)}};
  const auto update = [&](const std::string& name, double by) {
    all.push_back({name, {}, [by](Faulty::After& made) {
                     ops::Build b(made.graph);
                     made.fresh = b.add(made.parameter, b.mul(b.sub(made.fresh, made.parameter), by));
                   }});
  };
  update("turned update", -1);
  update("no update", 0);
  update("longer update", 1.1);
  all.push_back({"zeroed weights", {}, [](Faulty::After& made) {
                   made.fresh = ops::Build(made.graph).zeros(made.fresh);
                 }});
  for (size_t k = 0; k < states; ++k) {
    const std::string which = " " + std::to_string(k);
    all.push_back(
        {"old moment" + which, {}, [k](Faulty::After& made) { made.new_state[k] = made.state[k]; }});
    all.push_back({"zeroed moment" + which, {}, [k](Faulty::After& made) {
                     made.new_state[k] = ops::Build(made.graph).zeros(made.new_state[k]);
                   }});
    all.push_back({"larger moment" + which, {}, [k](Faulty::After& made) {
                     made.new_state[k] = scaled(made.graph, made.new_state[k], 1.1);
                   }});
  }
  return all;
}

}  // namespace

TEST_CASE("sound steps are never reported") {
  const auto check = [](const std::string& name, const std::string& rule, const std::string& precision,
                        uint64_t seed, int steps) {
    CAPTURE(name);
    CAPTURE(rule);
    CAPTURE(precision);
    CAPTURE(seed);
    Training training(name, rule, precision, seed);
    for (int step = 0; step < steps; ++step) {
      const optim::StepDifference found = training.go_on();
      CHECK_MESSAGE(found.share <= 1, training.output_name(found), " ", found.what);
    }
  };
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    for (const auto& rule : rules())
      for (const std::string name : {"mlp", "bag"})
        for (uint64_t seed = 1; seed < (precision == "fp32" ? 3 : 2); ++seed)
          check(name, rule.first, precision, seed, 3);
    for (const std::string name : {"conv", "lstm", "gpt"}) check(name, "adamw", precision, 1, 2);
  }
}

TEST_CASE(
    "what goes wrong with one parameter or its state is reported, whatever the rule and the precision") {
  for (const std::string precision : {"fp32", "bf16", "fp16"})
    for (const auto& [rule, how] : rules()) {
      CAPTURE(precision);
      CAPTURE(rule);
      Training training(rule.starts_with("lazy") ? "bag" : "mlp", rule, precision, 3);
      for (int step = 0; step < 3; ++step) training.go_on(false);
      CHECK(training.compare(Faulty(how.first, 0, {}, {})).share <= 1);
      const double little = precision == "fp32" ? 0.01 : 0.05;
      for (const Fault& fault : faults(little, training.states_of_first(*how.first))) {
        CAPTURE(fault.name);
        const optim::StepDifference found = training.compare(Faulty(how.first, 0, fault.before, fault.after));
        CHECK_MESSAGE(found.share > 1, found.what);
      }
    }
}

TEST_CASE("weights that vanish are reported however many they are, with the output's name") {
  Training training("wide", "sgd", "fp32", 1);
  const optim::StepDifference found =
      training.compare(Faulty(rules().at("sgd").first, 0, {}, [](Faulty::After& made) {
        made.fresh = ops::Build(made.graph).zeros(made.fresh);
      }));
  CHECK(found.share > 100);
  CHECK(training.output_name(found) == "new 0.weight");
}
