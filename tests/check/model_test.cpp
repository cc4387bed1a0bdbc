// Mistakes in models that checks must find, and models without any.
#include <doctest/doctest.h>

#include <millrace/operator.h>

#include "subjects.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

/// An MLP whose result is changed.
Maker mlp_then(std::function<Tensor(const Tensor&)> change,
               std::function<Tensor(const Tensor&)> before = {}) {
  return drawn([=] {
    auto module = std::make_shared<FunctionModule>([=](FunctionModule& self, const Tensor& x) {
      return change((*self.parts[0])(before ? before(x) : x));
    });
    module->part("body", nn::make_layers({"linear 16", "relu", "linear 4"}, {test_width}).module);
    return module;
  });
}

Maker convnet_then(std::function<Tensor(const Tensor&)> change) {
  return drawn([=] {
    auto module = std::make_shared<FunctionModule>(
        [=](FunctionModule& self, const Tensor& x) { return change((*self.parts[0])(x)); });
    module->part("body",
                 nn::make_layers({"conv 8 3", "relu", "global-avg-pool", "linear 4"}, {3, 6, 6}).module);
    return module;
  });
}

/// Logits of tokens by an embedding, what `mix` makes of [rows, places, width], and a linear layer.
Maker token_model(std::function<Tensor(FunctionModule&, const Tensor&)> mix,
                  std::function<void(FunctionModule&)> more = {}) {
  return drawn([=] {
    auto module = std::make_shared<FunctionModule>([=](FunctionModule& self, const Tensor& ids) {
      return (*self.parts[0])(mix(self, embedding(*self.find("table"), ids)));
    });
    module->weight("table", {test_vocabulary, 16}, nn::init::normal(0, 1));
    module->part("head", std::make_shared<nn::Linear>(16, test_vocabulary));
    if (more) more(*module);
    return module;
  });
}

/// Weights that `change` gets by their names after they were drawn.
Maker changed(Maker make, std::function<void(const std::string&, Array&)> change) {
  return [=] {
    auto module = make();
    for (const nn::Named& p : module->parameters()) {
      Array array = p.tensor->to_array();
      change(p.name, array);
    }
    return module;
  };
}

void fill(Array& array, double value) {
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, value);
}

const Shape picture = {3, 6, 6};

}  // namespace

TEST_CASE("check: healthy models pass what looks at the model") {
  for (const check::Kind& kind : check::kinds()) {
    if (kind.group != "model") continue;
    for (const auto& [name, subject] :
         {std::pair<std::string, check::Subject>{"mlp", classes_subject(small_mlp())},
          {"convnet", classes_subject(small_convnet(), picture)},
          {"number", number_subject(layers({"linear 16", "relu", "linear 1"}, {test_width}))},
          {"gpt", tokens_subject(small_gpt())}}) {
      const check::Finding finding = finding_of(kind.name, subject);
      CAPTURE(name);
      CAPTURE(kind.name);
      CAPTURE(finding.saw);
      CHECK((finding.verdict == check::Verdict::pass || finding.verdict == check::Verdict::does_not_apply));
    }
  }
}

TEST_CASE("check batch-leakage: what looks at other samples, or at the row") {
  // The mean over the batch.
  CHECK_CAUGHT("batch-leakage",
               classes_subject(mlp_then([](const Tensor& y) { return y - y.mean({0}, true); })));
  // A softmax over the wrong axis, before the head.
  CHECK_CAUGHT("batch-leakage", classes_subject(mlp_then([](const Tensor& y) { return y; },
                                                         [](const Tensor& x) { return x * softmax(x, 0); })));
  // A norm that takes the batch's statistics in evaluation, too.
  CHECK_CAUGHT("batch-leakage", classes_subject(convnet_then([](const Tensor& y) {
                                                  const Tensor off = y - y.mean({0}, true);
                                                  return off * rsqrt((off * off).mean({0}, true) + 1e-3);
                                                }),
                                                picture));
  // Positions along the batch.
  CHECK_CAUGHT("batch-leakage", tokens_subject(token_model([](FunctionModule&, const Tensor& x) {
                 return x + cast(iota(test_rows), f32).reshape({test_rows, 1, 1});
               })));
  // A recurrent layer that goes from sample to sample.
  CHECK_CAUGHT("batch-leakage",
               tokens_subject(token_model(
                   [](FunctionModule& self, const Tensor& x) { return (*self.parts[1])(x); },
                   [](FunctionModule& self) { self.part("lstm", std::make_shared<nn::LSTM>(16, 16)); })));
}

