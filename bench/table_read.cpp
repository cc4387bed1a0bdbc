// How fast tables are opened (rows found, kinds of columns decided by all values) and read (all columns as
// arrays).
//
//   table_read FILE [rounds]
#include <chrono>
#include <cstdlib>
#include <fmt/core.h>
#include <numeric>

#include <millrace/dataset.h>

#include "base/parallel_for.h"
#include "data/formats/open_dataset.h"

using namespace millrace::data;

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: table_read FILE [rounds]\n");
    return 2;
  }
  const auto seconds = [](auto from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  try {
    for (int round = 0; round < (argc > 2 ? std::atoi(argv[2]) : 3); ++round) {
      const auto start = std::chrono::steady_clock::now();
      const auto dataset = open_dataset(argv[1]);
      const double opened = seconds(start);
      std::vector<size_t> columns(dataset->columns().size());
      std::iota(columns.begin(), columns.end(), size_t{0});
      constexpr int64_t run = 4096;
      millrace::parallel_for((dataset->count() + run - 1) / run, 0, [&](int64_t k) {
        thread_local std::vector<ColumnValues> values;
        (void)dataset->read_run(k * run, std::min(run, dataset->count() - k * run), columns, values);
      });
      const double all = seconds(start);
      uint64_t bytes = 0;
      for (const auto& file : dataset->files()) bytes += file->size();
      fmt::print("{} rows, {} columns: opened {:.3f} s ({:.2f} GB/s), and read {:.3f} s ({:.2f} GB/s)\n",
                 dataset->count(), columns.size(), opened, 1e-9 * static_cast<double>(bytes) / opened, all,
                 1e-9 * static_cast<double>(bytes) / all);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
