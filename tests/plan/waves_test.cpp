#include <doctest/doctest.h>
#include <vector>

#include <millrace/random.h>

#include "backend/ref/evaluate.h"
#include "base/thread_pool.h"
#include "passes/pass.h"
#include "plan/plan.h"
#include "support/random_graph.h"
#include "target/device.h"

using namespace millrace;

TEST_CASE("launches of one wave do not depend on each other, and none comes before what it depends on") {
  RandomStream random(5, 1);
  for (int round = 0; round < 100; ++round) {
    const int count = 1 + static_cast<int>(random.below(40));
    std::vector<std::vector<int>> after(count);
    std::vector<double> small(count);
    for (int i = 0; i < count; ++i) {
      for (int j = i + 1; j < count; ++j)
        if (random.below(12) == 0) after[i].push_back(j);
      small[i] = random.below(4) == 0 ? 0 : 1000.0 * (1 + random.below(60));
    }
    const std::vector<int> wave = form_waves(after, small);
    for (int i = 0; i < count; ++i) {
      for (const int later : after[i]) CHECK(wave[i] < wave[later]);
      for (int j = 0; j < count; ++j)
        if (i != j && small[i] == 0) CHECK(wave[i] != wave[j]);
    }
  }
}

TEST_CASE("small independent launches become one, a large one stays alone") {
  CHECK(form_waves({{}, {}, {}, {}}, {1, 1, 0, 1}) == std::vector<int>{0, 0, 1, 0});
  // A chain, and beside it something for its gaps.
  CHECK(form_waves({{1}, {2}, {}, {}}, {1, 1, 1, 1}) == std::vector<int>{0, 1, 2, 0});
}

TEST_CASE("no launch of a wave writes where another one reads or writes") {
  const Target& target = device_named("cpu").target();
  int together = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Graph graph = run_passes(test::random_graph(seed, 40).graph, {target, "fp32", ref::evaluate_node});
    PlanOptions options;
    options.chains = true;
    const Plan plan = make_plan(choose_layouts(graph, target), target, options, ThreadPool::global());
    const auto apart = [&](int a, int b) {
      if (a < 0 || b < 0) return true;
      const Storage &x = plan.storages[a], &y = plan.storages[b];
      if (x.kind != StorageKind::arena || y.kind != StorageKind::arena || x.bytes == 0 || y.bytes == 0)
        return true;
      return x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset;
    };
    for (size_t l = 0; l < plan.launches.size(); ++l)
      for (size_t k = 0; k < plan.launches.size(); ++k) {
        const PlannedLaunch &writer = plan.launches[l], &other = plan.launches[k];
        if (l == k || writer.wave != other.wave || writer.chain >= 0) continue;
        ++together;
        std::vector<int> written = writer.results, used = other.operands;
        written.push_back(writer.scratch);
        used.insert(used.end(), other.results.begin(), other.results.end());
        used.push_back(other.scratch);
        bool all = true;
        for (const int a : written)
          for (const int b : used) all = all && apart(a, b);
        CHECK(all);
      }
  }
  CHECK(together > 100);
}