TEST_CASE("check initial-loss: outputs that are too large, a sum for a mean, the target among the inputs") {
  const auto larger = [](const std::string& name, Array& array) {
    if (name.starts_with("2."))
      for (int64_t i = 0; i < array.count(); ++i) array.set(i, array.at(i) * 200);
  };
  CHECK_CAUGHT("initial-loss", classes_subject(changed(small_mlp(), larger)));
  check::Subject sum = tokens_subject(small_gpt());
  sum.loss = [inner = sum.loss](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{inner(model, in).loss * (test_rows * test_length)};
  };
  CHECK_CAUGHT("initial-loss", sum);
  check::Subject seen = classes_subject(small_convnet(), picture);
  seen.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{cross_entropy(model(in[0]) + one_hot(in[1], test_classes) * 5, in[1])};
  };
  CHECK_CAUGHT("initial-loss", seen);
  // The logarithm of what is 0.
  check::Subject infinite = number_subject(layers({"linear 16", "relu", "linear 1"}, {test_width}));
  infinite.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{(log(model(in[0])) * in[1]).mean()};
  };
  CHECK_CAUGHT("initial-loss", infinite);
}

TEST_CASE("check initialisation: constants, and zeros after zeros") {
  const auto constant = [](const std::string& name, Array& array) {
    if (name.ends_with("weight")) fill(array, 0.1);
  };
  CHECK_CAUGHT("initialisation", classes_subject(changed(small_mlp(), constant)));
  const auto zero = [](const std::string& name, Array& array) {
    if (name.ends_with("weight")) fill(array, 0);
  };
  CHECK_CAUGHT("initialisation", classes_subject(changed(small_mlp(), zero)));
  CHECK_CAUGHT(
      "initialisation",
      classes_subject(changed(layers({"conv 8 3", "relu", "global-avg-pool", "linear 4"}, picture), constant),
                      picture));
  // A head alone that begins at zero is well.
  const auto head = [](const std::string& name, Array& array) {
    if (name.starts_with("2.")) fill(array, 0);
  };
  CHECK_PASSES("initialisation", classes_subject(changed(small_mlp(), head)));
}

TEST_CASE("check unused-parameters: not called, cut off, not registered, not in the optimiser") {
  // Made and never called.
  CHECK_CAUGHT("unused-parameters", classes_subject(drawn([] {
                 auto module = std::make_shared<FunctionModule>(
                     [](FunctionModule& self, const Tensor& x) { return (*self.parts[0])(x); });
                 module->part("body", std::make_shared<nn::Linear>(test_width, test_classes));
                 module->part("forgotten", std::make_shared<nn::Linear>(test_width, test_classes));
                 return module;
               })));
  // No gradient comes through.
  CHECK_CAUGHT("unused-parameters", tokens_subject(token_model([](FunctionModule&, const Tensor& x) {
                 return millrace::apply("stop_gradient", std::vector<Tensor>{x})[0];
               })));
  // A weight that is only a member.
  CHECK_CAUGHT("unused-parameters", classes_subject(drawn([] {
                 const Tensor loose(random_array({f32, {test_width, 16}}, 5));
                 auto module =
                     std::make_shared<FunctionModule>([loose](FunctionModule& self, const Tensor& x) {
                       return (*self.parts[0])(relu(matmul(x, loose)));
                     });
                 module->part("head", std::make_shared<nn::Linear>(16, test_classes));
                 return module;
               })));
  check::Subject still = classes_subject(small_convnet(), picture);
  optim::Options common;
  common.groups = {{[](const std::string& name, const Type&) { return name.starts_with("0."); }, 0, {}}};
  still.optimizer = optim::sgd({.common = common});
  CHECK_CAUGHT("unused-parameters", still);
}

