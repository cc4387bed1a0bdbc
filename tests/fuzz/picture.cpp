// Any bytes as a picture file: decoded or refused, with pixels that fit the size and the size that the header
// states; a part of a JPEG is that of the whole.
#include "data/codecs/pictures/picture.h"

#include <algorithm>
#include <cstdlib>

#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/exif.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture_size.h"

using namespace millrace::data;

namespace {

void check_part(std::span<const uint8_t> bytes, const Picture& whole) {
  // The last bytes, which no decoder reads, choose the part.
  const auto pick = [&](size_t place, int most) { return bytes[bytes.size() - 1 - place] % most; };
  Box box;
  box.top = pick(0, whole.height);
  box.left = pick(1, whole.width);
  box.height = 1 + pick(2, whole.height - box.top);
  box.width = 1 + pick(3, whole.width - box.left);
  JpegReader reader;
  if (!reader.open(bytes).empty()) std::abort();
  if (!reader.read(box, 1, whole.channels).empty()) return;
  for (int y = 0; y < box.height; ++y) {
    const size_t at = (static_cast<size_t>(box.top + y) * whole.width + box.left) * whole.channels;
    if (!std::equal(reader.pixels() + y * reader.stride(),
                    reader.pixels() + y * reader.stride() + box.width * whole.channels,
                    whole.pixels.begin() + static_cast<std::ptrdiff_t>(at)))
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Picture picture;
  const std::string why = decode_picture({data, size}, picture);
  if (!why.empty()) return 0;
  const size_t pixels = static_cast<size_t>(picture.height) * picture.width;
  if (pixels == 0 || picture.pixels.size() != pixels * picture.channels) std::abort();
  if (data[0] == 0xff && exif_orientation({data, size}) == 1) check_part({data, size}, picture);
  const auto stated = picture_size({data, size});
  if (stated && (stated->width != picture.width || stated->height != picture.height)) std::abort();
  return 0;
}
