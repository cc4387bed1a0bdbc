// Any bytes as a picture file: decoded or refused, with pixels that fit the size and the size that the header
// states.
#include "data/picture.h"

#include <cstdlib>

#include "data/picture_size.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::data::Picture picture;
  const std::string why = millrace::data::decode_picture({data, size}, picture);
  const size_t pixels = static_cast<size_t>(picture.height) * picture.width;
  if (why.empty() && (pixels == 0 || picture.pixels.size() != pixels * picture.channels)) std::abort();
  const auto stated = millrace::data::picture_size({data, size});
  if (why.empty() && stated && (stated->width != picture.width || stated->height != picture.height))
    std::abort();
  return 0;
}
