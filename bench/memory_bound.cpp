// GB/s of operations that memory bounds, at sizes from the caches to RAM: one JSON object a line, for
// bench/peers/memory_bound.py, which puts PyTorch's compiler beside it.
//
//   memory_bound [seconds each] [operation]
//
// Bytes are what must be read and written at least: the operands and results of the whole operation
// (BatchNorm's forward pass reads its input twice).
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fmt/core.h>
#include <functional>
#include <string>
#include <vector>

#include <millrace/program.h>

#include "autodiff/gradient.h"
#include "ops/build.h"
#include "runtime/machine.h"

using namespace millrace;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t width = 1024;  // of rows; channels of pictures are 64

struct Made {
  Graph graph;
  std::vector<Value> outputs;
  std::map<int, int> donations = {};
};

/// The results of `forward`, or the gradients of its operands for a given gradient of the first result.
Made make(bool backward, const std::vector<Type>& operands,
          const std::function<Value(Graph&, const std::vector<Value>&)>& forward) {
  Made made;
  std::vector<Value> inputs;
  for (const Type& type : operands)
    inputs.push_back(made.graph.input(fmt::format("x{}", inputs.size()), type));
  const Value y = forward(made.graph, inputs);
  if (!backward) {
    made.outputs = {y};
    return made;
  }
  const std::vector<Value> seeds = {made.graph.input("gradient", made.graph.type(y))}, results = {y};
  std::vector<Value> wanted;
  for (const Value& input : inputs)
    if (made.graph.type(input).dtype == f32) wanted.push_back(input);
  made.outputs = gradients(made.graph, results, seeds, wanted);
  return made;
}

Made make_adam(int64_t count) {
  Made made;
  ops::Build b(made.graph);
  const Type type{f32, {count}};
  const Value p = made.graph.input("p", type), m = made.graph.input("m", type),
              v = made.graph.input("v", type), g = made.graph.input("g", type);
  const Value m1 = b.add(b.mul(m, 0.9), b.mul(g, 0.1)),
              v1 = b.add(b.mul(v, 0.999), b.mul(b.mul(g, g), 0.001));
  made.outputs = {b.sub(p, b.mul(b.div(m1, b.add(b.unary("sqrt", v1), 1e-8)), 1e-3)), m1, v1};
  made.donations = {{0, 0}, {1, 1}, {2, 2}};
  return made;
}

struct Case {
  std::string name;
  double passes;  // over the elements, reading or writing
  std::function<Made(int64_t)> make;
};

std::vector<Case> cases() {
  const auto rows = [](int64_t count) { return Type{f32, {count / width, width}}; };
  const auto pictures = [](int64_t count) { return Type{f32, {count / (64 * 16 * 16), 64, 16, 16}}; };
  const Type line{f32, {width}}, channels{f32, {64}};
  std::vector<Case> all;
  for (const bool back : {false, true}) {
    const std::string suffix = back ? " backward" : "";
    all.push_back({"gelu" + suffix, back ? 3.0 : 2.0, [=](int64_t n) {
                     return make(back, {rows(n)},
                                 [](Graph& g, const auto& x) { return g.add("gelu", {x[0]}); });
                   }});
    all.push_back({"softmax" + suffix, back ? 3.0 : 2.0, [=](int64_t n) {
                     return make(back, {rows(n)},
                                 [](Graph& g, const auto& x) { return g.add("softmax", {x[0]}); });
                   }});
    all.push_back({"layer norm" + suffix, back ? 3.0 : 2.0, [=](int64_t n) {
                     return make(back, {rows(n), line, line}, [](Graph& g, const auto& x) {
                       return g.add("layer_norm", {x[0], x[1], x[2]});
                     });
                   }});
    all.push_back({"batch norm" + suffix, back ? 5.0 : 3.0, [=](int64_t n) {
                     return make(back, {pictures(n), channels, channels}, [](Graph& g, const auto& x) {
                       return g.add("batch_norm", {x[0], x[1], x[2]});
                     });
                   }});
    all.push_back({"cross-entropy" + suffix, back ? 2.0 : 1.0, [=](int64_t n) {
                     return make(back, {rows(n), {i64, {n / width}}}, [](Graph& g, const auto& x) {
                       return g.add("cross_entropy", {x[0], x[1]});
                     });
                   }});
  }
  all.push_back({"adam", 7.0, make_adam});
  return all;
}

double gb_per_second(const Case& c, int64_t count, double seconds) {
  Made made = c.make(count);
  made.graph.set_outputs(made.outputs);
  Program program = Program::compile(made.graph, {.donations = made.donations});
  for (int i = 0; i < program.input_count(); ++i)
    for (int64_t k = 0; k < program.input(i).count(); ++k)
      if (program.input(i).dtype() == f32)
        program.input(i).as<float>()[static_cast<size_t>(k)] =
            static_cast<float>(k * 7919 % 1000) / 500 - 0.9F;
      else
        program.input(i).set_int(k, k % width);
  for (int i = 0; i < 3; ++i) program.run();
  int64_t runs = 0;
  const auto begin = Clock::now();
  double spent = 0;
  do {
    program.run();
    ++runs;
    spent = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (spent < seconds);
  return c.passes * 4 * static_cast<double>(count * runs) / spent / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  const Machine machine = this_machine();
  for (const auto& level : machine.levels)
    fmt::print("{{\"limit\": \"{}\", \"gb_per_s\": {:.1f}}}\n", level.name, level.gb_per_s);
  for (const Case& c : cases()) {
    if (argc > 2 && c.name != argv[2]) continue;
    for (const int64_t count :
         {int64_t{1} << 16, int64_t{1} << 18, int64_t{1} << 20, int64_t{1} << 22, int64_t{1} << 25})
      fmt::print("{{\"op\": \"{}\", \"elements\": {}, \"passes\": {}, \"gb_per_s\": {:.1f}}}\n", c.name,
                 count, c.passes, gb_per_second(c, count, seconds));
  }
}
