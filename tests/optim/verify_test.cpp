// That run_verified finds what is wrong with a step, and nothing where nothing is.
#include "optim/verify.h"

#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/nn.h>
#include <millrace/operator.h>
#include <millrace/optim.h>
#include <millrace/pass.h>
#include <millrace/random.h>

#include "ops/build.h"
#include "optim/kinds.h"
#include "optim/model_scope.h"
#include "support/graphs.h"

using namespace millrace;

namespace {

/// A small network, its weights, and batches for it.
struct Network {
  nn::Model model;
  int64_t batch;

  /// Numbers as the parameters are stored.
  static DType taken(nn::Module& module, DType given) {
    return given.is_float() ? module.parameters()[0].tensor->dtype() : given;
  }
  Shape output_of(const Type& data) const {
    const Type in{taken(*model.module, data.dtype), data.shape};
    return nn::output_type(*model.module, {&in, 1}).shape;
  }

  std::vector<optim::TensorSpec> specs() const {
    const nn::InputSpec& input = model.inputs[0];
    const Type data{input.type.dtype, input.type.shape.specialise({{"batch", batch}})};
    const Shape output = output_of(data);
    return {{"x", data}, {"target", {i64, Shape(output.begin(), output.end() - 1)}}};
  }

  optim::StepFunction function() const {
    return [task = model.task](nn::Module& module, std::span<const Tensor> in) {
      const Tensor x = cast(in[0], taken(module, in[0].dtype()));
      return optim::StepResult{nn::task_loss(task, module(x), in[1])};
    };
  }

  std::vector<Array> draw(uint64_t seed) const {
    const nn::InputSpec& input = model.inputs[0];
    const auto given = specs();
    const Shape output = output_of(given[0].type);
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
/// By their names in recipes, with others in between, and their learning rates.
const std::map<std::string, std::pair<Rule, double>>& rules() {
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
      {"lazy-sgd", {optim::sgd({.momentum = 0.9, .common = {.lazy = true}}), 0.02}},
      {"lazy-adam", {optim::adam({.common = {.lazy = true}}), 1e-3}},
      {"lazy-adamw", {optim::adamw({.common = {.weight_decay = 0.05, .lazy = true}}), 1e-3}},
      {"lazy adagrad", {optim::adagrad({.common = {.lazy = true}}), 0.01}}};
  return all;
}

/// What may go wrong with one parameter, as what becomes of something right.
struct Fault {
  using Change = std::function<Value(ops::Build&, Value right)>;
  std::string name;
  Change gradient = {};
  Change step = {};  // the difference of the new parameter and the old one
  Change weights = {};
  std::pair<size_t, std::function<Value(ops::Build&, Value old, Value right)>> state = {};  // by its number
};

/// A rule that makes any of the faults in the first parameter, as a number says: 0 none, k all[k − 1]. The
/// number is an input of the graph, so that one program makes all of them.
class Faulty final : public optim::Optimizer {
 public:
  Faulty(Rule rule, std::vector<Fault> all)
      : Optimizer(rule->options), rule_(std::move(rule)), all_(std::move(all)) {}
  size_t number_at() const { return number_at_; }
  std::vector<std::string> state_names() const override { return rule_->state_names(); }
  std::vector<optim::StateArray> state_of(const std::string& name, const Type& type) const override {
    return rule_->state_of(name, type);
  }
  double ascent() const override { return rule_->ascent(); }
  std::vector<double> scalars(int64_t step) const override { return rule_->scalars(step); }
  bool rows_suffice(double decay) const override { return rule_->rows_suffice(decay); }
  Value update(optim::Update& u) const override {
    if (met_++ > 0) return rule_->update(u);
    ops::Build b(u.graph);
    number_at_ = u.graph.inputs().size();
    const Value number = u.graph.input("fault", {f32, Shape{}});
    Value gradient = u.gradient;
    each(b, number, gradient,
         [&](const Fault& f) { return f.gradient ? f.gradient(b, u.gradient) : Value(); });
    u.gradient = gradient;
    const std::vector<Value> old = u.state;
    const Value parameter = u.parameter, right = rule_->update(u);
    Value fresh = right;
    each(b, number, fresh, [&](const Fault& f) {
      if (f.weights) return f.weights(b, right);
      return f.step ? b.add(parameter, f.step(b, b.sub(right, parameter))) : Value();
    });
    for (size_t k = 0; k < old.size(); ++k) {
      Value state = u.state[k];
      each(b, number, state, [&](const Fault& f) {
        return f.state.second && f.state.first == k ? f.state.second(b, old[k], u.state[k]) : Value();
      });
      u.state[k] = state;
    }
    return fresh;
  }