TEST_CASE("check probabilities: softmax or sigmoid twice") {
  CHECK_CAUGHT("probabilities", classes_subject(mlp_then([](const Tensor& y) { return softmax(y); })));
  // By hand.
  CHECK_CAUGHT("probabilities", classes_subject(convnet_then([](const Tensor& y) {
                                                  const Tensor e = exp(y - y.mean({1}, true));
                                                  return e / e.sum({1}, true);
                                                }),
                                                picture));
  check::Subject labels = number_subject(drawn([] {
    auto module = std::make_shared<FunctionModule>(
        [](FunctionModule& self, const Tensor& x) { return 1 / (exp(-(*self.parts[0])(x)) + 1); });
    module->part("body", nn::make_layers({"linear 16", "relu", "linear 1"}, {test_width}).module);
    return module;
  }));
  labels.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{bce_with_logits(model(in[0]), cast(in[1] > 0, f32))};
  };
  CHECK_CAUGHT("probabilities", labels);
  CHECK_CAUGHT("probabilities", tokens_subject(drawn([] {
                 auto module = std::make_shared<FunctionModule>(
                     [](FunctionModule& self, const Tensor& x) { return softmax((*self.parts[0])(x)); });
                 module->part("gpt", small_gpt()());
                 return module;
               })));
  // Probabilities with a loss that wants some are well.
  check::Subject honest = classes_subject(mlp_then([](const Tensor& y) { return softmax(y); }));
  honest.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{-(log(model(in[0]) + 1e-9) * one_hot(in[1], test_classes)).sum({1}).mean()};
  };
  CHECK(verdict_of("probabilities", honest) != "fail");
}

TEST_CASE("check probabilities: logits that cannot be below 0") {
  CHECK_CAUGHT("probabilities", classes_subject(mlp_then([](const Tensor& y) { return relu(y); })));
  CHECK_CAUGHT("probabilities",
               classes_subject(convnet_then([](const Tensor& y) { return abs(y); }), picture));
  CHECK_CAUGHT("probabilities",
               classes_subject(layers({"linear 16", "relu", "linear 4", "relu"}, {test_width})));
}

/// A program's own operator of one operand and a result like it.
void register_own(std::string_view name, ScalarOp what, bool straight) {
  if (find_operator(name)) return;
  Operator op;
  op.name = name;
  op.doc = "for checks";
  op.types = [](const TypeContext& c) { return std::vector<Type>{c.operands[0]}; };
  set_scalar(op, what);
  op.gradient = [what, straight](const GradientContext& c) {
    const Value slope =
        c.graph.add(straight ? "neg" : "sign", {straight ? c.result_gradients[0] : c.operands[0]});
    return std::vector<Value>{straight ? slope : c.graph.add("mul", {slope, c.result_gradients[0]})};
  };
  if (!straight) op.lowest = 0;
  (void)register_operator(op);
}

TEST_CASE("checks of models know a program's own operators by what they declare") {
  register_own("check_turned", ScalarOp::neg, true);
  register_own("check_folded", ScalarOp::abs, false);
  const auto through = [](std::string_view name) {
    return [name](const Tensor& x) { return apply(name, std::vector<Tensor>{x}, {})[0]; };
  };
  const auto between = [&](std::string_view name) {
    return classes_subject(drawn([=] {
      auto module = std::make_shared<FunctionModule>([=](FunctionModule& self, const Tensor& x) {
        return (*self.parts[1])(through(name)((*self.parts[0])(x)));
      });
      module->part("first", std::make_shared<nn::Linear>(test_width, 16));
      module->part("second", std::make_shared<nn::Linear>(16, test_classes));
      return module;
    }));
  };
  CHECK_CAUGHT("linear-layers", between("check_turned"));
  CHECK_PASSES("linear-layers", between("check_folded"));
  CHECK_CAUGHT("probabilities", classes_subject(mlp_then(through("check_folded"))));
  CHECK_PASSES("probabilities", classes_subject(mlp_then(through("check_turned"))));
}

