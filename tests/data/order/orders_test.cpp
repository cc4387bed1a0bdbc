#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <numeric>
#include <set>

#include <millrace/error.h>

#include "base/format.h"
#include "data/order/order.h"
#include "support/refusal.h"

using namespace millrace;
using namespace millrace::data;

namespace {

/// Sample i is of the class that `counts` gives it; classes are mixed over the source.
Population population(const std::vector<int64_t>& counts) {
  Population p;
  for (size_t label = 0; label < counts.size(); ++label) {
    p.classes.push_back(std::string(1, static_cast<char>('a' + label)));
    p.labels.insert(p.labels.end(), static_cast<size_t>(counts[label]), static_cast<int64_t>(label));
  }
  p.count = static_cast<int64_t>(p.labels.size());
  for (size_t i = 0; i < p.labels.size(); ++i) std::swap(p.labels[i], p.labels[i * 7919 % p.labels.size()]);
  return p;
}

std::unique_ptr<Order> make(const std::string& text, const Population& p) {
  return parse_order(text).make(p);
}

std::vector<int64_t> epoch_of(const Order& order, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < order.length(); ++i) indices.push_back(order.at(seed, epoch, i).index);
  // A run of places is what they are one by one.
  std::vector<Pick> run(indices.size());
  order.run(seed, epoch, 0, run);
  for (size_t i = 0; i < run.size(); ++i) CHECK(run[i].index == indices[i]);
  return indices;
}

bool is_permutation(std::vector<int64_t> indices) {
  std::sort(indices.begin(), indices.end());
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::string error_of(const std::string& text, const Population& p) {
  return testing::refusal([&] { (void)make(text, p); });
}

}  // namespace

TEST_CASE("shuffles of every kind show each sample once an epoch, in another order the next time") {
  for (const char* text : {"shuffle", "block-shuffle 1 1", "block-shuffle 7 3", "block-shuffle 100 2",
                           "block-shuffle 13 50", "stratified"})
    for (const auto& counts :
         std::vector<std::vector<int64_t>>{{100}, {90, 9, 1}, {33, 33, 34}, {500, 1, 1, 250}}) {
      const auto order = make(text, population(counts));
      const auto first = epoch_of(*order, 5, 0), second = epoch_of(*order, 5, 1),
                 other = epoch_of(*order, 6, 0);
      CHECK_MESSAGE(is_permutation(first), text);
      CHECK_MESSAGE(is_permutation(second), text);
      CHECK(is_permutation(other));
      CHECK(first != second);
      CHECK(first != other);
      CHECK(first == epoch_of(*order, 5, 0));
    }
  CHECK(epoch_of(*make("sequential", population({3, 2})), 1, 4) == std::vector<int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a block shuffle stays within a window of blocks") {
  const auto order = make("block-shuffle 10 4", population({1000}));
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto indices = epoch_of(*order, 1, epoch);
    std::set<int64_t> all;
    for (size_t window = 0; window < indices.size(); window += 40) {
      std::set<int64_t> blocks;
      for (size_t i = window; i < window + 40; ++i) blocks.insert(indices[i] / 10);
      CHECK(blocks.size() == 4);
      all.insert(blocks.begin(), blocks.end());
    }
    CHECK(all.size() == 100);
  }
}

TEST_CASE("each window of a block shuffle has an order of its own") {
  const auto indices = epoch_of(*make("block-shuffle 10 4", population({1000})), 5, 0);
  std::set<std::vector<int64_t>> orders;  // places within the blocks of a window
  for (size_t window = 0; window < 1000; window += 40) {
    std::vector<int64_t> places;
    for (size_t i = window; i < window + 40; ++i) places.push_back(indices[i] % 10);
    orders.insert(places);
  }
  CHECK(orders.size() == 25);
}

TEST_CASE("how well a block shuffle mixes: as docs/data.md says, where samples of a kind lie together") {
  // The variance of a kind's share in a batch, as a multiple of what a true shuffle gives: ten kinds, one
  // behind the other.
  constexpr int64_t count = 100'000, batch = 128, kinds = 10;
  const auto unevenness = [&](const std::string& text) {
    const auto order = make(text, population({count}));
    double sum = 0;
    int batches = 0;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      const auto indices = epoch_of(*order, 1, epoch);
      for (size_t first = 0; first + batch <= indices.size(); first += batch, ++batches) {
        std::vector<double> of_kind(kinds, 0);
        for (size_t i = first; i < first + batch; ++i)
          ++of_kind[static_cast<size_t>(indices[i] * kinds / count)];
        constexpr double fair = static_cast<double>(batch) / kinds;
        for (const double found : of_kind) sum += (found - fair) * (found - fair) / fair / (kinds - 1);
      }
    }
    return sum / batches;
  };
  const auto blocks_of_a_window = [&](double blocks) { return 1 + (batch - 1) / blocks; };
  CHECK(unevenness("shuffle") == doctest::Approx(1).epsilon(0.05));
  CHECK(unevenness("block-shuffle 1000 8") == doctest::Approx(blocks_of_a_window(8)).epsilon(0.15));
  CHECK(unevenness("block-shuffle 100 80") == doctest::Approx(blocks_of_a_window(80)).epsilon(0.15));
  CHECK(unevenness("block-shuffle 10 800") == doctest::Approx(blocks_of_a_window(800)).epsilon(0.15));
  CHECK(unevenness("sequential") > 50);
}

