// Rows a second through boosted trees: the operator tree_ensemble beside XGBoost's own predictions, of the
// same trees and rows, with as many threads. `trees [ROUNDS [DEPTH [COLUMNS]]]`
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>
#include <xgboost/c_api.h>

#include <millrace/program.h>
#include <millrace/random.h>

#include "base/thread_pool.h"
#include "nn/models/boosted_round.h"

using namespace millrace;

namespace {

void require(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "%s\n", XGBGetLastError());
  std::exit(1);
}

/// The median of some runs, in seconds.
double seconds_of(const std::function<void()>& run) {
  std::vector<double> times;
  double spent = 0;
  run();
  while (times.size() < 5 || (spent < 1 && times.size() < 1000)) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    spent += times.back();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

Array drawn(int64_t rows, int64_t columns, uint64_t seed) {
  Array x(f32, {rows, columns});
  RandomStream random(seed, 0, 0);
  for (float& value : x.as<float>()) value = static_cast<float>(random.uniform());
  return x;
}

std::string interface_of(const Array& x) {
  char text[200];
  std::snprintf(text, sizeof text, R"({"data":[%zu,true],"shape":[%lld,%lld],"typestr":"<f4","version":3})",
                reinterpret_cast<size_t>(x.data()), static_cast<long long>(x.shape()[0].size()),
                static_cast<long long>(x.shape()[1].size()));
  return text;
}

template <typename T>
Array array_of(DType dtype, const std::vector<T>& values) {
  Array array(dtype, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), array.as<T>().begin());
  return array;
}

/// The arrays of tree_ensemble, from the booster's model.
std::vector<Array> arrays_of(BoosterHandle booster) {
  bst_ulong length = 0;
  const char* text = nullptr;
  require(XGBoosterSaveModelToBuffer(booster, R"({"format":"json"})", &length, &text));
  std::vector<int32_t> column, left, root;
  std::vector<float> threshold;
  std::vector<uint8_t> missing;
  for (const nn::models::BoostedTree& tree : nn::models::boosted_trees({text, length})) {
    const auto first = static_cast<int32_t>(column.size());
    root.push_back(first);
    column.insert(column.end(), tree.column.begin(), tree.column.end());
    threshold.insert(threshold.end(), tree.threshold.begin(), tree.threshold.end());
    missing.insert(missing.end(), tree.missing.begin(), tree.missing.end());
    for (const int32_t child : tree.left) left.push_back(child == 0 ? 0 : first + child);
  }
  return {array_of(i32, column),      array_of(f32, threshold), array_of(i32, left),
          array_of(boolean, missing), array_of(i32, root),      Array(f32, {1})};
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 300, depth = argc > 2 ? std::atoi(argv[2]) : 6;
  const int64_t columns = argc > 3 ? std::atoi(argv[3]) : 100;
  const Array x = drawn(20000, columns, 1);
  std::vector<float> labels;
  for (int64_t row = 0; row < 20000; ++row) {
    const float* const at = x.as<float>().data() + row * columns;
    labels.push_back(std::sin(9 * at[0]) * at[1] + at[2] * at[3] + at[4] * (at[5] > .5f));
  }
  DMatrixHandle training = nullptr;
  BoosterHandle booster = nullptr;
  require(XGDMatrixCreateFromMat(x.as<float>().data(), 20000, static_cast<bst_ulong>(columns),
                                 std::numeric_limits<float>::quiet_NaN(), &training));
  require(XGDMatrixSetFloatInfo(training, "label", labels.data(), labels.size()));
  require(XGBoosterCreate(&training, 1, &booster));
  const std::string threads = std::to_string(ThreadPool::global().threads()), deep = std::to_string(depth);
  for (const auto& [key, value] : {std::pair<const char*, const char*>{"tree_method", "hist"},
                                   {"base_score", "0"},
                                   {"learning_rate", "0.1"},
                                   {"max_depth", deep.c_str()},
                                   {"nthread", threads.c_str()}})
    require(XGBoosterSetParam(booster, key, value));
  for (int i = 0; i < rounds; ++i) require(XGBoosterUpdateOneIter(booster, i, training));
  const std::vector<Array> trees = arrays_of(booster);
  std::printf("%d trees of %lld nodes, %lld columns, %s threads\n", rounds,
              static_cast<long long>(trees[0].count()), static_cast<long long>(columns), threads.c_str());
  for (const int64_t rows : {int64_t{1}, int64_t{100}, int64_t{16384}}) {
    const Array some = drawn(rows, columns, 2);
    std::vector<Type> types = {some.type()};
    for (const Array& each : trees) types.push_back(each.type());
    Graph graph;
    std::vector<Value> inputs;
    for (size_t i = 0; i < types.size(); ++i)
      inputs.push_back(graph.input("x" + std::to_string(i), types[i]));
    graph.set_outputs({graph.add("tree_ensemble", inputs)});
    Program program = Program::compile(graph);
    program.bind_input(0, some);
    for (size_t i = 0; i < trees.size(); ++i) program.bind_input(static_cast<int>(i + 1), trees[i]);
    const double own = seconds_of([&] { program.run(); });
    const std::string values = interface_of(some);
    const char* const config =
        R"({"type":1,"training":false,"iteration_begin":0,"iteration_end":0,"missing":NaN,"strict_shape":false,"cache_id":0})";
    const float* told = nullptr;
    const double theirs = seconds_of([&] {
      const bst_ulong* shape = nullptr;
      bst_ulong dimensions = 0;
      require(
          XGBoosterPredictFromDense(booster, values.c_str(), config, nullptr, &shape, &dimensions, &told));
    });
    double away = 0;
    for (int64_t row = 0; row < rows; ++row)
      away = std::max<double>(away, std::abs(program.output(0).at(row) - told[row]));
    std::printf("%6lld rows  millrace %12.0f rows/s  xgboost %12.0f rows/s  %6.2f times as fast, %g apart\n",
                static_cast<long long>(rows), static_cast<double>(rows) / own,
                static_cast<double>(rows) / theirs, theirs / own, away);
  }
  return 0;
}