TEST_CASE("check linear-layers: layers of weights without an activation") {
  CHECK_CAUGHT("linear-layers", classes_subject(layers({"linear 16", "linear 4"}, {test_width})));
  CHECK_CAUGHT("linear-layers",
               number_subject(layers({"linear 16", "dropout 0.1", "linear 8", "linear 1"}, {test_width})));
  CHECK_CAUGHT(
      "linear-layers",
      classes_subject(layers({"conv 8 3 padding=1", "batch-norm", "global-avg-pool", "linear 4"}, picture),
                      picture));
  CHECK_CAUGHT("linear-layers", classes_subject(drawn([] {
                 auto module = std::make_shared<FunctionModule>([](FunctionModule& self, const Tensor& x) {
                   return (*self.parts[1])((*self.parts[0])(x)*2 + 1);
                 });
                 module->part("first", std::make_shared<nn::Linear>(test_width, 16));
                 module->part("second", std::make_shared<nn::Linear>(16, test_classes));
                 return module;
               })));
  // One layer is a linear model; what only one of two ways bends is no longer linear; so is a norm of each
  // row.
  CHECK_PASSES("linear-layers", classes_subject(layers({"linear 4"}, {test_width})));
  CHECK_PASSES("linear-layers",
               classes_subject(layers({"linear 16", "layer-norm", "linear 4"}, {test_width})));
  CHECK_PASSES("linear-layers", classes_subject(drawn([] {
                 auto module = std::make_shared<FunctionModule>([](FunctionModule& self, const Tensor& x) {
                   const Tensor y = (*self.parts[0])(x);
                   return (*self.parts[1])(y + relu(y));
                 });
                 module->part("first", std::make_shared<nn::Linear>(test_width, 16));
                 module->part("second", std::make_shared<nn::Linear>(16, test_classes));
                 return module;
               })));
}

TEST_CASE("check signal-scale: dead, exploding, vanishing") {
  const auto off = [](const std::string& name, Array& array) {
    if (name == "0.bias") fill(array, -50);
  };
  CHECK_CAUGHT("signal-scale", classes_subject(changed(small_mlp(), off)));
  CHECK_CAUGHT(
      "signal-scale",
      classes_subject(changed(layers({"conv 8 3", "relu", "global-avg-pool", "linear 4"}, picture), off),
                      picture));
  const std::vector<std::string> deep = {"linear 16", "sigmoid",   "linear 16", "sigmoid",   "linear 16",
                                         "sigmoid",   "linear 16", "sigmoid",   "linear 16", "sigmoid",
                                         "linear 16", "sigmoid",   "linear 16", "sigmoid",   "linear 16",
                                         "sigmoid",   "linear 4"};
  CHECK_CAUGHT("signal-scale", classes_subject(layers(deep, {test_width})));
  std::vector<std::string> explode;
  for (int i = 0; i < 8; ++i) explode.insert(explode.end(), {"linear 32", "relu"});
  explode.emplace_back("linear 4");
  const auto wide = [](const std::string& name, Array& array) {
    if (name.ends_with("weight"))
      for (int64_t i = 0; i < array.count(); ++i) array.set(i, array.at(i) * 30);
  };
  CHECK_CAUGHT("signal-scale", classes_subject(changed(layers(explode, {test_width}), wide)));
  // Numbers of the data as they came: years, incomes.
  check::Subject raw = classes_subject(layers({"linear 16", "tanh", "linear 4"}, {test_width}));
  for (auto& batch : raw.batches)
    for (int64_t i = 0; i < batch[0].count(); ++i) batch[0].set(i, 30000 + 1000 * batch[0].at(i));
  CHECK_CAUGHT("signal-scale", raw);
}

