// Which part of a picture a model looks at, by the settings of its input.
#pragma once

#include <millrace/picture.h>
#include <millrace/settings.h>

#include "data/codecs/pictures/frame.h"

namespace millrace::task {

/// What evaluation looks at of each picture: `resize` and `crop`; where neither is given and the first
/// augmentation is a random frame of a size, the middle, with the shorter side resized to that size.
data::FrameRule evaluation_frames(const Settings& settings);

/// What a model of pictures of `extent` looks at of a picture of this size: as for evaluation; without `crop`
/// all of it, resized to the model's size. InputError when it is smaller than the crop.
data::Frame prepared_frame(const Settings& settings, const data::Extent& extent, int height, int width);

}  // namespace millrace::task
