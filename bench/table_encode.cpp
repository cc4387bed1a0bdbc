// Rows a second of a table: vocabularies learnt, and columns read as the matrices that a model's graph takes.
// `table_encode FILE LABEL`
#include <chrono>
#include <cstdio>
#include <vector>

#include "data/encode/table_encoder.h"
#include "data/encode/table_graph.h"
#include "data/formats/open_dataset.h"

using namespace millrace::data;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: table_encode FILE LABEL\n"), 2;
  double seconds[3] = {1e9, 1e9, 1e9};
  int64_t rows = 0;
  for (int round = 0; round < 3; ++round) {
    const auto now = [] { return std::chrono::steady_clock::now(); };
    const auto since = [&](auto begin) { return std::chrono::duration<double>(now() - begin).count(); };
    auto begin = now();
    const auto dataset = open_dataset(argv[1]);
    seconds[0] = std::min(seconds[0], since(begin));
    TableOptions options;
    options.leave_out = {argv[2]};
    begin = now();
    const TableEncoder encoder = TableEncoder::learn(*dataset, options);
    seconds[1] = std::min(seconds[1], since(begin));
    begin = now();
    rows = dataset->count();
    std::vector<double> numbers(static_cast<size_t>(rows * raw_numbers(encoder.dense())));
    std::vector<int64_t> ids(static_cast<size_t>(rows) * encoder.categories().size());
    encoder.read_raw(*dataset, 0, rows, numbers.data(), ids.data());
    seconds[2] = std::min(seconds[2], since(begin));
  }
  const char* const what[] = {"open", "learn", "encode"};
  for (int i = 0; i < 3; ++i)
    std::printf("%-8s %6.3f s  %7.2f million rows/s\n", what[i], seconds[i],
                static_cast<double>(rows) / seconds[i] / 1e6);
  return 0;
}