TEST_CASE("check signal-scale: what a loss makes of the model's results is no layer") {
  check::Subject written = classes_subject(small_mlp());
  written.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{-(log_softmax(model(in[0])) * one_hot(in[1], test_classes)).sum({1}).mean()};
  };
  const check::Finding finding = finding_of("signal-scale", written);
  CAPTURE(finding.saw);
  REQUIRE(!finding.numbers.empty());
  CHECK(finding.numbers[0].first == "layers");
  CHECK(finding.numbers[0].second == 3);
}

TEST_CASE("check broadcasting: [rows] against [rows, 1], one for many") {
  const Maker regression = layers({"linear 16", "relu", "linear 1"}, {test_width});
  check::Subject pairs = number_subject(regression);
  pairs.loss = [](nn::Module& model, std::span<const Tensor> in) {
    const Tensor off = model(in[0]) - reshape(in[1], {test_rows});
    return optim::StepResult{(off * off).mean()};
  };
  CHECK_CAUGHT("broadcasting", pairs);
  check::Subject other = number_subject(drawn([] {
    auto module = std::make_shared<FunctionModule>(
        [](FunctionModule& self, const Tensor& x) { return reshape((*self.parts[0])(x), {test_rows}); });
    module->part("body", nn::make_layers({"linear 16", "relu", "linear 1"}, {test_width}).module);
    return module;
  }));
  other.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{abs(in[1] - model(in[0])).mean()};
  };
  CHECK_CAUGHT("broadcasting", other);
  // Otherwise it looks like one target for several outputs.
  for (const check::Subject& subject : {pairs, other})
    CHECK(finding_of("broadcasting", subject).saw.find("with each other one") != std::string::npos);
  // One number against all of several outputs, and one output against several numbers.
  check::Subject many = number_subject(layers({"linear 16", "relu", "linear 3"}, {test_width}));
  many.loss = [](nn::Module& model, std::span<const Tensor> in) {
    const Tensor off = model(in[0]) - in[1];
    return optim::StepResult{(off * off).mean()};
  };
  CHECK_CAUGHT("broadcasting", many);
  check::Subject pictures =
      classes_subject(layers({"conv 8 3", "relu", "global-avg-pool", "linear 1"}, picture), picture);
  pictures.loss = [](nn::Module& model, std::span<const Tensor> in) {
    const Tensor off = model(in[0]) - one_hot(in[1], test_classes);
    return optim::StepResult{(off * off).mean()};
  };
  CHECK_CAUGHT("broadcasting", pictures);
}

TEST_CASE(
    "check causal-leakage: means over places, attention without its mask, targets that are not shifted") {
  CHECK_CAUGHT(
      "causal-leakage",
      tokens_subject(token_model([](FunctionModule&, const Tensor& x) { return x + x.mean({1}, true); })));
  CHECK_CAUGHT("causal-leakage", tokens_subject(token_model([](FunctionModule&, const Tensor& x) {
                 const Tensor heads = reshape(x, {test_rows, 1, test_length, 16});
                 return reshape(attention(heads, heads, heads, false), {test_rows, test_length, 16});
               })));
  CHECK_CAUGHT("causal-leakage",
               tokens_subject(token_model(
                   [](FunctionModule& self, const Tensor& x) { return (*self.parts[1])(x); },
                   [](FunctionModule& self) {
                     self.part("lstm",
                               std::make_shared<nn::LSTM>(
                                   16, 8, nn::RecurrentOptions{.batch_first = true, .bidirectional = true}));
                   })));
  check::Subject same = tokens_subject(small_gpt());
  for (auto& batch : same.batches) batch[1] = batch[0].clone();
  CHECK_CAUGHT("causal-leakage", same);
  CHECK_PASSES("causal-leakage",
               tokens_subject(token_model([](FunctionModule&, const Tensor& x) { return x; })));
}

