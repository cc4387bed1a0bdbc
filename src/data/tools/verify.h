// Are the samples still what they were?
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/feed.h>

namespace millrace::data {

struct VerifyResult {
  int64_t samples = 0, with_checksum = 0;
  std::vector<BadSample> bad;  // in the order of the samples
};

/// Compares every sample with the CRC-32C in the index beside its file, where there is one (of a file of this
/// size, whenever that was changed), and with the format's own checksums (Dataset::verify).
VerifyResult verify(const Dataset& dataset, const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace millrace::data
