// Ways of looking at pictures for test-time augmentation.
#pragma once

#include <string>

#include <millrace/array.h>

namespace millrace::task {

/// Of "none", "flip" (the pictures and their mirror images) and "shift" (both also shifted by a pixel, up
/// left and down right, as airbench does).
int picture_views(const std::string& tta);
/// Pictures u8 [N, C, H, W] as way number `view` sees them; 0: as they are.
Array picture_view(const Array& pictures, int view);
/// How much it counts: the shifted ones half.
float picture_view_weight(int view);

}  // namespace millrace::task
