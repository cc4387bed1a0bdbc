#include <atomic>
#include <cstdint>
#include <doctest/doctest.h>
#include <fstream>
#include <future>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/random.h>
#include <millrace/session.h>

#include "base/format.h"
#include "base/free_memory.h"
#include "support/allocations.h"
#include "support/random_graph.h"
#include "support/refusal.h"

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
  const Session session(session_mlp(), {.executables = 8});
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

TEST_CASE("a dimension that a model has not is no size to prepare it for") {
  const Session session(session_mlp());
  CHECK(testing::refusal([&] {
          session.prepare({{"batch", 4}, {"bach", 3}});
        }) == "the model has no dimension 'bach'; did you mean 'batch'?");
}

TEST_CASE("sizes that a session is prepared for between two runs are run as they are") {
  const Session session(session_mlp(), {.executables = 1});
  (void)session.run({{session_rows(9)}});  // by the one for 12
  session.prepare({{"batch", 10}});
  (void)session.run({{session_rows(9)}});
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

namespace {

/// Bytes of the process that are its own.
int64_t own_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (int64_t kilobytes = 0; word == "RssAnon:" && status >> kilobytes) return 1024 * kilobytes;
  return 0;
}

/// tanh(tanh(x · a) · b) of 1024 × 1024 each, and what becomes of pictures of 64 channels in a convolution:
/// large weights, small values.
SessionModel session_of_large_weights() {
  SessionModel model;
  model.inputs = {{"x", {f32, {Dim::named("batch"), 1024}}}, {"p", {f32, {Dim::named("batch"), 64, 8, 8}}}};
  model.outputs = {{"y", {f32, {Dim::named("batch"), 1024}}}, {"q", {f32, {Dim::named("batch"), 256, 8, 8}}}};
  const auto random = [](const Shape& shape, uint64_t seed) {
    Array array(f32, shape);
    RandomStream stream(8, 1, seed);
    array.edit<float>([&](std::span<float> all) {
      for (float& each : all) each = static_cast<float>(stream.uniform() - 0.5) / 8;
    });
    return array;
  };
  // Each time anew, as an imported file is.
  model.graph = [random, inputs = model.inputs](const Bindings&) {
    Graph graph;
    const Value x = graph.input("x", inputs[0].type), p = graph.input("p", inputs[1].type);
    Value y = x;
    for (const uint64_t seed : {1, 2})
      y = graph.add("tanh", {graph.add("matmul", {y, graph.constant(random({1024, 1024}, seed))},
                                       {{"transpose_b", true}})});
    const Value q = graph.add("conv2d", {p, graph.constant(random({256, 64, 3, 3}, 3))},
                              {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    graph.set_outputs({y, q}, {"y", "q"});
    return graph;
  };
  model.independent = {"batch"};
  return model;
}

}  // namespace

TEST_CASE("weights are in memory once, for any number of batch sizes") {
  const auto inputs = [](int64_t batch) {
    return std::vector{Array(f32, {batch, 1024}), Array(f32, {batch, 64, 8, 8})};
  };
  constexpr int64_t plain = 2 * 4 << 20;  // of the products, whose packed form is as large
  int64_t after_first = 0;
  for (int round = 0; round < 4; ++round) {  // what is kept of code is kept after the first
    const int64_t before = own_bytes();
    {
      const Session session(session_of_large_weights());
      (void)session.run(inputs(64));
      const int64_t one = session.counts().weights;
      CHECK(one > plain);
      for (const int64_t batch : {32, 48, 96, 128}) (void)session.run(inputs(batch));
      CHECK(session.counts().kept == 5);
      // They may be there in two forms or three, for what is faster where; each executable's own would be 5 ×
      // one.
      CHECK(session.counts().weights < 3 * one);
      if (round == 1 && test::allocations_are_counted()) {
        const int64_t grown = own_bytes() - before, counted = session.counts().bytes;
        CAPTURE(grown);
        CAPTURE(counted);
        CHECK(grown < counted + 2 * plain);
      }
    }
    if (round == 0) after_first = own_bytes();
  }
  // Threads keep room to work in, in pieces of 4 MiB; sessions that kept their weights would keep
  // three times as much or more.
  if (test::allocations_are_counted()) CHECK(own_bytes() - after_first < 3 * plain);
}

TEST_CASE("what compiling took is given back, the graph's constants too") {
  if (!test::allocations_are_counted()) return;
  const Session session(session_of_large_weights());
  for (const int64_t batch : {64, 32, 48}) session.prepare({{"batch", batch}});
  const int64_t before = own_bytes();
  give_back_free_memory();
  CHECK(before - own_bytes() < 2 << 20);
}

TEST_CASE("runs that nobody waits for give what runs give, in any number") {
  const Session session(session_mlp(64));
  const Array all = session.run({{session_rows(40)}})[0];
  std::vector<std::future<std::vector<Array>>> futures;
  for (int64_t i = 0; i < 30; ++i) futures.push_back(session.run_async({first_rows(session_rows(40), 8)}));
  const Array eight = session.run({{first_rows(session_rows(40), 8)}})[0];
  for (auto& future : futures) CHECK(future.get()[0].identical(eight));
  // Errors come with the future; the session goes on.
  auto wrong = session.run_async({Array(i64, {2, kColumns})});
  CHECK_THROWS_AS((void)wrong.get(), TypeError);
  std::future<std::vector<Array>> last;
  {
    const Session copy = session;
    last = copy.run_async({session_rows(40)});
  }
  CHECK(last.get()[0].identical(all));
}

TEST_CASE("a session that is let go finishes what it was asked for") {
  std::future<std::vector<Array>> future;
  {
    const Session session(session_mlp(64));
    future = session.run_async({session_rows(3)});
  }
  CHECK(future.get()[0].shape() == Shape{3, kClasses});
}

TEST_CASE("a share of the threads changes no bit") {
  const Session all(session_mlp(256)), one(session_mlp(256), {.threads = 1});
  const Array rows = session_rows(64);
  const Array result = all.run({{rows}})[0];
  CHECK(one.run({{rows}})[0].identical(result));
  std::vector<std::future<std::vector<Array>>> futures;
  for (int i = 0; i < 8; ++i) futures.push_back(one.run_async({rows}));
  for (auto& future : futures) CHECK(future.get()[0].identical(result));
  CHECK_THROWS_AS(Session(session_mlp(), {.threads = -1}), InputError);
  CHECK_THROWS_WITH_AS(Session(session_mlp(), {.precision = "fp99"}),
                       doctest::Contains("there is no precision 'fp99'"), InputError);
}

namespace {

/// y = tanh(x · w) so often that a run takes its time, one launch after the other.
SessionModel session_of_many_launches() {
  SessionModel model;
  model.inputs = {{"x", {f32, {Dim::named("batch"), 256}}}};
  model.outputs = {{"y", {f32, {Dim::named("batch"), 256}}}};
  model.graph = [input = model.inputs[0]](const Bindings&) {
    Graph graph;
    const Value weights = graph.constant(Array::full(f32, {256, 256}, 0.01));
    Value x = graph.input("x", input.type);
    for (int i = 0; i < 200; ++i) x = graph.add("tanh", {graph.add("matmul", {x, weights})});
    graph.set_outputs({x}, {"y"});
    return graph;
  };
  model.independent = {"batch"};
  return model;
}

}  // namespace

TEST_CASE("executables for several sizes take turns with the memory for what is in between") {
  const auto rows = [](int64_t count) {
    Array array(f32, {count, 64});
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(i * 7 % 19) / 19 - 0.5);
    return array;
  };
  SessionModel model;
  model.inputs = {{"x", {f32, {Dim::named("batch"), 64}}}};
  model.outputs = {{"y", {f32, {Dim::named("batch"), 64}}}};
  constexpr int64_t wide = 2048;
  model.graph = [input = model.inputs[0]](const Bindings&) {
    Graph graph;
    const Value up = graph.constant(Array::full(f32, {64, wide}, 0.01)),
                down = graph.constant(Array::full(f32, {wide, 64}, 0.02)), x = graph.input("x", input.type);
    const Value between = graph.add("softmax", {graph.add("matmul", {x, up})}, {{"axis", int64_t{1}}});
    graph.set_outputs({graph.add("matmul", {between, down})}, {"y"});
    return graph;
  };
  const auto beside_weights = [](const Session& session) {
    const Session::Counts counts = session.counts();
    return counts.bytes - counts.weights;
  };
  const Session session(model);
  std::map<int64_t, Array> first;
  first[600] = session.run({{rows(600)}})[0];
  const int64_t one = beside_weights(session);
  REQUIRE(one > 600 * wide * 4);
  for (const int64_t count : {200, 400, 500}) first[count] = session.run({{rows(count)}})[0];
  // Of each further one what goes in and comes out is counted, and its plan; not as much as is in between.
  CHECK(beside_weights(session) < one + (200 + 400 + 500) * 2 * 64 * 4 + 3 * (200 << 10));
  for (const int64_t count : {400, 600, 200, 500, 600}) {
    CAPTURE(count);
    CHECK(session.run({{rows(count)}})[0].identical(first[count]));
    const Array alone = Session(model).run({{rows(count)}})[0];
    CHECK(test::difference(first[count], alone) < 1e-5);
  }
  // Many sizes are kept where that takes little memory.
  for (int64_t count = 1; count <= 20; ++count) (void)session.run({{rows(count)}});
  CHECK(session.counts().kept == 24);
  // With the sizes that need a large one it goes, too.
  const Session few(model, {.executables = 1});
  (void)few.run({{rows(2000)}});
  const int64_t large = beside_weights(few);
  (void)few.run({{rows(200)}});
  (void)few.run({{rows(210)}});
  CHECK(beside_weights(few) < large / 2);
}

TEST_CASE("a run that is cancelled ends soon, and the session goes on") {
  const Session session(session_of_many_launches());
  const Array rows = Array::full(f32, {64, 256}, 0.5);
  const Array result = session.run({{rows}})[0];
  const CancelToken before;
  before.cancel();
  CHECK_THROWS_AS((void)session.run({{rows}}, before), CancelledError);
  CHECK_THROWS_AS((void)session.run_async({rows}, before).get(), CancelledError);
  // In the middle: as soon as it runs. Once it may be too late.
  int ended = 0;
  for (int attempt = 0; attempt < 20 && ended == 0; ++attempt) {
    const CancelToken token;
    std::atomic<bool> begun{false};
    std::thread other([&] {
      while (!begun) std::this_thread::yield();
      token.cancel();
    });
    try {
      begun = true;
      const std::vector<Array> whole = session.run({{rows}}, token);
      CHECK(whole[0].identical(result));
    } catch (const CancelledError&) {
      ++ended;
    }
    other.join();
  }
  CHECK(ended == 1);
  CHECK(session.run({{rows}})[0].identical(result));
  CHECK(session.counts().compiled == 1);
  CHECK(session.counts().programs == 1);
}

TEST_CASE("a token that nobody can cancel is never cancelled") {
  CancelToken::never().cancel();
  CHECK_FALSE(CancelToken::never().cancelled());
  const CancelToken one, copy = one, other;
  copy.cancel();
  CHECK(one.cancelled());
  CHECK_FALSE(other.cancelled());
}

TEST_CASE("a session keeps no more memory than it is allowed") {
  const auto inputs = [](int64_t batch) {
    return std::vector{Array(f32, {batch, 1024}), Array(f32, {batch, 64, 8, 8})};
  };
  Session::Counts counts;
  std::vector<Array> right;
  {
    const Session free(session_of_large_weights());
    right = free.run(inputs(64));
    counts = free.counts();
    CHECK(counts.bytes > counts.weights);
  }
  // For one executable and its program, not for two.
  const int64_t allowed = counts.bytes + (counts.bytes - counts.weights) / 2;
  const Session session(session_of_large_weights(), {.memory = std::to_string(allowed)});
  for (const int64_t batch : {64, 48, 64}) {
    const std::vector<Array> results = session.run(inputs(batch));
    CHECK(results[0].shape()[0] == batch);
    CHECK(session.counts().kept == 1);
    CHECK(session.counts().bytes <= allowed);
  }
  CHECK(session.run(inputs(64))[1].identical(right[1]));
  // Callers at the same time share the one program that there may be.
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) same[t] += session.run(inputs(t == 3 ? 48 : 64))[0].shape()[1] == 1024;
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : same) CHECK(count == 3);
  CHECK(session.counts().bytes <= allowed);
  CHECK(session.counts().programs == 1);
  // What can never be is refused with figures, and the rest goes on.
  try {
    (void)session.run(inputs(256));
    FAIL("256 rows were run");
  } catch (const InputError& error) {
    const std::string message = error.what();
    CAPTURE(message);
    CHECK(message.find("batch 256 needs ") == 0);
    // Who follows the advice is served.
    const size_t advice = message.find("or let batch be ");
    REQUIRE(advice != std::string::npos);
    const int64_t rows = std::stoll(message.substr(advice + 16));
    CHECK(session.run(inputs(rows))[0].shape()[0] == rows);
  }
  CHECK(session.run(inputs(64))[1].identical(right[1]));
  CHECK_THROWS_AS(Session(session_of_large_weights(), {.memory = "plenty"}), InputError);
  SessionModel heavy = session_of_large_weights();
  heavy.constant_bytes = 8 << 20;
  CHECK_THROWS_AS(Session(std::move(heavy), {.memory = "8MB"}), InputError);
}

