// The code of docs/cpp.md.
#include <cmath>
#include <doctest/doctest.h>
#include <fstream>
#include <regex>
#include <sstream>

#include <millrace/compile.h>
#include <millrace/dataset.h>
#include <millrace/device.h>
#include <millrace/loss.h>
#include <millrace/nn.h>
#include <millrace/onnx_rule.h>
#include <millrace/operator.h>
#include <millrace/optim.h>
#include <millrace/program.h>
#include <millrace/rewrite.h>
#include <millrace/run.h>
#include <millrace/session.h>
#include <millrace/weights.h>

#include "support/temp_folder.h"

using namespace millrace;

namespace {

class Net : public nn::Module {
 public:
  Net() : features_(make<nn::Sequential>("features")), head_(make<nn::Linear>("head", 16, 2)) {
    features_.append(std::make_shared<nn::Linear>(2, 16));
    features_.append(nn::relu());
  }
  Tensor forward(const Tensor& x) override { return head_(features_(x)); }

 private:
  nn::Sequential& features_;
  nn::Linear& head_;
};

}  // namespace

TEST_CASE("the guide to the C++ interface does what it says") {
  Tensor a = Tensor::of({2, 2}, {1, 2, 3, 4});
  Tensor b = relu(matmul(a, a) - 8);
  double total = b.sum().item();
  CHECK(total == 2 + 7 + 14);

  Tensor xs = Tensor::of({3, 1}, {4, 2, 1});
  Tensor start = Tensor::zeros({1});
  ScanResult done = scan(
      [](std::span<const Tensor> carries, std::span<const Tensor> slices) {
        const Tensor next = carries[0] * 0.5 + slices[0];
        return ScanResult{{next}, {next}};
      },
      std::span(&start, 1), std::span(&xs, 1));
  double last = done.carries[0].item();
  Array all = done.stacked[0].to_array();
  CHECK(last == 3);
  CHECK(all.to_doubles() == std::vector<double>{4, 4, 3});

  std::vector<Tensor> one = cond(
      sum(xs) > 5, [&] { return std::vector<Tensor>{xs * 2}; }, [&] { return std::vector<Tensor>{xs}; });
  Array taken = one[0].to_array();
  WhileResult halved = while_loop([](std::span<const Tensor> state) { return sum(state[0]) > 1; },
                                  [](std::span<const Tensor> state) {
                                    return ScanResult{{state[0] * 0.5}, {}};
                                  },
                                  std::span(&xs, 1));
  double steps = halved.steps.item();
  CHECK(taken.to_doubles() == std::vector<double>{8, 4, 2});
  CHECK(steps == 3);

  auto f = compile([](const Tensor& x) {
    if (x.sum() < 0) return -x;
    return squeeze(x);
  });
  f(Tensor::of({1, 2}, {1, 2}));
  f(Tensor::of({1, 2}, {-1, -2}));
  std::string why = f.explain();
  CHECK(std::regex_replace(why, std::regex("[^ ]*guide_test.cpp:[0-9]+"), "guide.cpp:4") ==
        R"(2 calls, 2 recordings
guard: inputs (f32[1, 2])
  segment 1: 3 operations, 1 inputs, 2 results
  break at guide.cpp:4: the host reads a bool
    when it is true:
      segment 2: 1 operations, 1 inputs, 1 results
      returns 1 tensors
    when it is false:
      segment 3: 1 operations, 1 inputs, 1 results
      returns 1 tensors
call 2: recorded again: a bool read at guide.cpp:4 is true for the first time
)");
  CHECK(f(Tensor::of({1, 2}, {1, 2})).shape() == Shape{2});
  CHECK(f(Tensor::of({1, 2}, {-1, -2})).shape() == Shape{1, 2});

  auto net = std::make_shared<Net>();
  net->initialise(1);
  CHECK(net->find("features.0.weight")->shape() == Shape{16, 2});
  optim::TrainStep step(
      net, {{"x", {f32, {4, 2}}}, {"label", {i64, {4}}}},
      [](nn::Module& model, std::span<const Tensor> in) {
        const Tensor logits = model(in[0]);
        return optim::StepResult{cross_entropy(logits, in[1]),
                                 {{"accuracy", mean(equal(argmax(logits, 1), in[1]).cast(f32))}}};
      },
      optim::adamw({.common = {.weight_decay = 0.01, .clip_norm = 1}}));
  step.bind_input(0, Array::of(f32, {4, 2}, std::vector<double>{0, 0, 0, 1, 1, 0, 1, 1}));
  step.bind_input(1, Array::of(i64, {4}, std::vector<double>{0, 1, 1, 0}));
  optim::Schedule schedule = optim::cosine(0.05, 200);
  for (int i = 0; i < 200; ++i) step.run(schedule(i));
  double loss = step.loss();
  CHECK(loss < 0.1);
  CHECK(step.metrics()[0].second == 1);

  const Type type{f32, {4, 8}};
  Graph graph =
      capture([](std::span<const Tensor> x) { return std::vector<Tensor>{x[0] * sigmoid(x[0]) * 2}; },
              std::span(&type, 1));

  // x · sigmoid(x), written out, is silu.
  const Pattern written_out =
      Pattern::op("mul", {Pattern::any("x"), Pattern::op("sigmoid", {Pattern::any("x")})});
  Graph shorter = replace(graph, written_out,
                          [](Graph& g, const Match& match) { return g.add("silu", {match.at("x")}); });

  const Tensor x = Tensor::full({4, 8}, 1.5);
  Tensor y = apply_graph(shorter, std::span(&x, 1))[0];
  CHECK(shorter.str().find("silu") != std::string::npos);
  CHECK(y.to_array().at(5) == doctest::Approx(2 * 1.5 / (1 + std::exp(-1.5))));

  add_device({.name = "background", .threads = 1});
  Program quiet = Program::compile(shorter, {.target = "background"});
  quiet.bind_input(0, to_device(x.to_array(), "background"));
  quiet.run();
  std::string where = device_of(quiet.output(0));
  CHECK(where == "background");
  CHECK(quiet.output(0).at(5) == doctest::Approx(y.to_array().at(5)));
}

