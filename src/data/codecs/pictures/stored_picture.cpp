#include "data/codecs/pictures/stored_picture.h"

#include "base/format.h"

namespace millrace::data {

std::string StoredPicture::fault() const {
  const bool file = height == 0 && width == 0 && channels == 0;
  if (file) return {};
  if (height < 1 || width < 1 || channels < 1)
    return fmt::format("{} × {} pixels of {} channels are none", height, width, channels);
  const auto wanted = static_cast<double>(height) * width * channels;  // of any int, without an overflow
  if (wanted != static_cast<double>(bytes.size()))
    return fmt::format("{} × {} pixels of {} channels have {:.0f} bytes, not {}", height, width, channels,
                       wanted, bytes.size());
  return {};
}

}  // namespace millrace::data
