// millrace bench data: how fast a source becomes batches.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::cli {

struct BenchDataOptions {
  std::string source, augment;  // augment: separated by commas, instead of random-resized-crop and flip
  int64_t size = 224, batch = 64;
  double seconds = 2;
  bool plain = false, cached = false, floats = false;
};

/// Measures the loader and, by turns with it, decoding and resizing alone on as many threads; prints both.
/// The last word is the loader's pictures per second.
int bench_data(const BenchDataOptions& options);

}  // namespace millrace::cli