TEST_CASE("a session keeps nothing of what a run was given") {
  const Session session(session_mlp());
  std::weak_ptr<const Array> given;
  {
    const auto kept = std::make_shared<Array>(session_rows(4));
    given = kept;
    const Array rows(kept->type(), kept->data(), kept);
    CHECK(session.run({{rows}})[0].shape() == Shape{4, kClasses});
  }
  CHECK(given.expired());
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
  CHECK_THROWS_AS(Session(session_mlp(), {.executables = -1}), InputError);
  CHECK_THROWS_AS(Session(SessionModel{}), InputError);
  SessionModel without = session_mlp();
  without.inputs.emplace_back("more", Type{f32, {3}});
  const Session lacking(without);
  CHECK_THROWS_WITH_AS((void)lacking.run({{session_rows(2), Array(f32, {3})}}),
                       doctest::Contains("has 1 inputs, and its inputs and weights are 2"), InputError);
  // Also of a batch that is filled up.
  for (const int64_t batch : {4, 5}) {
    const Array nothing(Type{f32, {batch, kColumns}}, nullptr, nullptr);
    CHECK_THROWS_WITH_AS((void)session.run({{nothing}}), doctest::Contains("is an array without memory"),
                         TypeError);
  }
  SessionModel turned = session_mlp();
  turned.independent = {"batch"};
  turned.outputs[0].type.shape = {kClasses, Dim::named("batch")};
  CHECK_THROWS_AS(Session(std::move(turned)), InputError);
  CHECK_THROWS_AS(Session::load("no/such/model"), InputError);
}

