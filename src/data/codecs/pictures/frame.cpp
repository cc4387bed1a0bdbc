#include "data/codecs/pictures/frame.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace millrace::data {

void FrameRule::check() const {
  if (resize < 0 || resize > 65535)
    fail<InputError>("input.resize = {}: wanted is a side from 1 to 65535 pixels", resize);
  if (crop < 0 || crop > 65535)
    fail<InputError>("input.crop = {}: wanted is a side from 1 to 65535 pixels", crop);
  if (resize > 0 && crop > resize)
    fail<InputError>(
        "input.crop = {} is larger than input.resize = {}, the shorter side of the resized pictures", crop,
        resize);
}

Frame FrameRule::frame(int picture_height, int picture_width) const {
  if (crop == 0) {
    if (resize == 0) return whole_frame(picture_height, picture_width, picture_height, picture_width);
    return whole_frame(picture_height, picture_width, resize, resize);
  }
  int height = picture_height, width = picture_width;
  if (resize > 0) {
    const int shorter = std::min(height, width);
    height = static_cast<int>(std::min<int64_t>(int64_t{resize} * picture_height / shorter, 1 << 24));
    width = static_cast<int>(std::min<int64_t>(int64_t{resize} * picture_width / shorter, 1 << 24));
  }
  if (crop > height || crop > width)
    fail<InputError>("input.crop = {}: a picture of {}x{} is smaller; set input.resize, or a smaller crop",
                     crop, width, height);
  // The middle, as torchvision's CenterCrop rounds it: halves to the even number.
  const auto middle = [](int space) { return static_cast<int>(std::nearbyint(space / 2.0)); };
  return {{0, 0, picture_height, picture_width},
          height,
          width,
          {middle(height - crop), middle(width - crop), crop, crop}};
}

}  // namespace millrace::data
