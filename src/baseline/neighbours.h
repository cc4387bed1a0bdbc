// Do samples that are nearly alike have the same target?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "baseline/baseline.h"

namespace millrace::baseline {

/// What a model is given of samples, side by side.
struct Features {
  std::vector<float> numbers;
  std::vector<int64_t> ids;
  size_t width = 0, columns = 0;  // of a row
};
Features features_of(Context& context, std::span<const int64_t> samples, bool tests);
/// At most so many of all samples, evenly.
std::vector<int64_t> spread(int64_t all, int64_t most);

/// Of pictures, sounds and texts: what the most similar samples of training have.
Result nearest_samples(Context& context);

/// Of some thousand samples to train on; nothing where samples are no arrays of one size with one target
/// each.
std::optional<Neighbours> look_at_neighbours(Context& context);
/// "1,204 of 3,000 rows have a near duplicate; of those 31 % have another class (any two rows: 36 %)"
std::string neighbours_text(const Neighbours& found);

}  // namespace millrace::baseline
