// What is proved of whole training steps, of each kind of network: a replay allocates nothing, and the number
// of threads changes no bit.
#include <doctest/doctest.h>

#include "base/thread_pool.h"
#include "support/allocations.h"
#include "support/graphs.h"
#include "support/small_steps.h"

using namespace millrace;

TEST_CASE("the memory that a process asks for is counted, whoever asks") {
  if (!test::allocations_are_counted()) return;
  const test::CountAllocations allocations;
  auto memory = std::make_unique<char[]>(1000);
  void* volatile plain = std::malloc(2000);
  std::free(plain);
  const long kept = allocations.kept();
  memory.reset();
  const long rest = allocations.kept();
  const auto places = allocations.places();
  CHECK(kept >= 1000);
  CHECK(kept < 1100);
  CHECK(rest == 0);
  REQUIRE(places.size() == 1);
  CHECK(places[0].count == 2);
  CHECK(places[0].largest == 2000);
  CHECK(places[0].library == "millrace_tests");
}

TEST_CASE("a compiled training step replays without allocating") {
  if (!test::allocations_are_counted()) {
    MESSAGE("skipped: a sanitizer's allocator cannot be counted");
    return;
  }
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> choices;  // timed once
  const auto precisions = test::precisions_here({"fp32", "bf16", "bf16-pure", "fp16"});
  for (const int threads : {1, 2, 5}) {
    ThreadPool::set_default_threads(threads);
    for (const std::string& precision : precisions) {
      for (const std::string& network : test::small_networks()) {
        CAPTURE(threads);
        CAPTURE(precision);
        CAPTURE(network);
        test::SmallStep small = test::make_small_step(network, precision, choices[{precision, network}]);
        choices[{precision, network}] = small.step->program().choices();
        for (int i = 0; i < 2; ++i) small.step->run(1e-3);
        long expected = -1;
        for (int i = 0; i < 3; ++i) {
          const test::CountAllocations allocations;
          small.step->program().run();
          const auto places = allocations.places();
          // OpenMP's library notes a thread when oneDNN first runs on it, which may be late.
          CHECK(allocations.kept() <= (threads - 1) * 512);
          long theirs = 0;
          for (const auto& place : places) {
            CAPTURE(place.library);
            // oneDNN collects the arguments of each call in small blocks, and packs some bf16 operands in
            // memory of its own; it gives all of it back before the call returns.
            if (place.library.starts_with("libgomp") && threads > 1) {
              CHECK(place.largest <= 512);
            } else if (place.library.starts_with("libdnnl")) {
              theirs = place.count;
              CHECK(place.largest <= (256 << 10));
            } else {
              CHECK(place.count == 0);
            }
          }
          if (threads == 1 && i > 0) CHECK(theirs == expected);
          expected = theirs;
        }
      }
    }
  }
  ThreadPool::set_default_threads(0);
}

TEST_CASE("the number of threads changes no bit of a training") {
  for (const std::string& network : test::small_networks()) {
    CAPTURE(network);
    std::map<std::string, std::string> choices;
    std::map<std::string, Array> expected;
    std::vector<double> losses;
    for (const int threads : {1, 2, 5}) {
      CAPTURE(threads);
      ThreadPool::set_default_threads(threads);
      test::SmallStep small = test::make_small_step(network, "fp32", choices);
      choices = small.step->program().choices();
      for (size_t i = 0; i < 6; ++i) {
        small.step->run(0.01);
        if (threads == 1)
          losses.push_back(small.step->loss());
        else
          CHECK(small.step->loss() == losses[i]);
      }
      const auto values = small.values();
      if (threads == 1) expected = values;
      REQUIRE(values.size() == expected.size());
      for (const auto& [name, array] : values) CHECK_MESSAGE(array.identical(expected.at(name)), name);
    }
    CHECK(losses.back() < losses.front());  // it learns: what is compared are not constants
  }
  ThreadPool::set_default_threads(0);
}
