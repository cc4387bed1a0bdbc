// Decoded pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace millrace::data {

/// Pixels in memory, row by row, channels together (HWC); one channel is grey, three are red, green, blue.
struct Picture {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;

  bool operator==(const Picture&) const = default;
  /// "32x32 grey", "640x480 colour" (width first, as cameras say).
  std::string size_text() const;
};

/// Decodes a JPEG, PNG, WebP, GIF (its first picture), BMP or binary Netpbm file from memory into `picture`, whose memory is
/// reused; the format is found from the content. Returns "" or the reason why the bytes are no good picture (then `picture` is unspecified).
[[nodiscard]] std::string decode_picture(std::span<const uint8_t> bytes, Picture& picture);

/// Reads and decodes a picture file; IoError when it cannot be read, InputError when it is no good picture.
Picture load_picture(const std::filesystem::path& path);

/// The formats that decode_picture knows, for messages: "JPEG, PNG …".
const char* picture_kinds();

/// True for the file names that decode_picture is meant for: .jpg, .jpeg, .png, .webp, .gif, .bmp, .pgm, .ppm in any case.
bool is_picture_name(std::string_view name);

/// Grey to colour (the channel three times) or colour to grey (ITU-R BT.601 luma); else a copy.
Picture with_channels(const Picture& picture, int channels);

/// The same for a row of `count` pixels, channels together.
void convert_channels(const uint8_t* from, int64_t count, int from_channels, int to_channels, uint8_t* to);

/// Bilinear resize with a triangle filter that widens when shrinking, so that nothing is skipped. The integer arithmetic
/// of Pillow's Image.resize(BILINEAR), across first and then down: the same bytes everywhere.
Picture resize(const Picture& picture, int height, int width);

/// HWC → CHW; `planes` holds channels·height·width bytes.
void to_planes(const Picture& picture, uint8_t* planes);

}  // namespace millrace::data
