// Do samples that are nearly alike have the same target?
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace millrace::baseline {

class Context;

struct Neighbours {
  int64_t looked = 0;  // samples whose nearest neighbour was looked for
  int64_t near = 0;    // of them, those with one that is nearly the same
  /// How far their targets differ, and how far those of any two samples: shares of pairs of different
  /// classes, or mean squared differences of numbers. Of near duplicates where there are enough, else of
  /// nearest neighbours.
  double disagreement = 0, chance = 0;
  bool duplicates = false;
  /// 0: they agree; 1: they differ as any two do.
  double ratio() const { return chance > 0 ? disagreement / chance : 0; }
};

/// Of some thousand samples to train on; nothing where samples are no arrays of one size with one target
/// each.
std::optional<Neighbours> look_at_neighbours(Context& context);
/// "1,204 of 3,000 rows have a near duplicate; of those 31 % have another class (any two rows: 36 %)"
std::string neighbours_text(const Neighbours& found);

}  // namespace millrace::baseline
