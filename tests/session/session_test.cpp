#include <doctest/doctest.h>
#include <thread>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/random.h>
#include <millrace/session.h>

#include "base/format.h"
#include "support/allocations.h"

using namespace millrace;

namespace {

constexpr int64_t kColumns = 6, kClasses = 5;

/// Rows of numbers → logits.
SessionModel session_mlp(int64_t width = 32) {
  const nn::Model model =
      nn::make_model("table", {.classes = kClasses, .width = width, .depth = 2, .numbers = kColumns});
  model.module->initialise(4);
  SessionModel made;
  std::vector<optim::TensorSpec> specs;
  for (const nn::InputSpec& input : model.inputs) {
    made.inputs.push_back({input.name, input.type});
    specs.push_back({input.name, input.type});
  }
  const Graph graph = optim::build_eval_graph(
      *model.module, specs,
      [](nn::Module& module, std::span<const Tensor> in) {
        return std::vector<optim::NamedTensor>{{"logits", module(in)}};
      },
      false);
  made.outputs = {{"logits", graph.type(graph.outputs()[0])}};
  made.graph = [graph](const Bindings&) { return graph; };
  made.independent = {"batch"};
  return made;
}

Array session_rows(int64_t count, uint64_t seed = 1) {
  Array rows(f32, {count, kColumns});
  RandomStream random(7, 1, seed);
  for (int64_t i = 0; i < rows.count(); ++i) rows.set(i, 2 * random.uniform() - 1);
  return rows;
}

/// What one run says of the first rows of another array.
Array first_rows(const Array& all, int64_t count) {
  Array first(all.dtype(), {count, all.shape()[1]});
  for (int64_t i = 0; i < first.count(); ++i) first.set(i, all.at(i));
  return first;
}

}  // namespace

TEST_CASE("a session runs any batch, by few executables") {
  const Session session(session_mlp());
  REQUIRE(session.inputs().size() == 1);
  CHECK(session.inputs()[0].type.str() == "f32[batch, 6]");
  CHECK(session.outputs()[0].type.str() == "f32[batch, 5]");
  const Array rows = session_rows(40);
  const Array all = session.run({{rows}})[0];
  for (const int64_t count : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 17, 24, 33, 40}) {
    CAPTURE(count);
    const Array some = session.run({{first_rows(rows, count)}})[0];
    REQUIRE(some.shape() == Shape{count, kClasses});
    for (int64_t i = 0; i < some.count(); ++i) CHECK(some.at(i) == doctest::Approx(all.at(i)).epsilon(1e-5));
  }
  // 48, 1, 2, 3, 4, 6, 8, 12, 16, 24, and 48 again: only the last eight are there.
  CHECK(session.counts().compiled == 11);
  CHECK(session.counts().kept == 8);
}

TEST_CASE("a session's results have nothing of earlier callers in what is filled up") {
  SessionModel model = session_mlp();
  const Session session(std::move(model));
  const Array first = session.run({{session_rows(5)}})[0];
  (void)session.run({{session_rows(6, 2)}});
  (void)session.run({{session_rows(5, 3)}});
  CHECK(session.run({{session_rows(5)}})[0].identical(first));
  CHECK(session.counts().compiled == 1);
}

TEST_CASE("sizes that a session was prepared for are run as they are") {
  const Session session(session_mlp());
  session.prepare({{"batch", 10}});
  CHECK(session.counts().compiled == 1);
  (void)session.run({{session_rows(10)}});
  (void)session.run({{session_rows(9)}});  // the next of the others would be 12
  CHECK(session.counts().compiled == 1);
  (void)session.run({{session_rows(8)}});
  CHECK(session.counts().compiled == 2);
}

TEST_CASE("callers at the same time get what each gets alone") {
  const Session session(session_mlp(64), {.executables = 4});
  const std::vector<int64_t> counts = {1, 5, 8, 20};
  std::vector<Array> alone;
  for (const int64_t count : counts) alone.push_back(session.run({{session_rows(count)}})[0]);
  std::vector<std::thread> threads;
  std::vector<int> right(6);
  for (size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&, t, mine = session] {
      for (size_t k = 0; k < 40; ++k) {
        const size_t i = (k + t) % counts.size();
        right[t] += mine.run({{session_rows(counts[i])}})[0].identical(alone[i]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : right) CHECK(count == 40);
  CHECK(session.counts().compiled == 4);
}

TEST_CASE("weights may be arrays that all programs share") {
  SessionModel model;
  model.inputs = {{"x", {f32, {Dim::named("batch"), 2}}}};
  model.outputs = {{"y", {f32, {Dim::named("batch"), 2}}}};
  const double values[] = {1, 2, 3, 4};
  Array weights = Array::of(f32, {2, 2}, values);
  model.weights = {weights};
  Graph graph;
  const Value x = graph.input("x", model.inputs[0].type), w = graph.input("w", weights.type());
  graph.set_outputs({graph.add("matmul", {x, w})}, {"y"});
  model.graph = [graph](const Bindings&) { return graph; };
  model.independent = {"batch"};
  const Session session(std::move(model));
  const double row[] = {1, 1};
  const Array one = Array::of(f32, {1, 2}, row);
  CHECK(session.run({{one}})[0].to_doubles() == std::vector<double>{4, 6});
  weights.set(0, 11);
  CHECK(session.run({{one}})[0].to_doubles() == std::vector<double>{14, 6});
  CHECK(session.run({{Array(f32, {3, 2})}})[0].to_doubles() == std::vector<double>(6));
}

TEST_CASE("sizes are compiled once, though several ask at the same time") {
  const Session session(session_mlp());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (const int64_t count : {3, 4, 6}) (void)session.run({{session_rows(count)}});
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(session.counts().compiled == 3);
}

TEST_CASE("a session that goes gives its memory back") {
  if (!test::allocations_are_counted()) return;
  const auto use = [] {
    const Session session(session_mlp(1024));
    for (const int64_t count : {1, 16}) (void)session.run({{session_rows(count)}});
  };
  use();  // what is kept of code and kernels' choices is kept now
  const test::CountAllocations counted;
  use();
  CHECK(counted.kept() < 64 << 10);
}

TEST_CASE("sizes that a model cannot have are refused each time") {
  SessionModel model = session_mlp();
  model.graph = [graph = std::move(model.graph)](const Bindings& sizes) {
    if (sizes.at("batch") > 4) fail<InputError>("the model takes 4 rows at most");
    return graph(sizes);
  };
  const Session session(std::move(model), {.executables = 1});
  (void)session.run({{session_rows(4)}});
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS((void)session.run({{session_rows(5)}}), InputError);
  CHECK(session.counts().kept == 0);
  CHECK(session.run({{session_rows(4)}})[0].shape() == Shape{4, kClasses});
}

TEST_CASE("a session says what does not fit") {
  const Session session(session_mlp());
  CHECK_THROWS_AS((void)session.run({}), TypeError);
  CHECK_THROWS_AS((void)session.run({{Array(f32, {2, kColumns + 1})}}), TypeError);
  CHECK_THROWS_AS((void)session.run({{Array(i64, {2, kColumns})}}), TypeError);
  CHECK_THROWS_AS(Session(session_mlp(), {.executables = 0}), InputError);
  CHECK_THROWS_AS(Session(SessionModel{}), InputError);
  SessionModel turned = session_mlp();
  turned.independent = {"batch"};
  turned.outputs[0].type.shape = {kClasses, Dim::named("batch")};
  CHECK_THROWS_AS(Session(std::move(turned)), InputError);
  CHECK_THROWS_AS(Session::load("no/such/model"), InputError);
}