 private:
  /// Makes `value` that of the fault whose number is given, among those for which `of` has one.
  void each(ops::Build& b, Value number, Value& value, const std::function<Value(const Fault&)>& of) const {
    for (size_t k = 0; k < all_.size(); ++k)
      if (const Value wrong = of(all_[k]); wrong.valid())
        value = b.select(b.binary("equal", number, b.scalar(f32, static_cast<double>(k + 1))), wrong, value);
  }

  Rule rule_;
  std::vector<Fault> all_;
  mutable int met_ = 0;
  mutable size_t number_at_ = 0;
};

std::vector<Fault> faults(double little, double more, size_t states) {
  const auto by = [](double factor) {
    return [factor](ops::Build& b, Value right) { return b.mul(right, factor); };
  };
  const auto none = [](ops::Build& b, Value right) { return b.zeros(right); };
  std::vector<Fault> all = {{.name = "scaled gradient", .gradient = by(1 + little)},
                            {.name = "turned gradient", .gradient = by(-1)},
                            {.name = "no gradient", .gradient = by(0)},
                            {.name = "turned update", .step = by(-1)},
                            {.name = "no update", .step = by(0)},
                            {.name = "longer update", .step = by(1 + more)},
                            {.name = "zeroed weights", .weights = none}};
  for (size_t k = 0; k < states; ++k) {
    const auto add = [&](const std::string& name, const auto& change) {
      all.push_back({.name = name + " moment " + std::to_string(k), .state = {k, change}});
    };
    add("old", [](ops::Build&, Value old, Value) { return old; });
    add("zeroed", [](ops::Build& b, Value, Value right) { return b.zeros(right); });
    add("larger", [more](ops::Build& b, Value, Value right) { return b.mul(right, 1 + more); });
  }
  return all;
}

/// A training whose steps are sound, or have a fault.
class Training {
 public:
  Training(const std::string& name, const std::string& rule, const std::string& precision, uint64_t seed)
      : network_(network_named(name, seed)), rule_(rules().at(rule).first), seed_(seed) {
    compile_.precision = precision;
    if (precision == "bf16-pure") network_.model.module->store_parameters(bf16);
    made_ = graph_of(*rule_);
    const Graph& graph = made_.graph;
    for (size_t i = 0; i < graph.inputs().size(); ++i) inputs_.emplace_back(graph.type(graph.inputs()[i]));
    // Of weights in 16 bits a usual step is less than the last digit, which hides what is wrong with it.
    const double rate = rules().at(rule).second * (precision == "bf16-pure" ? 40 : 1);
    for (int i = 0; i < made_.lr_inputs; ++i) inputs_[made_.data_inputs + i].set(0, rate);
    int at = made_.first_parameter();
    for (const nn::Named& named : optim::tensors_of(*network_.model.module))
      inputs_[at++] = named.tensor->to_array().clone();
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

  /// A step with each of these faults, compared with the right one, and before them one without; the training
  /// stays where it is.
  std::vector<optim::StepDifference> compare(const std::vector<Fault>& all) {
    const Faulty rule(rule_, all);
    Program program = Program::compile(graph_of(rule).graph, compile_);
    std::vector<optim::StepDifference> found;
    for (size_t k = 0; k <= all.size(); ++k) {
      std::vector<Array> inputs = inputs_;
      inputs.insert(inputs.begin() + static_cast<ptrdiff_t>(rule.number_at()), Array(Type{f32, Shape{}}));
      inputs[rule.number_at()].set(0, static_cast<double>(k));
      run(program, inputs);
      found.push_back(reference().compare(program));
    }
    return found;
  }

  /// A sound step; how far it was off.
  optim::StepDifference go_on(bool compared = true) {
    if (!program_) program_ = std::make_unique<Program>(Program::compile(made_.graph, compile_));
    run(*program_, inputs_);
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

  static void run(Program& program, const std::vector<Array>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) program.bind_input(static_cast<int>(i), inputs[i].clone());
    program.run();
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

/// The rules that train in a precision.
std::vector<std::string> rules_in(const std::string& precision) {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules())
    if (precision != "bf16-pure" || rule.first->ascent() == 0) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("every optimiser that updates by a graph is among those that are verified here") {
  for (const optim::OptimizerKind* kind : optim::optimizer_kinds().all())
    if (!kind->whole) CHECK_MESSAGE(rules().contains(kind->name), kind->name);  // lbfgs_test has the others
}

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
  for (const std::string& precision : test::precisions_here({"fp32", "bf16", "bf16-pure", "fp16"})) {
    for (const std::string& rule : rules_in(precision))
      for (const std::string name : {"mlp", "bag"})
        for (uint64_t seed = 1; seed < (precision == "fp32" ? 3 : 2); ++seed)
          check(name, rule, precision, seed, 3);
    for (const std::string name : {"conv", "lstm", "gpt"})
      for (const uint64_t seed : {1, 4}) check(name, "adamw", precision, seed, 2);
  }
}

TEST_CASE(
    "what goes wrong with one parameter or its state is reported, whatever the rule and the precision") {
  for (const std::string& precision : test::precisions_here({"fp32", "bf16", "bf16-pure", "fp16"}))
    for (const std::string& rule : rules_in(precision)) {
      CAPTURE(precision);
      CAPTURE(rule);
      Training training(rule.starts_with("lazy") ? "bag" : "mlp", rule, precision, 3);
      for (int step = 0; step < 3; ++step) training.go_on(false);
      // Where bf16 rounds products and weights alike, little of a small network's step is not rounding.
      const bool twice = precision == "bf16-pure" && test::computes_bf16();
      const auto all = faults(precision == "fp32" ? 0.01
                              : twice             ? 0.5
                                                  : 0.05,
                              twice ? 0.5 : 0.1, training.states_of_first(*rules().at(rule).first));
      const auto found = training.compare(all);
      CHECK_MESSAGE(found[0].share <= 1, found[0].what);
      for (size_t k = 0; k < all.size(); ++k) {
        CAPTURE(all[k].name);
        CHECK_MESSAGE(found[k + 1].share > 1, found[k + 1].what);
      }
    }
}

TEST_CASE("weights that vanish are reported however many they are, with the output's name") {
  Training training("wide", "sgd", "fp32", 1);
  const optim::StepDifference found = training.compare(
      {{.name = "zeroed weights", .weights = [](ops::Build& b, Value right) { return b.zeros(right); }}})[1];
  CHECK(found.share > 100);
  CHECK(training.output_name(found) == "new 0.weight");
}

namespace {

bool passes_err = false;

/// a − b becomes b − a where this is switched on.
Graph turn_differences(const Graph& graph, const PassContext&) {
  if (!passes_err) return graph;
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (node.op->name != "sub") return false;
    rewrite.set({i, 0},
                ops::Build(rewrite.graph()).sub(rewrite[node.operands[1]], rewrite[node.operands[0]]));
    return true;
  });
  return rewrite.finish();
}

}  // namespace

TEST_CASE("a pass that errs on every back end is reported") {
  register_pass({.name = "test-turn-differences", .doc = "errs", .place = 5, .run = turn_differences});
  for (const std::string& precision : test::precisions_here({"fp32", "bf16", "fp16"})) {
    CAPTURE(precision);
    Training training("mlp", "sgd", precision, 1);
    passes_err = true;
    const optim::StepDifference found = training.go_on();
    passes_err = false;
    CHECK_MESSAGE(found.share > 1, found.what);
  }
}
