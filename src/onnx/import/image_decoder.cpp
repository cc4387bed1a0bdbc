#include <algorithm>

#include "data/codecs/pictures/decode.h"
#include "onnx/import/call.h"

using namespace millrace;

/// The bytes of a picture are known while the model is imported, and so are its pixels.
MILLRACE_ONNX_IMPORT(ImageDecoder) {
  const Array& bytes = call.known_array(0);
  if (bytes.dtype() != u8) call.refuse("its bytes are no u8");
  data::Picture picture;
  if (const std::string why = data::decode_picture(bytes.as<uint8_t>(), picture); !why.empty())
    call.refuse("its picture cannot be decoded: " + why + " (known are " + data::picture_kinds() + ")");
  const std::string format = call.text("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    call.refuse("the pixel_format '" + format + "' is not known");
  const int channels = format == "Grayscale" ? 1 : 3;
  picture = data::with_channels(picture, channels);
  if (format == "BGR")
    for (size_t at = 0; at + 2 < picture.pixels.size(); at += 3)
      std::swap(picture.pixels[at], picture.pixels[at + 2]);
  Array pixels(u8, {picture.height, picture.width, channels});
  std::copy(picture.pixels.begin(), picture.pixels.end(), pixels.as<uint8_t>().begin());
  return {call.constant(pixels)};
}
