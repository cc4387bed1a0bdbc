#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <tiffio.h>

#include "base/format.h"
#include "base/has_at.h"
#include "base/number_at.h"
#include "data/codecs/pictures/cmyk.h"
#include "data/codecs/pictures/decoders.h"
#include "data/codecs/pictures/turn.h"

namespace millrace::data {
namespace {

/// The bytes as libtiff reads them, and its last message.
struct TiffInput {
  std::span<const uint8_t> bytes;
  uint64_t at = 0;
  std::string message = {};
};

tmsize_t tiff_read(thandle_t handle, void* to, tmsize_t size) {
  auto& input = *static_cast<TiffInput*>(handle);
  if (input.at >= input.bytes.size() || size <= 0) return 0;
  const auto count = std::min(static_cast<uint64_t>(size), input.bytes.size() - input.at);
  std::memcpy(to, input.bytes.data() + input.at, count);
  input.at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t tiff_write(thandle_t, void*, tmsize_t) { return 0; }
toff_t tiff_seek(thandle_t handle, toff_t offset, int whence) {
  auto& input = *static_cast<TiffInput*>(handle);
  input.at = offset + (whence == SEEK_CUR ? input.at : whence == SEEK_END ? input.bytes.size() : 0);
  return input.at;
}
int tiff_close(thandle_t) { return 0; }
toff_t tiff_size(thandle_t handle) { return static_cast<TiffInput*>(handle)->bytes.size(); }
int tiff_map(thandle_t handle, void** base, toff_t* size) {
  const auto& bytes = static_cast<TiffInput*>(handle)->bytes;
  *base = const_cast<uint8_t*>(bytes.data());  // libtiff does not write to what was opened to be read
  *size = bytes.size();
  return 1;
}
void tiff_unmap(thandle_t, void*, toff_t) {}

int on_tiff_error(TIFF*, void* user, const char* /*module*/, const char* format, va_list arguments) {
  char text[200];
  std::vsnprintf(text, sizeof text, format, arguments);
  auto& message = static_cast<TiffInput*>(user)->message;
  if (message.empty()) message = text;
  return 1;
}
int on_tiff_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using TiffFile = std::unique_ptr<TIFF, CloseTiff>;

TiffFile open_tiff(TiffInput& input) {
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_tiff_error, &input);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_tiff_warning, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, tmsize_t{4} * max_pixels);
  TIFF* tiff = TIFFClientOpenExt("picture", "r", &input, tiff_read, tiff_write, tiff_seek, tiff_close,
                                 tiff_size, tiff_map, tiff_unmap, options);
  TIFFOpenOptionsFree(options);
  return TiffFile(tiff);
}

struct TiffLayout {
  uint32_t width = 0, height = 0;
  uint16_t bits = 1, samples = 1, kind = SAMPLEFORMAT_UINT, colours = PHOTOMETRIC_MINISBLACK;
  uint16_t planes = PLANARCONFIG_CONTIG, compression = COMPRESSION_NONE, orientation = 1;
  size_t used = 1;  // samples of a pixel that make its colour
};

/// "" or why it cannot be read; `plainly`: by read_samples(), else libtiff converts it.
std::string look_at_tiff(TIFF* tiff, TiffLayout& layout, bool& plainly) {
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &layout.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &layout.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &layout.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &layout.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &layout.kind);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &layout.planes);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &layout.compression);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &layout.orientation);
  if (layout.orientation < 1 || layout.orientation > 8) layout.orientation = 1;
  if (!TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &layout.colours))
    layout.colours = layout.samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  if (layout.width < 1 || layout.height < 1 || layout.width > 65535 || layout.height > 65535 ||
      uint64_t{layout.width} * layout.height > max_pixels)
    return "its TIFF header is damaged or the picture is too large (over 134 megapixels)";
  if (layout.kind == SAMPLEFORMAT_IEEEFP || layout.kind == SAMPLEFORMAT_INT || layout.bits > 16)
    return fmt::format("its values are {} of {} bits; whole numbers from 0 of up to 16 bits are read",
                       layout.kind == SAMPLEFORMAT_IEEEFP ? "floating-point numbers"
                       : layout.kind == SAMPLEFORMAT_INT  ? "signed numbers"
                                                          : "numbers",
                       layout.bits);
  // libjpeg converts the colours of a TIFF of JPEG strips.
  if (layout.colours == PHOTOMETRIC_YCBCR && layout.compression == COMPRESSION_JPEG &&
      TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB))
    layout.colours = PHOTOMETRIC_RGB;
  layout.used = layout.colours == PHOTOMETRIC_RGB ? 3 : layout.colours == PHOTOMETRIC_SEPARATED ? 4 : 1;
  const bool whole = layout.bits == 1 || layout.bits == 2 || layout.bits == 4 || layout.bits == 8 ||
                     (layout.bits == 16 && layout.colours != PHOTOMETRIC_PALETTE);
  plainly = whole && layout.samples >= layout.used &&
            (layout.colours == PHOTOMETRIC_RGB || layout.colours == PHOTOMETRIC_SEPARATED ||
             layout.colours == PHOTOMETRIC_PALETTE || layout.colours == PHOTOMETRIC_MINISBLACK ||
             layout.colours == PHOTOMETRIC_MINISWHITE);
  char why[1024] = "";
  if (!plainly && !TIFFRGBAImageOK(tiff, why))
    return fmt::format("its pixels are of an unknown kind ({})", why);
  return {};
}

