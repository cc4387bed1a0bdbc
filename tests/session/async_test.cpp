#include <algorithm>
#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <future>
#include <thread>
#include <vector>

#include <millrace/operator.h>
#include <millrace/session.h>

using namespace millrace;

namespace {

std::atomic<int> now = 0, most = 0;

/// What it is given; notes how many of it are at work.
const Operator& watched() {
  static const Operator& op = []() -> const Operator& {
    Operator made;
    made.name = "watched_by_async_test";
    made.doc = "its operand";
    made.op_class = OpClass::heavy;
    made.differentiable = false;
    made.types = [](const TypeContext& c) { return std::vector<Type>{c.operands[0]}; };
    made.flops = [](const Graph&, const Node&) { return 0.0; };
    made.evaluate = [](const Node&, std::span<const Array> operands) {
      const int here = ++now;
      for (int seen = most; seen < here && !most.compare_exchange_weak(seen, here);) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(3));  // so that others may begin
      --now;
      return std::vector<Array>{operands[0].clone()};
    };
    return register_operator(made);
  }();
  return op;
}

}  // namespace

TEST_CASE("no more runs that nobody waits for are at work than a session allows") {
  SessionModel model;
  model.inputs = {{"x", {f32, {2}}}};
  model.outputs = {{"y", {f32, {2}}}};
  Graph graph;
  graph.set_outputs({graph.add(watched(), {graph.input("x", {f32, {2}})})}, {"y"});
  model.graph = [graph](const Bindings&) { return graph; };
  model.compile.target = "ref";
  const Session session(std::move(model), {.threads = 1});
  std::vector<std::future<std::vector<Array>>> futures;
  for (int i = 0; i < 12; ++i) futures.push_back(session.run_async({Array::full(f32, {2}, i)}));
  for (size_t i = 0; i < futures.size(); ++i) CHECK(futures[i].get()[0].at(1) == static_cast<double>(i));
  CHECK(most == 1);
}
