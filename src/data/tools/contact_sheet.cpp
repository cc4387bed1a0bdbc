#include "data/tools/contact_sheet.h"

#include <ft2build.h>
#include FT_FREETYPE_H

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/format.h"
#include "data/codecs/pictures/png.h"
#include "data/codecs/text/unicode.h"
#include "data/tools/letters.h"

namespace millrace::data {
namespace {

constexpr int gap = 2, least_side = 96, text_size = 12, text_height = 16, baseline = 12;

/// Draws lines of text, where the machine has a typeface to draw them in.
class LabelPen {
 public:
  explicit LabelPen(const std::filesystem::path& fonts) {
    if (FT_Init_FreeType(&library_) != 0) fail<InternalError>("FreeType cannot be started");
    for (const Typeface& typeface : letter_typefaces())
      for (const std::string& file : typeface.files)
        if (!face_ && std::filesystem::exists(fonts / file) &&
            FT_New_Face(library_, (fonts / file).c_str(), 0, &face_) == 0 &&
            FT_Set_Pixel_Sizes(face_, 0, text_size) != 0)
          face_ = nullptr;  // of no use; it goes with the library
  }
  ~LabelPen() { FT_Done_FreeType(library_); }  // and its face
  LabelPen(const LabelPen&) = delete;
  LabelPen& operator=(const LabelPen&) = delete;

  bool ready() const { return face_ != nullptr; }

  /// Black on the sheet, whose pixels are white there, within `width` pixels from `left` on.
  void draw(const std::string& text, int top, int left, int width, Picture& sheet) const {
    int x = left;
    for (size_t at = 0; at < text.size();) {
      const char32_t point = next_character(text, at);
      if (FT_Load_Char(face_, point < 0x20 ? U' ' : point, FT_LOAD_RENDER) != 0) continue;
      const FT_GlyphSlot glyph = face_->glyph;
      const int advance = static_cast<int>(glyph->advance.x >> 6);
      if (x + advance > left + width) return;
      put(glyph->bitmap, top + baseline - glyph->bitmap_top, x + glyph->bitmap_left, sheet);
      x += advance;
    }
  }

 private:
  static void put(const FT_Bitmap& ink, int top, int left, Picture& sheet) {
    if (ink.pixel_mode != FT_PIXEL_MODE_GRAY) return;
    for (int y = 0; y < static_cast<int>(ink.rows); ++y)
      for (int x = 0; x < static_cast<int>(ink.width); ++x) {
        if (top + y < 0 || top + y >= sheet.height || left + x < 0 || left + x >= sheet.width) continue;
        const uint8_t covered = ink.buffer[y * ink.pitch + x];
        uint8_t* pixel = &sheet.pixels[(static_cast<size_t>(top + y) * static_cast<size_t>(sheet.width) +
                                        static_cast<size_t>(left + x)) *
                                       static_cast<size_t>(sheet.channels)];
        for (int c = 0; c < sheet.channels; ++c)
          pixel[c] = static_cast<uint8_t>(pixel[c] * (255 - covered) / 255);
      }
  }

  FT_Library library_ = nullptr;
  FT_Face face_ = nullptr;
};

int scale_of(const Picture& picture) {
  const int side = std::max({picture.height, picture.width, 1});
  return std::max(1, (least_side + side - 1) / side);
}

/// Each pixel `scale` times in both directions.
void put_enlarged(const Picture& picture, int scale, int top, int left, Picture& sheet) {
  const auto channels = static_cast<size_t>(sheet.channels);
  for (int y = 0; y < picture.height * scale; ++y)
    for (int x = 0; x < picture.width * scale; ++x)
      std::copy_n(&picture.pixels[static_cast<size_t>(y / scale * picture.width + x / scale) * channels],
                  channels,
                  &sheet.pixels[(static_cast<size_t>(top + y) * static_cast<size_t>(sheet.width) +
                                 static_cast<size_t>(left + x)) *
                                channels]);
}

}  // namespace

Picture picture_of(const Array& planes) {
  const Type type = planes.type();
  if (type.dtype != u8 || type.shape.size() != 3)
    fail<InputError>("a picture is u8 [channels, height, width], not {}", type.str());
  const auto size = [&](size_t axis) { return static_cast<int>(type.shape[axis].size()); };
  Picture picture{size(1), size(2), size(0) == 3 ? 3 : 1, {}};
  const auto channels = static_cast<size_t>(picture.channels);
  const size_t plane = static_cast<size_t>(picture.height) * static_cast<size_t>(picture.width);
  picture.pixels.resize(plane * channels);
  const auto* const from = static_cast<const uint8_t*>(planes.data());
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < plane; ++i) picture.pixels[i * channels + c] = from[c * plane + i];
  return picture;
}

ContactSheet contact_sheet(std::span<const Tile> tiles, int columns, const std::filesystem::path& fonts) {
  const LabelPen pen(fonts);
  ContactSheet sheet;
  int height = 1, width = 1, channels = 1;
  for (const Tile& tile : tiles) {
    const int scale = scale_of(tile.picture);
    height = std::max(height, tile.picture.height * scale);
    width = std::max(width, tile.picture.width * scale);
    channels = std::max(channels, tile.picture.channels);
    sheet.labelled = sheet.labelled || (pen.ready() && !tile.label.empty());
  }
  const int cell = height + (sheet.labelled ? text_height : 0), count = static_cast<int>(tiles.size()),
            across = std::max(1, std::min(columns, count)),
            down = std::max(1, (count + columns - 1) / columns);
  sheet.picture = {down * (cell + gap) - gap, across * (width + gap) - gap, channels, {}};
  sheet.picture.pixels.assign(static_cast<size_t>(sheet.picture.height) *
                                  static_cast<size_t>(sheet.picture.width) * static_cast<size_t>(channels),
                              255);
  for (int i = 0; i < count; ++i) {
    const Tile& tile = tiles[static_cast<size_t>(i)];
    const int top = i / columns * (cell + gap), left = i % columns * (width + gap);
    put_enlarged(with_channels(tile.picture, channels), scale_of(tile.picture), top, left, sheet.picture);
    if (sheet.labelled) pen.draw(tile.label, top + height, left, width, sheet.picture);
  }
  return sheet;
}

std::vector<uint8_t> png_of(const ContactSheet& sheet) { return encode_png(sheet.picture); }

}  // namespace millrace::data
