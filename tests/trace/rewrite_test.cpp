#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/optim.h>
#include <millrace/rewrite.h>

using namespace millrace;

namespace {

int count(const Graph& graph, std::string_view op) {
  int n = 0;
  for (int i = 0; i < graph.size(); ++i) n += operator_name(graph.node(i)) == op;
  return n;
}

Graph captured(const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
  const Type types[] = {{f32, {3, 4}}, {f32, {3, 4}}};
  return capture([&](std::span<const Tensor> x) { return std::vector<Tensor>{f(x[0], x[1])}; }, types);
}

std::vector<double> values(const Graph& graph) {
  const Tensor arguments[] = {Tensor::full({3, 4}, 0.75), Tensor::full({3, 4}, -1.25)};
  const Array array = apply_graph(graph, arguments)[0].to_array();
  std::vector<double> all;
  for (int64_t i = 0; i < array.count(); ++i) all.push_back(array.at(i));
  return all;
}

const Pattern square_of_sum = Pattern::op(
    "mul", {Pattern::op("add", {Pattern::any("a"), Pattern::any("b")}, "sum"), Pattern::any("sum")});

}  // namespace

TEST_CASE("a pattern matches wherever its parts agree, in either order where operands commute") {
  const Graph graph = captured([](const Tensor& a, const Tensor& b) {
    const Tensor sum = a + b;
    return sum * sum + (a + b) * (a - b);
  });
  int matches = 0;
  for (int i = 0; i < graph.size(); ++i)
    if (const auto match = square_of_sum.match(graph, {i, 0})) {
      ++matches;
      CHECK(match->at("a") == graph.inputs()[0]);
      CHECK(match->at("b") == graph.inputs()[1]);
    }
  CHECK(matches == 1);
  const Graph turned = captured([](const Tensor& a, const Tensor& b) { return sigmoid(a) * a + b; });
  const Pattern silu = Pattern::op("mul", {Pattern::any("x"), Pattern::op("sigmoid", {Pattern::any("x")})});
  int found = 0;
  for (int i = 0; i < turned.size(); ++i) found += silu.match(turned, {i, 0}).has_value();
  CHECK(found == 1);
}

TEST_CASE("what comes later decides in which order operands match") {
  const Graph graph = captured([](const Tensor& a, const Tensor& b) { return (a + b) * b; });
  const auto match =
      Pattern::op("mul", {Pattern::op("add", {Pattern::any("x"), Pattern::any("y")}), Pattern::any("x")})
          .match(graph, graph.outputs()[0]);
  REQUIRE(match);
  CHECK(match->at("x") == graph.inputs()[1]);
  CHECK(match->at("y") == graph.inputs()[0]);
  const Graph other = captured([](const Tensor& a, const Tensor& b) { return (a + b) * tanh(b); });
  CHECK(!Pattern::op("mul", {Pattern::op("add", {Pattern::any("x"), Pattern::any("y")}), Pattern::any("x")})
             .match(other, other.outputs()[0]));
}

TEST_CASE("replacing keeps values, types and everything that does not match") {
  const Graph graph = captured([](const Tensor& a, const Tensor& b) {
    const Tensor sum = a + b;
    return tanh(sum * sum) + sum;
  });
  const Graph shorter =
      replace(graph, square_of_sum, [](Graph& g, const Match& m) { return g.add("square", {m.at("sum")}); });
  CHECK(count(graph, "square") == 0);
  CHECK(count(shorter, "square") == 1);
  CHECK(values(shorter) == values(graph));
  // A replacement that declines, and a condition that is never met.
  CHECK(replace(graph, square_of_sum, [](Graph&, const Match&) { return Value{}; }) == graph);
  const Pattern never = square_of_sum.where([](const Graph&, Value) { return false; });
  CHECK(replace(graph, never, [](Graph& g, const Match& m) { return g.add("square", {m.at("sum")}); }) ==
        graph);
  // Numbers match whatever their shape.
  const Graph doubled = captured([](const Tensor& a, const Tensor&) { return a * 2; });
  const Pattern twice = Pattern::op("mul", {Pattern::any("x"), Pattern::number(2)});
  const Graph added = replace(doubled, twice, [](Graph& g, const Match& m) {
    return g.add("add", {m.at("x"), m.at("x")});
  });
  CHECK(count(added, "add") == 1);
  CHECK(values(added) == values(doubled));
}

TEST_CASE("a rewritten graph trains as part of a step") {
  const Type type{f32, {2, 3}};
  const Graph graph =
      replace(capture([](std::span<const Tensor> x) { return std::vector<Tensor>{x[0] * x[0]}; },
                      std::span(&type, 1)),
              Pattern::op("mul", {Pattern::any("x"), Pattern::any("x")}),
              [](Graph& g, const Match& m) { return g.add("square", {m.at("x")}); });
  auto model = std::make_shared<nn::Linear>(3, 3);
  model->initialise(1);
  optim::TrainStep step(
      model, {{"x", type}},
      [&](nn::Module& module, std::span<const Tensor> x) {
        const Tensor hidden = module(x[0]);
        return optim::StepResult{apply_graph(graph, std::span(&hidden, 1))[0].sum()};
      },
      optim::sgd());
  for (int64_t i = 0; i < 6; ++i) step.input(0).set(i, 0.3 * static_cast<double>(i) - 0.5);
  step.run(0.05);
  const double first = step.loss();
  for (int i = 0; i < 20; ++i) step.run(0.05);
  CHECK(step.loss() < 0.5 * first);
}

TEST_CASE("mistakes in rewriting are said") {
  CHECK_THROWS_AS((void)Pattern::op("sigmod", {}), InputError);
  CHECK_THROWS_WITH_AS((void)Pattern::op("add", {Pattern::any()}),
                       "a pattern of add with 1 operand would never match: it takes at least 2", InputError);
  CHECK_THROWS_WITH_AS((void)Pattern::op("tanh", {Pattern::any(), Pattern::any()}),
                       "a pattern of tanh with 2 operands would never match: it takes at most 1", InputError);
  CHECK_THROWS_AS((void)Pattern::any().where({}), InputError);
  const Graph graph = captured([](const Tensor& a, const Tensor& b) { return a + b; });
  const Pattern sum = Pattern::op("add", {Pattern::any("a"), Pattern::any("b")});
  CHECK_THROWS_AS((void)replace(graph, sum,
                                [](Graph& g, const Match& m) {
                                  return g.add("cast", {m.at("a")}, {{"dtype", f64}});
                                }),
                  TypeError);
  CHECK_THROWS_AS((void)replace(graph, sum, [](Graph&, const Match&) { return Value{99, 0}; }), InputError);
  CHECK_THROWS_AS((void)replace(graph, sum, {}), InputError);
  const Tensor one = Tensor::full({3, 4}, 1);
  CHECK_THROWS_AS((void)apply_graph(graph, std::span(&one, 1)), TypeError);
  const Tensor odd[] = {one, Tensor::full({4, 3}, 1)};
  CHECK_THROWS_AS((void)apply_graph(graph, odd), TypeError);
}
