#include "data/codecs/pictures/frame.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace millrace::data {

void FrameRule::check() const {
  if (resize < 0 || resize > 65535)
    fail<InputError>("{}.resize = {}: wanted is a side from 1 to 65535 pixels", key, resize);
  if (crop < 0 || crop > 65535)
    fail<InputError>("{}.crop = {}: wanted is a side from 1 to 65535 pixels", key, crop);
  if (resize > 0 && crop > resize)
    fail<InputError>(
        "{0}.crop = {1} is larger than {0}.resize = {2}, the shorter side of the resized pictures", key, crop,
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
    fail<InputError>("{0}.crop = {1}: a picture of {2}x{3} is smaller; set {0}.resize, or a smaller crop",
                     key, crop, width, height);
  // The middle, as torchvision's CenterCrop rounds it: halves to the even number.
  const auto middle = [](int space) { return static_cast<int>(std::nearbyint(space / 2.0)); };
  return {{0, 0, picture_height, picture_width},
          height,
          width,
          {middle(height - crop), middle(width - crop), crop, crop}};
}

}  // namespace millrace::data