TEST_CASE("class-balanced shows every class equally often, and all samples of the rare ones in turn") {
  const auto order = make("class-balanced", population({900, 90, 10}));
  CHECK(order->length() == 1002);
  const Population p = population({900, 90, 10});
  std::map<int64_t, int> seen;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto indices = epoch_of(*order, 3, epoch);
    for (size_t i = 0; i < indices.size(); i += 3) {
      std::set<int64_t> classes;
      for (size_t k = 0; k < 3; ++k) classes.insert(p.labels[static_cast<size_t>(indices[i + k])]);
      CHECK(classes.size() == 3);
    }
    for (const int64_t index : indices) ++seen[index];
  }
  // 1,002 visits to each class: 900 samples are seen once or twice, 90 and 10 of them 11 and 100 times, give
  // or take one.
  for (const auto& [index, times] : seen) {
    const double wanted =
        1002.0 / std::vector<double>{900, 90, 10}[static_cast<size_t>(p.labels[static_cast<size_t>(index)])];
    CHECK(std::abs(times - wanted) <= 1);
  }
  CHECK(seen.size() == 1000);
  // Each round through a class has an order of its own.
  std::vector<int64_t> rare;
  for (const int64_t index : epoch_of(*order, 3, 0))
    if (p.labels[static_cast<size_t>(index)] == 2) rare.push_back(index);
  CHECK(!std::equal(rare.begin(), rare.begin() + 10, rare.begin() + 10));
}

TEST_CASE("stratified spreads classes so that any run has its share of each") {
  for (const auto& counts :
       std::vector<std::vector<int64_t>>{{700, 200, 100}, {50, 50}, {997, 2, 1}, {10, 20, 30, 40}}) {
    const Population p = population(counts);
    const auto order = make("stratified", p);
    const auto indices = epoch_of(*order, 1, 2);
    for (const size_t run : {size_t{10}, size_t{32}, size_t{64}})
      for (size_t begin = 0; begin + run <= indices.size(); begin += 5) {
        std::vector<int> found(counts.size());
        for (size_t i = begin; i < begin + run; ++i)
          ++found[static_cast<size_t>(p.labels[static_cast<size_t>(indices[i])])];
        for (size_t label = 0; label < counts.size(); ++label) {
          const double share =
              static_cast<double>(run) * static_cast<double>(counts[label]) / static_cast<double>(p.count);
          CHECK(std::abs(found[label] - share) <= 2);
        }
      }
  }
}

TEST_CASE("a quota may be one sample, or very many") {
  const auto order = make("quota a=1 b=1000000000000", population({3, 2}));
  CHECK(order->length() == 1'000'000'000'001);
}

TEST_CASE("a block shuffle may be of blocks of one sample, and have a window of one block") {
  for (const char* text : {"block-shuffle 1 1", "block-shuffle 30 1"}) {
    const auto order = make(text, population({30}));
    std::set<int64_t> seen;
    for (int64_t i = 0; i < order->length(); ++i) seen.insert(order->at(1, 0, i).index);
    CHECK(seen.size() == 30);
  }
  for (const char* text : {"block-shuffle 0 1", "block-shuffle 1 0", "block-shuffle 31 1"})
    CHECK(error_of(text, population({30})) != "");
}

TEST_CASE("quotas are met exactly in every epoch") {
  const Population p = population({900, 90, 10});
  const auto order = make("quota a=30 c=25", p);
  CHECK(order->length() == 55);
  std::map<int64_t, int> seen;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    std::vector<int> counts(3);
    for (const int64_t index : epoch_of(*order, 9, epoch)) {
      ++counts[static_cast<size_t>(p.labels[static_cast<size_t>(index)])];
      ++seen[index];
    }
    CHECK(counts == std::vector<int>{30, 0, 25});
  }
  // 900 visits to 900 samples: each once. 750 to 10: each 75 times.
  for (const auto& [index, times] : seen)
    CHECK(times == (p.labels[static_cast<size_t>(index)] == 0 ? 1 : 75));
}

