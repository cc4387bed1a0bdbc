#include "data/picture.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/format.h"
#include "data/jpeg.h"
#include "data/netpbm.h"

namespace millrace::data {

std::string Picture::size_text() const {
  return fmt::format("{}x{} {}", width, height, channels == 1 ? "grey" : "colour");
}

std::string decode_picture(std::span<const uint8_t> bytes, Picture& picture) {
  if (bytes.empty()) return "the file is empty";
  if (bytes.size() >= 2 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6'))
    return decode_netpbm(bytes, picture);
  return decode_jpeg(bytes, picture);
}

Picture load_picture(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = read_file(path);
  Picture picture;
  if (const std::string why = decode_picture(bytes, picture); !why.empty())
    fail<InputError>("{}: cannot be decoded: {}; give a whole JPEG, PGM or PPM file", path.string(), why);
  return picture;
}

bool is_picture_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(name.substr(dot + 1));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == "jpg" || extension == "jpeg" || extension == "pgm" || extension == "ppm";
}

Picture with_channels(const Picture& picture, int channels) {
  if (picture.channels == channels) return picture;
  Picture out{picture.height, picture.width, channels, {}};
  const size_t count = static_cast<size_t>(picture.height) * picture.width;
  out.pixels.resize(count * channels);
  for (size_t i = 0; i < count; ++i) {
    if (channels == 3) {
      std::fill_n(&out.pixels[3 * i], 3, picture.pixels[i]);
    } else {
      const uint8_t* rgb = &picture.pixels[3 * i];
      out.pixels[i] = static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
    }
  }
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
