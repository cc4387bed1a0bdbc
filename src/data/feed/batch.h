// A batch of pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/codecs/pictures/extent.h"
#include "data/feed/cursor.h"
#include "data/feed/loader_options.h"

namespace millrace::data {

struct Batch {
  std::vector<uint8_t> pictures;   // [batch, C, H, W]
  std::vector<int64_t> labels;     // [batch], indices into the source's classes
  std::vector<int64_t> indices;    // [batch], of the samples in the source; -1 where padded
  std::vector<std::string> names;  // [valid], of samples of a stream; else empty: the source knows them
  /// Where samples are mixed: [batch], the class of what is mixed in, and the share that each sample keeps of itself. Else
  /// empty.
  std::vector<int64_t> mixed_labels;
  std::vector<float> mix;
  /// [batch], of the samples in the loss, where the loader is weighted(); else empty.
  std::vector<float> weights;
  /// Samples that count; the rest of a padded batch is black pictures of class 0.
  int64_t valid = 0;
  /// Where the batch begins; of a stream without the state.
  Cursor start;
};

/// Of a batch of pictures of that size, at most.
inline int64_t batch_bytes(const LoaderOptions& options, const Extent& extent) {
  constexpr int64_t others =
      2 * sizeof(int64_t) + sizeof(int64_t) + 2 * sizeof(float);  // labels, indices, mix, weights
  return options.batch * (static_cast<int64_t>(extent.bytes()) + others);
}

}  // namespace millrace::data