TEST_CASE("the guide's data, runs and loops do what it says") {
  task::register_loss({.name = "brier",
                       .doc = "the squared error of the probabilities",
                       .outputs = {"class"},
                       .settings = {{"sharpness", "what logits are multiplied with", 1.0, 0.1, 10}},
                       .make = [](const Tensor& logits, const Tensor& targets, const Settings& settings,
                                  bool mean) -> Tensor {
                         const Tensor error = softmax(logits * settings.number("sharpness")) -
                                              one_hot(targets, logits.shape()[1].size());
                         const Tensor rows = sum(error * error, {1});
                         return mean ? rows.mean() : rows;
                       }});
  testing::TempFolder folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  std::ofstream table(at("people.csv")), text(at("people.toml"));
  table << "age,height,tall\n";
  for (int i = 0; i < 200; ++i)
    table << i % 80 << ',' << 1.2 + i * 31 % 97 / 100.0 << ',' << (i * 31 % 97 > 50 ? "yes" : "no") << '\n';
  table.close();
  text << "[data]\ntrain = \"" << at("people.csv")
       << "\"\ntest_share = 0.3\n[output]\ncolumn = \"tall\"\nloss = { kind = \"brier\", sharpness = 2 "
          "}\n[train]\nbatch = 20\n";
  text.close();
  std::ostringstream out;  // the guide's std::cout

  std::shared_ptr<const data::Dataset> people = data::open_dataset(at("people.csv"));
  for (const data::Column& column : people->columns())
    out << column.name << " is " << data::kind_name(column.kind) << "\n";
  const auto grown = data::where(people, "age >= 18");
  int64_t oldest = 0;
  for (int64_t i = 0; i < grown->count(); ++i)
    oldest = std::max(oldest, std::get<int64_t>(grown->read(i, grown->column("age"))));
  CHECK(oldest == 79);
  CHECK(grown->count() < people->count());

  const task::Recipe recipe =
      task::load_recipe(at("people.toml"), std::vector<std::string>{"train.epochs=30"});
  train::Observer observer;
  observer.message = [&](const std::string& line) { out << line << "\n"; };
  Run run = Run::train(recipe, at("runs/people"), observer);
  for (const eval::Measured& metric : run.evaluate().metrics)
    out << metric.name << " " << metric.value << ", from " << metric.low << " to " << metric.high << "\n";
  CHECK(out.str().find("age is ") != std::string::npos);
  CHECK(out.str().find("accuracy ") != std::string::npos);

  Run opened = Run::open(at("runs/people"));
  const std::shared_ptr<const data::Dataset> rows =
      data::memory_dataset("rows", {{"age", data::ColumnKind::integer}, {"height", data::ColumnKind::real}},
                           {{int64_t{44}, 1.76}, {int64_t{9}, 1.31}});
  const Predictions told = opened.predict(rows);
  double probability = told.outputs[0].values.at(0);
  opened.export_onnx(at("people.onnx"));
  CHECK(told.outputs[0].classes == std::vector<std::string>{"no", "yes"});
  CHECK(probability < 0.5);
  CHECK(told.outputs[0].values.at(2) > 0.5);

  task::Recipe ours = task::parse_recipe(
      "", "ours",
      std::vector<std::string>{"data.train=set:people", "data.test_share=0.3", "output.column=tall"});
  ours.data.sets["people"] = people;
  Run trained = Run::train(ours, at("runs/ours"), observer);
  double accuracy = trained.evaluate(grown).metrics.at(0).value;
  Run again = Run::resume(at("runs/ours"), observer, ours.data.sets);
  CHECK(accuracy > 0.3);
  CHECK(again.outcome().step == trained.outcome().step);

  const Session session = Session::load(at("runs/people"), {.memory = "200MB"});
  std::vector<Array> asked;
  for (const SessionValue& input : session.inputs())
    asked.emplace_back(input.type.dtype, input.type.shape.specialise({{"batch", 3}}));
  std::vector<Array> answers = session.run(asked);
  CHECK(answers.size() == session.outputs().size());
  CHECK(answers[0].shape()[0] == 3);
  const CancelToken enough;
  std::future<std::vector<Array>> later = session.run_async(asked, enough);
  answers = later.get();

  Run own = Run::prepare(recipe);
  data::Feed& feed = own.training();
  optim::TrainStep train(own.model(), own.step_inputs(), own.step_function(), optim::adamw());
  for (int64_t i = 0; i < 2 * feed.batches_per_epoch(); ++i) {
    const data::FeedBatch& batch = feed.next();
    for (size_t k = 0; k < batch.arrays.size(); ++k)
      train.bind_input(static_cast<int>(k), feed.array(batch, k));
    train.run(1e-2);
  }
  nn::save_weights(*own.model(), at("people.safetensors"));
  nn::load_weights(*own.model(), at("people.safetensors"));
  own.save(at("runs/own"));
  CHECK(Run::open(at("runs/own"))
            .predict(rows)
            .outputs[0]
            .logits.identical(own.predict(rows).outputs[0].logits));
}

TEST_CASE("the guide's own operator works") {
  Operator op;
  op.name = "softcap";
  op.doc = "x, bent so that it stays between −2 and 2";
  op.op_class = OpClass::elementwise;
  op.types = [](const TypeContext& c) { return std::vector<Type>{c.operands[0]}; };
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    const Scalar cap = b.constant(b.dtype(x[0]), 2);
    return b.mul(cap, b.unary(ScalarOp::tanh, b.div(x[0], cap)));
  };
  op.differentiable = false;  // or op.gradient, which appends to the graph what the gradient is
  op.arithmetic = Arithmetic::follows;
  op.repeat = Repeat::costly;
  register_operator(std::move(op));

  const Tensor x = Tensor::full({3}, 4);
  Tensor y = millrace::apply("softcap", std::span(&x, 1))[0];
  CHECK(y.to_array().at(1) == doctest::Approx(2 * std::tanh(2.0)));
}