TEST_CASE("weighted draws follow the column, and importance weights undo it") {
  Population p = population({1000});
  for (int64_t i = 0; i < p.count; ++i) p.values.push_back(i % 10 == 0 ? 0 : static_cast<double>(i % 10));
  const auto weighted = make("weighted score", p), importance = make("importance score", p);
  std::vector<double> counts(10);
  double weights = 0, mean = 0, all = 0;
  constexpr int epochs = 100;
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (int64_t i = 0; i < weighted->length(); ++i) {
      const Pick pick = weighted->at(4, epoch, i), same = importance->at(4, epoch, i);
      CHECK(pick.index == same.index);
      CHECK(pick.weight == 1);
      ++counts[static_cast<size_t>(pick.index % 10)];
      weights += same.weight;
      mean += same.weight * static_cast<double>(pick.index % 10);
      ++all;
    }
  CHECK(counts[0] == 0);
  // Of 100,000 draws, k in 45 go to the samples with k: within five standard deviations.
  for (int k = 1; k < 10; ++k)
    CHECK(std::abs(counts[static_cast<size_t>(k)] - all * k / 45) < 5 * std::sqrt(all * k / 45));
  // The mean of the plain data, as far as it can be drawn: 900 of the 1,000 samples.
  CHECK(weights / all == doctest::Approx(0.9).epsilon(0.02));
  CHECK(mean / all == doctest::Approx(4.5).epsilon(0.02));
}

TEST_CASE("ranks that take every third place see together exactly an epoch") {
  const auto order = make("shuffle", population({100}));
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < 3; ++rank)
    for (int64_t i = rank; i < order->length(); i += 3) all.push_back(order->at(1, 0, i).index);
  CHECK(is_permutation(all));
}

TEST_CASE("orders that cannot be are refused with the way to write them") {
  CHECK(error_of("shufle", population({3})).find("did you mean \"shuffle\"") != std::string::npos);
  CHECK(error_of("", population({3})).find("There are: ") != std::string::npos);
  CHECK(error_of("shuffle 3", population({3})).find("write it as shuffle") != std::string::npos);
  CHECK(error_of("block-shuffle 10", population({30})).find("BLOCKS_OF_A_WINDOW is missing") !=
        std::string::npos);
  CHECK(error_of("block-shuffle 10 x", population({30}))
            .find("BLOCKS_OF_A_WINDOW must be a number from 1 to ") != std::string::npos);
  CHECK(error_of("block-shuffle 31 1", population({30})).find("has only 30 samples") != std::string::npos);
  CHECK(error_of("quota a", population({3})).find("lacks its number") != std::string::npos);
  CHECK(error_of("quota z=3", population({3, 3})).find("there is no class 'z'") != std::string::npos);
  CHECK(error_of("quota a=0", population({3})).find("order \"quota a=0\"") != std::string::npos);
  for (const char* one : {"quota a=1000000000001", "quota b=1000000000001"})
    CHECK(error_of(one, population({3, 3})).find("no whole number from 1 to 1000000000000") !=
          std::string::npos);
  CHECK(error_of("quota b=3", population({3, 0})).find("has no samples") != std::string::npos);
  CHECK(error_of("weighted", population({3})).find("COLUMN is missing; write it as weighted COLUMN") !=
        std::string::npos);
  Population p = population({3});
  p.values = {1, -1, 2};
  CHECK(error_of("weighted x", p).find("sample 1 has -1") != std::string::npos);
  p.values = {0, 0, 0};
  CHECK(error_of("importance x", p).find("all 0") != std::string::npos);
  CHECK(error_of("class-balanced", Population{5, {}, {}, {}}).find("no classes") != std::string::npos);
}

TEST_CASE("orders are listed by place, and a program's own is used like any") {
  std::vector<std::string> names = order_kinds().names();
  std::erase(names, "test-third");
  CHECK(names == std::vector<std::string>{"shuffle", "sequential", "block-shuffle", "class-balanced",
                                          "stratified", "quota", "weighted", "importance"});
  register_order({.name = "test-third",
                  .doc = "one sample alone",
                  .settings = {{"SAMPLE", "which", int64_t{0}, 0, 100}},
                  .make = [](const OrderText& text, const Population&) -> std::unique_ptr<Order> {
                    class One final : public Order {
                     public:
                      explicit One(int64_t sample) : sample_(sample) {}
                      int64_t length() const override { return 1; }
                      Pick at(uint64_t, int64_t, int64_t) const override { return {sample_}; }

                     private:
                      int64_t sample_;
                    };
                    return std::make_unique<One>(text.settings.integer("SAMPLE"));
                  }});
  CHECK(make("test-third 2", population({3}))->at(1, 0, 0).index == 2);
  CHECK(error_of("test-third x", population({3})).find("write it as test-third SAMPLE") != std::string::npos);
  CHECK_THROWS_WITH_AS(register_order({.name = "shuffle", .make = order_kinds().at("shuffle").make}),
                       "there is an order 'shuffle' already", InputError);
}