TEST_CASE("results whose size depends on data are as large as they are, in new memory or the caller's") {
  SessionModel model;
  model.inputs = {{"x", {f32, {2, Dim::named("n")}}}, {"size", {i64, {}}}};
  model.outputs = {{"twice", {f32, {2, Dim::named("found")}}, 1}, {"x2", {f32, {2, Dim::named("n")}}}};
  model.graph = [](const Bindings& sizes) {
    Graph graph;
    const Value x = graph.input("x", {f32, {2, sizes.at("n")}}), size = graph.input("size", {i64, {}});
    const Value twice = graph.add("add", {x, x});
    graph.set_outputs({twice, graph.add("mul", {x, x}), size}, {"twice", "x2", "twice.size"});
    return graph;
  };
  const Session session(model);
  const Array x = Array::of(f32, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  const auto run = [&](double size, const Session::Place& place) {
    return session.run({{x, Array::scalar(i64, size)}}, place);
  };
  CHECK(run(2, {})[0].identical(Array::of(f32, {2, 2}, std::vector<double>{2, 4, 8, 10})));
  CHECK(run(3, {})[0].count() == 6);
  CHECK(run(0, {})[0].shape() == Shape{2, 0});
  Array own(f32, {2, 1});
  std::vector<int> asked;
  const std::vector<Array> results = run(1, [&](int output, const Type& type) {
    asked.push_back(output);
    return type == own.type() ? own : Array();
  });
  CHECK(asked == std::vector<int>{1, 0});  // its size is known behind the run
  CHECK(results[0].shares_memory(own));
  CHECK(own.identical(Array::of(f32, {2, 1}, std::vector<double>{2, 8})));
  CHECK(results[1].at(5) == 36);
  for (const double wrong : {-1.0, 4.0})
    CHECK_THROWS_WITH_AS(run(wrong, {}), doctest::Contains("'twice' has"), InputError);
  // A graph that lacks the size is none.
  model.graph = [](const Bindings& sizes) {
    Graph graph;
    const Value value = graph.input("x", {f32, {2, sizes.at("n")}});
    (void)graph.input("size", {i64, {}});
    graph.set_outputs({value, value}, {"twice", "x2"});
    return graph;
  };
  CHECK_THROWS_WITH_AS(Session(model).run({{x, Array::scalar(i64, 1)}}), doctest::Contains("outputs"),
                       InputError);
}
