#include "base/counters.h"

#include <doctest/doctest.h>
#include <linux/perf_event.h>
#include <thread>

#include "base/thread_pool.h"

using namespace millrace;

TEST_CASE("counters add up all threads, and events that are not there are left out") {
  ThreadPool pool(3);
  const Counters counters({{"time", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}, {"nothing", 12345, 0}});
  for (const std::string& name : counters.names()) CHECK(name == "time");
  if (counters.names().empty()) {
    MESSAGE("skipped: the kernel hands out no counters here");
    return;
  }
  const auto work = [](int64_t) {
    double x = 1;
    for (int i = 0; i < 20000000; ++i) x = x * 1.0000001 + 1e-9;
    volatile double sink = x;
    (void)sink;
  };
  const double zero = counters.read()[0];
  work(0);
  const double alone = counters.read()[0] - zero;
  CHECK(alone > 0);
  pool.parallel(6, work);
  CHECK(counters.read()[0] - zero - alone > 2 * alone);
}

TEST_CASE("hardware counters are either there and count, or silently absent") {
  const Counters counters;
  const std::vector<double> before = counters.read();
  CHECK(before.size() == counters.names().size());
  volatile int x = 0;
  for (int i = 0; i < 1000000; ++i) x = x + 1;
  const std::vector<double> after = counters.read();
  for (size_t i = 0; i < after.size(); ++i)
    if (counters.names()[i] == "instructions") CHECK(after[i] - before[i] > 1000000);
}