namespace {

/// Texts of which the second half of every other row is padding (token 0), of two classes.
check::Subject padded_subject(
    std::function<Tensor(FunctionModule&, const Tensor& x, const Tensor& mask)> pool) {
  check::Subject s = tokens_subject(drawn([=] {
    auto module = std::make_shared<FunctionModule>([=](FunctionModule& self, const Tensor& ids) {
      const Tensor mask = cast(not_equal(ids, 0), f32);
      return (*self.parts[0])(pool(self, embedding(*self.find("table"), ids), mask));
    });
    module->weight("table", {test_vocabulary, 16}, nn::init::normal(0, 1));
    module->part("head", std::make_shared<nn::Linear>(16, test_classes));
    return module;
  }));
  s.causal = false;
  s.ignorance = std::log(static_cast<double>(test_classes));
  s.inputs[1].type = {i64, {test_rows}};
  Array mask(u8, {test_rows, test_length});
  for (auto& batch : s.batches) {
    for (int64_t i = 0; i < batch[0].count(); ++i) {
      const bool pad = (i / test_length) % 2 == 1 && i % test_length >= test_length / 2;
      batch[0].set_int(i, pad ? 0 : 1 + batch[0].int_at(i) % (test_vocabulary - 1));
      mask.set_int(i, pad);
    }
    batch[1] = random_array({i64, {test_rows}}, 9, 0, test_classes);
  }
  s.padding = {mask};
  s.loss = [](nn::Module& model, std::span<const Tensor> in) {
    return optim::StepResult{cross_entropy(model(in[0]), in[1])};
  };
  return s;
}

}  // namespace

TEST_CASE("check padding-leakage: means and maxima over padding") {
  CHECK_CAUGHT("padding-leakage",
               padded_subject([](FunctionModule&, const Tensor& x, const Tensor&) { return x.mean({1}); }));
  CHECK_CAUGHT("padding-leakage",
               padded_subject([](FunctionModule&, const Tensor& x, const Tensor&) { return max(x, {1}); }));
  // The last place's state of a row that ended before.
  CHECK_CAUGHT("padding-leakage", padded_subject([](FunctionModule&, const Tensor& x, const Tensor&) {
                 return select_index(x, 1, test_length - 1);
               }));
}

TEST_CASE("check padding-leakage: a mean that leaves padding out is well") {
  check::Subject s =
      padded_subject([](FunctionModule&, const Tensor& x, const Tensor&) { return x.mean({1}); });
  s.inputs.push_back({"mask", {f32, {test_rows, test_length}}});
  for (auto& batch : s.batches) {
    Array mask(f32, {test_rows, test_length});
    for (int64_t i = 0; i < mask.count(); ++i) mask.set(i, batch[0].int_at(i) != 0);
    batch.push_back(mask);
  }
  s.given = {0, 2};
  s.targets = {1};
  const auto logits = [](nn::Module& module, const Tensor& ids, const Tensor& mask) {
    auto& self = dynamic_cast<FunctionModule&>(module);
    const Tensor there = reshape(mask, {test_rows, test_length, 1});
    const Tensor x = embedding(*self.find("table"), ids) * there;
    return (*self.parts[0])(x.sum({1}) / there.sum({1}));
  };
  s.loss = [=](nn::Module& module, std::span<const Tensor> in) {
    return optim::StepResult{cross_entropy(logits(module, in[0], in[2]), in[1])};
  };
  s.outputs = [=](nn::Module& module, std::span<const Tensor> in) {
    return std::vector<optim::NamedTensor>{{"logits", logits(module, in[0], in[1])}};
  };
  CHECK_PASSES("padding-leakage", s);
}
