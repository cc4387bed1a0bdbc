#include "data/codecs/pictures/decode.h"

#include "base/words.h"
#include "data/codecs/pictures/bmp.h"
#include "data/codecs/pictures/gif.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/netpbm.h"
#include "data/codecs/pictures/png.h"
#include "data/codecs/pictures/webp.h"

namespace millrace::data {

std::string decode_picture(std::span<const uint8_t> bytes, Picture& picture) {
  if (bytes.empty()) return "the file is empty";
  if (bytes.size() >= 2 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6'))
    return decode_netpbm(bytes, picture);
  if (is_png(bytes)) return decode_png(bytes, picture);
  if (is_webp(bytes)) return decode_webp(bytes, picture);
  if (is_gif(bytes)) return decode_gif(bytes, picture);
  if (is_bmp(bytes)) return decode_bmp(bytes, picture);
  return decode_jpeg(bytes, picture);
}

std::string decode_picture(const StoredPicture& stored, Picture& picture) {
  if (stored.height == 0) return decode_picture(stored.bytes, picture);
  picture.height = stored.height;
  picture.width = stored.width;
  picture.channels = stored.channels;
  picture.pixels.assign(stored.bytes.begin(), stored.bytes.end());
  return {};
}

const char* picture_kinds() { return "JPEG, PNG, WebP, GIF, BMP, PGM or PPM"; }

bool is_picture_name(std::string_view name) {
  return has_ending(name, {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".pgm", ".ppm"});
}

}  // namespace millrace::data
