// What neighbouring augmentations do to places and single values, collected and made in one pass over the
// pixels.
#pragma once

#include <array>
#include <cstdint>

#include <millrace/picture.h>

namespace millrace::data {

/// What stands outside of a picture. Reflection does not repeat the border pixel (as numpy's and PyTorch's
/// "reflect").
enum class Border { reflect, zero, edge };

/// For each value what becomes of it.
using Table = std::array<uint8_t, 256>;

/// First a window, then the mirror, then a table.
class Pass {
 public:
  bool empty() const { return !moved_ && !mirrored_ && !looks_up_; }
  /// The picture seen through a window moved `down` rows and `right` columns (negative: up, left), with
  /// reflection by less than its size. False, and nothing is noted, where something else comes before it.
  bool window(int down, int right, Border border);
  void mirror() { mirrored_ = !mirrored_; }
  /// For all channels, after those that are noted already.
  void look_up(const Table& table);
  /// `in` and `out`: planes that do not overlap.
  void run(const Extent& extent, const uint8_t* in, uint8_t* out) const;
  /// Of tables alone.
  void run_in_place(const Extent& extent, uint8_t* planes) const;

 private:
  void moved_plane(const Extent& extent, const uint8_t* in, uint8_t* out) const;

  bool moved_ = false, mirrored_ = false, looks_up_ = false;
  int down_ = 0, right_ = 0;
  Border border_ = Border::reflect;
  Table table_{};
};

}  // namespace millrace::data