/// `count` values of a row, each `layout.bits` wide, as 8 bits; numbers of a palette as they are.
void widen(const TiffLayout& layout, const uint8_t* from, size_t count, std::vector<uint8_t>& to) {
  to.resize(count);
  if (layout.bits == 8) {
    std::copy_n(from, count, to.data());
  } else if (layout.bits == 16) {
    for (size_t i = 0; i < count; ++i) {
      const uint32_t value = number_at<uint16_t>(from + 2 * i);  // libtiff has swapped bytes where it had to
      to[i] = static_cast<uint8_t>((value * 255 + 32895) >> 16);
    }
  } else {
    const unsigned most = (1U << layout.bits) - 1;
    const unsigned factor = layout.colours == PHOTOMETRIC_PALETTE ? 1 : 255 / most;
    for (size_t i = 0; i < count; ++i) {
      const size_t bit = i * layout.bits;
      to[i] = static_cast<uint8_t>((from[bit / 8] >> (8 - layout.bits - bit % 8) & most) * factor);
    }
  }
}

/// Strips or tiles, whose samples lie together or plane by plane: the colours of all pixels, `used` each.
bool read_samples(TIFF* tiff, const TiffLayout& layout, std::vector<uint8_t>& values) {
  const size_t used = layout.used, width = layout.width, height = layout.height;
  const bool apart = layout.planes == PLANARCONFIG_SEPARATE && layout.samples > 1;
  const size_t together = apart ? 1 : layout.samples;
  values.assign(width * height * used, 0);
  std::vector<uint8_t> wide;
  // `count` pixels of row y from x on.
  const auto put = [&](const uint8_t* row, size_t y, size_t x, size_t count, size_t plane) {
    widen(layout, row, count * together, wide);
    uint8_t* to = values.data() + (y * width + x) * used + plane;
    const size_t kept = apart ? 1 : used;
    for (size_t i = 0; i < count; ++i, to += used) std::copy_n(wide.data() + i * together, kept, to);
  };
  const size_t planes = apart ? used : 1;
  // What is read at once: a tile, or a row.
  const bool tiled = TIFFIsTiled(tiff) != 0;
  uint32_t part_width = layout.width, part_height = 1;
  if (tiled) {
    part_width = part_height = 0;
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &part_width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &part_height);
  }
  const auto line = static_cast<size_t>(tiled ? TIFFTileRowSize(tiff) : TIFFScanlineSize(tiff)),
             size = tiled ? static_cast<size_t>(TIFFTileSize(tiff)) : line;
  if (part_width == 0 || part_height == 0 || line < (part_width * together * layout.bits + 7) / 8 ||
      size / line < part_height || size > size_t{4} * max_pixels)
    return false;
  std::vector<uint8_t> part(size);
  for (size_t plane = 0; plane < planes; ++plane)
    for (size_t y = 0; y < height; y += part_height)
      for (size_t x = 0; x < width; x += part_width) {
        const auto left = static_cast<uint32_t>(x), top = static_cast<uint32_t>(y);
        const auto which = static_cast<uint16_t>(plane);
        if ((tiled ? TIFFReadTile(tiff, part.data(), left, top, 0, which)
                   : TIFFReadScanline(tiff, part.data(), top, which)) < 0)
          return false;
        for (size_t i = 0; i < std::min<size_t>(part_height, height - y); ++i)
          put(part.data() + i * line, y + i, x, std::min<size_t>(part_width, width - x), plane);
      }
  return true;
}

