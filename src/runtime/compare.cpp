#include "runtime/compare.h"

#include <algorithm>

#include <millrace/program.h>

#include "plan/fastest.h"
#include "runtime/run_clock.h"

namespace millrace {
namespace {

constexpr int kRounds = 9;            // after one that warms up
constexpr double kWorthwhile = 0.97;  // of the other's time

Program ready(const Graph& graph, const std::map<std::string, std::string>& choices) {
  CompileOptions options;
  options.choices = choices;
  Program program = Program::compile(graph, options);
  for (int i = 0; i < program.input_count(); ++i)
    program.bind_input(i, timing_numbers(program.input(i).type()));
  return program;
}

}  // namespace

bool runs_faster(const Graph& graph, const Graph& other, const std::map<std::string, std::string>& choices) {
  Program programs[] = {ready(graph, choices), ready(other, choices)};
  int64_t best[] = {INT64_MAX, INT64_MAX};
  for (int round = 0; round <= kRounds; ++round)  // in turns, so that a disturbance meets both
    for (int p = 0; p < 2; ++p) {
      const int64_t begin = clock_now();
      programs[p].run();
      if (round > 0) best[p] = std::min(best[p], clock_now() - begin);
    }
  return static_cast<double>(best[0]) < kWorthwhile * static_cast<double>(best[1]);
}

}  // namespace millrace
