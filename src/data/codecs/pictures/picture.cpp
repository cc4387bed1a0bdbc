#include "data/codecs/pictures/picture.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/pictures/bmp.h"
#include "data/codecs/pictures/gif.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/netpbm.h"
#include "data/codecs/pictures/png.h"
#include "data/codecs/pictures/webp.h"

namespace millrace::data {

std::string Picture::size_text() const {
  return fmt::format("{}x{} {}", width, height, channels == 1 ? "grey" : "colour");
}

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

Picture load_picture(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  Picture picture;
  if (const std::string why = decode_picture(bytes, picture); !why.empty())
    fail<InputError>("{}: cannot be decoded: {}; give a whole {} file", path.string(), why, picture_kinds());
  return picture;
}

const char* picture_kinds() { return "JPEG, PNG, WebP, GIF, BMP, PGM or PPM"; }

bool is_picture_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(name.substr(dot + 1));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static constexpr std::string_view known[] = {"jpg", "jpeg", "png", "webp", "gif", "bmp", "pgm", "ppm"};
  return std::find(std::begin(known), std::end(known), extension) != std::end(known);
}

void convert_channels(const uint8_t* from, int64_t count, int from_channels, int to_channels, uint8_t* to) {
  if (from_channels == to_channels) {
    std::copy_n(from, count * from_channels, to);
  } else if (to_channels == 3) {
    for (int64_t i = 0; i < count; ++i) std::fill_n(to + 3 * i, 3, from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i, from += 3)
      to[i] = static_cast<uint8_t>((19595 * from[0] + 38470 * from[1] + 7471 * from[2] + 32768) >> 16);
  }
}

Picture with_channels(const Picture& picture, int channels) {
  if (picture.channels == channels) return picture;
  Picture out{picture.height, picture.width, channels, {}};
  const int64_t count = int64_t{picture.height} * picture.width;
  out.pixels.resize(static_cast<size_t>(count * channels));
  convert_channels(picture.pixels.data(), count, picture.channels, channels, out.pixels.data());
  return out;
}

void to_planes(const Picture& picture, uint8_t* planes) {
  const size_t count = static_cast<size_t>(picture.height) * picture.width;
  if (picture.channels == 1) {
    std::copy(picture.pixels.begin(), picture.pixels.end(), planes);
    return;
  }
  const uint8_t* from = picture.pixels.data();
  for (size_t i = 0; i < count; ++i, from += 3) {
    planes[i] = from[0];
    planes[count + i] = from[1];
    planes[2 * count + i] = from[2];
  }
}

}  // namespace millrace::data
