#include <algorithm>
#include <cstring>
#include <gif_lib.h>

#include "base/has_at.h"
#include "data/codecs/pictures/decoders.h"

namespace millrace::data {
namespace {

struct Input {
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

int on_read(GifFileType* file, GifByteType* to, int size) {
  auto* input = static_cast<Input*>(file->UserData);
  const size_t part = std::min(static_cast<size_t>(size), input->bytes.size() - input->at);
  std::memcpy(to, input->bytes.data() + input->at, part);
  input->at += part;
  return static_cast<int>(part);
}

struct File {
  GifFileType* gif = nullptr;
  ~File() {
    int ignored = 0;
    if (gif) DGifCloseFile(gif, &ignored);
  }
};

std::string reason(int code) {
  const char* text = GifErrorString(code);
  return text ? text : "damaged GIF";
}

/// The row that comes at place `i` of an interlaced picture.
int interlaced(int i, int height) {
  constexpr int from[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
  for (int pass = 0; pass < 4; ++pass) {
    const int rows = height > from[pass] ? (height - from[pass] - 1) / step[pass] + 1 : 0;
    if (i < rows) return from[pass] + i * step[pass];
    i -= rows;
  }
  return height - 1;
}

void put(const ColorMapObject& map, uint8_t number, uint8_t* to) {
  const GifColorType colour = number < map.ColorCount ? map.Colors[number] : GifColorType{0, 0, 0};
  to[0] = colour.Red;
  to[1] = colour.Green;
  to[2] = colour.Blue;
}

/// The picture whose descriptor comes next, onto the canvas.
std::string draw(GifFileType& gif, Picture& picture) {
  if (DGifGetImageDesc(&gif) == GIF_ERROR) return reason(gif.Error);
  const GifImageDesc& part = gif.Image;
  const ColorMapObject* map = part.ColorMap ? part.ColorMap : gif.SColorMap;
  if (!map) return "it has no colours";
  if (part.Left < 0 || part.Top < 0 || part.Width < 1 || part.Height < 1 ||
      part.Left + part.Width > picture.width || part.Top + part.Height > picture.height)
    return "its picture lies outside of its canvas";
  const size_t line = size_t{3} * static_cast<size_t>(picture.width);
  picture.pixels.assign(line * static_cast<size_t>(picture.height), 0);
  if (gif.SColorMap && (part.Width < picture.width || part.Height < picture.height)) {
    // One row, then copies of it: a small file may have a large canvas.
    uint8_t* const first = picture.pixels.data();
    for (size_t i = 0; i < line; i += 3)
      put(*gif.SColorMap, static_cast<uint8_t>(gif.SBackGroundColor), first + i);
    for (int y = 1; y < picture.height; ++y) std::memcpy(first + line * static_cast<size_t>(y), first, line);
  }
  std::vector<uint8_t> numbers(static_cast<size_t>(part.Width));
  for (int i = 0; i < part.Height; ++i) {
    if (DGifGetLine(&gif, numbers.data(), part.Width) == GIF_ERROR) return reason(gif.Error);
    const int y = part.Interlace ? interlaced(i, part.Height) : i;
    uint8_t* to = &picture.pixels[3 * (static_cast<size_t>(part.Top + y) * picture.width + part.Left)];
    for (const uint8_t number : numbers) {
      put(*map, number, to);
      to += 3;
    }
  }
  return {};
}

}  // namespace

bool is_gif(std::span<const uint8_t> bytes) {
  return has_at(bytes, 0, "GIF87a") || has_at(bytes, 0, "GIF89a");
}

std::string decode_gif(std::span<const uint8_t> bytes, Picture& picture) {
  Input input{bytes};
  int error = 0;
  File file;
  file.gif = DGifOpen(&input, on_read, &error);
  if (!file.gif) return reason(error);
  GifFileType& gif = *file.gif;
  if (gif.SWidth < 1 || gif.SHeight < 1 || int64_t{gif.SWidth} * gif.SHeight > max_pixels)
    return "its GIF header is damaged or the picture is too large";
  picture.height = gif.SHeight;
  picture.width = gif.SWidth;
  picture.channels = 3;
  while (true) {
    GifRecordType type;
    if (DGifGetRecordType(&gif, &type) == GIF_ERROR) return reason(gif.Error);
    if (type == IMAGE_DESC_RECORD_TYPE) return draw(gif, picture);
    if (type == TERMINATE_RECORD_TYPE) return "it holds no picture";
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(&gif, &code, &block) == GIF_ERROR) return reason(gif.Error);
    while (block)
      if (DGifGetExtensionNext(&gif, &block) == GIF_ERROR) return reason(gif.Error);
  }
}

}  // namespace millrace::data
