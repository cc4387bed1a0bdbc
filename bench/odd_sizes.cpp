// GFLOP/s of matrix products of odd sizes beside those of the nearest round ones, measured in turns.
//
//   odd_sizes [fp32|bf16]
#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <string>
#include <vector>

#include <millrace/program.h>

#include "ops/build.h"

using namespace millrace;

namespace {

using Clock = std::chrono::steady_clock;

struct Sizes {
  int64_t m, k, n;
  double operations() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  }
  std::string text() const { return fmt::format("{} × {} × {}", m, k, n); }
};

/// x [m × k] · w [n × k]ᵀ, as layers have it.
Program product(const Sizes& s, const std::string& precision) {
  Graph graph;
  const Value x = graph.input("x", {f32, {s.m, s.k}}), w = graph.input("w", {f32, {s.n, s.k}});
  graph.set_outputs({ops::Build(graph).matmul(x, w, false, true)});
  CompileOptions options;
  options.precision = precision;
  Program program = Program::compile(graph, options);
  for (int i = 0; i < 2; ++i) {
    int64_t at = 0;
    for (float& value : program.input(i).as<float>()) value = static_cast<float>(at++ % 101) / 101 - 0.5f;
  }
  return program;
}

double seconds(Program& program) {
  const auto begin = Clock::now();
  program.run();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string precision = argc > 1 ? argv[1] : "fp32";
  const std::pair<Sizes, Sizes> pairs[] = {
      {{1024, 768, 30522}, {1024, 768, 30528}}, {{30522, 1024, 768}, {30528, 1024, 768}},
      {{1024, 30522, 768}, {1024, 30528, 768}}, {{4096, 97, 512}, {4096, 96, 512}},
      {{4096, 512, 97}, {4096, 512, 96}},       {{97, 4096, 512}, {96, 4096, 512}},
  };
  for (const auto& [odd, round] : pairs) {
    Program programs[] = {product(odd, precision), product(round, precision)};
    std::vector<double> times[2];
    for (const int repeats = odd.operations() > 2e9 ? 11 : 101; static_cast<int>(times[1].size()) < repeats;)
      for (int i = 0; i < 2; ++i) times[i].push_back(seconds(programs[i]));
    double speed[2];
    for (int i = 0; i < 2; ++i) {
      std::sort(times[i].begin(), times[i].end());
      speed[i] = (i == 0 ? odd : round).operations() / times[i][times[i].size() / 2] * 1e-9;
    }
    fmt::print("{} {}: {:.0f} GFLOP/s, {}: {:.0f} GFLOP/s\n", precision, odd.text(), speed[0], round.text(),
               speed[1]);
  }
  return 0;
}
