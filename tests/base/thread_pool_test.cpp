#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/parallel_copy.h"
#include "support/temp_folder.h"

using millrace::copy_in_parts;
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

TEST_CASE("thread pool serves callers from several threads, inside steps and outside") {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        const ThreadPool::Step step(pool);
        pool.parallel(1 + repeat % 7, [&](int64_t chunk) { sum += chunk + 1; });
      }
    });
  for (std::thread& caller : callers) caller.join();
  int64_t expected = 0;
  for (int repeat = 0; repeat < 200; ++repeat) expected += (1 + repeat % 7) * (2 + repeat % 7) / 2;
  CHECK(sum == 4 * expected);
}

TEST_CASE("a loop of one chunk runs on its caller") {
  ThreadPool pool(4);
  std::thread::id ran;
  pool.parallel(1, [&](int64_t) { ran = std::this_thread::get_id(); });
  CHECK(ran == std::this_thread::get_id());
}

TEST_CASE("workers that were asleep take part again") {
  ThreadPool pool(2);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> inside{0};
    // Both chunks must be running at once for either to end.
    pool.parallel(2, [&](int64_t) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
    CHECK(inside == 2);
  }
}

TEST_CASE("a copy in parts is the whole, for any size and number of threads") {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{8193}, size_t{1000003}}) {
      std::vector<uint8_t> from(size), to(size + 1, 7);
      for (size_t i = 0; i < size; ++i) from[i] = static_cast<uint8_t>(i * 31 + 1);
      copy_in_parts(pool, to.data(), from.data(), size);
      CHECK(std::equal(from.begin(), from.end(), to.begin()));
      CHECK(to[size] == 7);
    }
  }
}

TEST_CASE("the threads of an idle pool sleep, even within a step") {
  ThreadPool pool(4);
  const ThreadPool::Step step(pool);
  pool.parallel(100, [](int64_t) {});
  // States of all threads of the process but this one; those that spin are running, for as long as one looks.
  const auto running = [] {
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (task.path().filename().string() == std::to_string(::gettid())) continue;
      std::string line;
      std::getline(std::ifstream(task.path() / "stat"), line);
      const size_t end = line.rfind(')');
      count += end != std::string::npos && end + 2 < line.size() && line[end + 2] == 'R';
    }
    return count;
  };
  int asleep = 0;
  for (int look = 0; look < 3000 && asleep < 5; ++look) {
    asleep = running() == 0 ? asleep + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(asleep == 5);  // five looks, one after the other
}

TEST_CASE("CPU quotas of all control groups above the process hold") {
  const millrace::testing::TempFolder folder;
  namespace fs = std::filesystem;
  const auto write = [&](const fs::path& path, const std::string& text) {
    fs::create_directories((folder.path() / path).parent_path());
    std::ofstream(folder.path() / path) << text;
  };
  const std::string root = (folder.path() / "cgroup").string(), self = (folder.path() / "self").string();
  CHECK(millrace::cgroup_cpus(root, self) == 0);
  write("self", "0::/outer/inner\n");
  write("cgroup/outer/inner/cpu.max", "max 100000\n");
  CHECK(millrace::cgroup_cpus(root, self) == 0);
  write("cgroup/outer/cpu.max", "150000 100000\n");
  CHECK(millrace::cgroup_cpus(root, self) == 1.5);
  write("cgroup/outer/inner/cpu.max", "50000 100000\n");
  CHECK(millrace::cgroup_cpus(root, self) == 0.5);
  write("self", "7:memory:/outer\n3:cpu,cpuacct:/one\n");
  write("cgroup/cpu/one/cpu.cfs_quota_us", "300000\n");
  write("cgroup/cpu/one/cpu.cfs_period_us", "100000\n");
  CHECK(millrace::cgroup_cpus(root, self) == 3);
}

TEST_CASE("callers do not wait for each other's loops") {
  ThreadPool pool(3);
  std::atomic<bool> other_done{false};
  std::atomic<int> held{0};
  std::thread other;
  // The first loop ends only when that of another caller is done.
  const ThreadPool::Step step(pool);
  pool.parallel(3, [&](int64_t chunk) {
    ++held;
    if (chunk == 0)
      other = std::thread([&] {
        const ThreadPool::Step own(pool);
        std::atomic<int> sum{0};
        for (int i = 0; i < 100; ++i) pool.parallel(5, [&](int64_t) { ++sum; });
        CHECK(sum == 500);
        other_done = true;
      });
    while (!other_done) std::this_thread::yield();
  });
  other.join();
  CHECK(held == 3);
}

TEST_CASE("callers and those who help them are no more than the pool has threads") {
  ThreadPool pool(3);
  std::atomic<int> inside{0}, most{0};
  std::vector<std::thread> callers;
  std::atomic<int> begun{0};
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      const ThreadPool::Step step(pool);
      ++begun;
      while (begun < 3) std::this_thread::yield();
      for (int i = 0; i < 30; ++i)
        pool.parallel(7, [&](int64_t) {
          const int now = ++inside;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          // Whoever may help has the time to come.
          std::this_thread::sleep_for(std::chrono::microseconds(300));
          --inside;
        });
      ++begun;
      while (begun < 6) std::this_thread::yield();  // nobody leaves before all are done
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(most <= 3);
}

TEST_CASE("a step may have some of the pool's threads") {
  ThreadPool pool(4);
  for (const int most : {1, 2, 3}) {
    std::atomic<int> inside{0}, seen{0};
    const ThreadPool::Step step(pool, most);
    for (int i = 0; i < 100; ++i)
      pool.parallel(16, [&](int64_t) {
        const int now = ++inside;
        for (int before = seen; before < now && !seen.compare_exchange_weak(before, now);) {
        }
        std::this_thread::yield();
        --inside;
      });
    CHECK(seen <= most);
  }
  // Outside of it all take part again.
  std::atomic<int> inside{0};
  pool.parallel(4, [&](int64_t) {
    ++inside;
    while (inside < 4) std::this_thread::yield();
  });
  CHECK(inside == 4);
}