/// Numbers of a palette to its colours; false where there is none.
bool look_up(TIFF* tiff, const TiffLayout& layout, const std::vector<uint8_t>& numbers,
             std::vector<uint8_t>& pixels) {
  uint16_t* map[3] = {};
  if (!TIFFGetField(tiff, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2])) return false;
  pixels.resize(3 * numbers.size());
  // Some programs write colours of 8 bits where the format wants 16.
  const size_t colours = size_t{1} << layout.bits;
  bool narrow = true;
  for (const uint16_t* channel : map)
    narrow = narrow && std::all_of(channel, channel + colours, [](uint16_t value) { return value < 256; });
  for (size_t i = 0; i < numbers.size(); ++i)
    for (size_t c = 0; c < 3; ++c)
      pixels[3 * i + c] = static_cast<uint8_t>(map[c][numbers[i]] >> (narrow ? 0 : 8));
  return true;
}

/// What is rarer (YCbCr without JPEG, Lab, LogLuv …), by libtiff's own conversion.
bool read_converted(TIFF* tiff, const TiffLayout& layout, std::vector<uint8_t>& pixels) {
  const size_t count = size_t{layout.width} * layout.height;
  std::vector<uint32_t> raster(count);
  // Rows are wanted as they are stored; libtiff would turn some orientations, and not others.
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  if (!TIFFReadRGBAImageOriented(tiff, layout.width, layout.height, raster.data(), ORIENTATION_TOPLEFT, 1))
    return false;
  pixels.resize(3 * count);
  for (size_t i = 0; i < count; ++i) {
    pixels[3 * i] = static_cast<uint8_t>(TIFFGetR(raster[i]));
    pixels[3 * i + 1] = static_cast<uint8_t>(TIFFGetG(raster[i]));
    pixels[3 * i + 2] = static_cast<uint8_t>(TIFFGetB(raster[i]));
  }
  return true;
}

}  // namespace

bool is_tiff(std::span<const uint8_t> bytes) {
  const auto begins = [&](std::string_view mark) { return bytes.size() >= 8 && has_at(bytes, 0, mark); };
  return begins({"II*\0", 4}) || begins({"MM\0*", 4}) || begins({"II+\0", 4}) || begins({"MM\0+", 4});
}

std::string decode_tiff(std::span<const uint8_t> bytes, Picture& picture) {
  TiffInput input{bytes};
  const TiffFile tiff = open_tiff(input);
  const auto bad = [&] {
    return fmt::format("truncated or damaged TIFF{}",
                       input.message.empty() ? "" : fmt::format(" ({})", input.message));
  };
  if (!tiff) return bad();
  TiffLayout layout;
  bool plainly = false;
  if (std::string why = look_at_tiff(tiff.get(), layout, plainly); !why.empty()) return why;
  picture.height = static_cast<int>(layout.height);
  picture.width = static_cast<int>(layout.width);
  picture.channels = layout.used == 1 && plainly && layout.colours != PHOTOMETRIC_PALETTE ? 1 : 3;
  if (!plainly) {
    if (!read_converted(tiff.get(), layout, picture.pixels)) return bad();
  } else if (layout.colours == PHOTOMETRIC_PALETTE) {
    std::vector<uint8_t> numbers;
    if (!read_samples(tiff.get(), layout, numbers) || !look_up(tiff.get(), layout, numbers, picture.pixels))
      return bad();
  } else {
    if (!read_samples(tiff.get(), layout, picture.pixels)) return bad();
    if (layout.colours == PHOTOMETRIC_MINISWHITE)
      for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(255 - value);
    if (layout.colours == PHOTOMETRIC_SEPARATED) {
      cmyk_to_rgb(picture.pixels.data(), int64_t{picture.height} * picture.width, picture.pixels.data());
      picture.pixels.resize(size_t{3} * layout.height * layout.width);
    }
  }
  turn_upright(picture, {layout.orientation});
  return {};
}

}  // namespace millrace::data
