#include "base/thread_pool.h"

#include <atomic>
#include <doctest/doctest.h>
#include <numeric>
#include <stdexcept>
#include <vector>

using millrace::ThreadPool;

TEST_CASE("thread pool runs every chunk exactly once, for any number of threads") {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int64_t chunks : {0, 1, 2, 17, 1000}) {
      std::vector<std::atomic<int>> hits(chunks);
      for (int repeat = 0; repeat < 50; ++repeat)
        pool.parallel(chunks, [&](int64_t chunk) { ++hits[chunk]; });
      for (auto& hit : hits) CHECK(hit == 50);
    }
  }
}

TEST_CASE("thread pool rethrows a chunk's exception and stays usable") {
  ThreadPool pool(3);
  CHECK_THROWS_AS(pool.parallel(10,
                                [](int64_t chunk) {
                                  if (chunk == 7) throw std::runtime_error("7");
                                }),
                  std::runtime_error);
  std::atomic<int> sum{0};
  pool.parallel(10, [&](int64_t chunk) { sum += static_cast<int>(chunk); });
  CHECK(sum == 45);
}

TEST_CASE("thread pool runs nested loops serially") {
  ThreadPool pool(4);
  std::atomic<int> sum{0};
  pool.parallel(8, [&](int64_t) { pool.parallel(8, [&](int64_t) { ++sum; }); });
  CHECK(sum == 64);
}
