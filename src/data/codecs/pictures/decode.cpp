#include "data/codecs/pictures/decode.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/format.h"
#include "base/has_at.h"
#include "base/words.h"
#include "data/codecs/pictures/decoders.h"
#include "data/codecs/pictures/exif.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/netpbm.h"
#include "data/codecs/pictures/png.h"
#include "data/codecs/pictures/turn.h"

namespace millrace::data {
namespace {

/// All but JPEG.
struct PictureKind {
  bool (*is)(std::span<const uint8_t> bytes);
  std::string (*decode)(std::span<const uint8_t> bytes, Picture& picture);
};
constexpr PictureKind picture_kind_list[] = {{is_tiff, decode_tiff}, {is_gif, decode_gif},
                                             {is_bmp, decode_bmp},   {is_netpbm, decode_netpbm},
                                             {is_png, decode_png},   {is_webp, decode_webp}};

const PictureKind* kind_of(std::span<const uint8_t> bytes) {
  const auto* const found = std::find_if(std::begin(picture_kind_list), std::end(picture_kind_list),
                                         [&](const PictureKind& kind) { return kind.is(bytes); });
  return found == std::end(picture_kind_list) ? nullptr : found;
}

/// "HEIC" of a picture that is not decoded here; "" for all else.
std::string foreign_picture(std::span<const uint8_t> bytes) {
  if (has_at(bytes, 4, "ftyp")) {
    if (has_at(bytes, 8, "avif") || has_at(bytes, 8, "avis")) return "AVIF";
    for (const char* brand : {"heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"})
      if (has_at(bytes, 8, brand)) return "HEIC";
  }
  if (has_at(bytes, 4, "JXL \r\n")) return "JPEG XL";
  if (has_at(bytes, 4, "jP  \r\n")) return "JPEG 2000";
  return {};
}

/// What bytes are that are no picture of any kind, where they say it.
std::string no_picture(std::span<const uint8_t> bytes) {
  std::string kind = foreign_picture(bytes);
  if (!kind.empty())
    return fmt::format("it is a picture of the kind {}, which is not read; convert it, with {} IN OUT.jpg",
                       kind, kind == "HEIC" || kind == "AVIF" ? "heif-convert" : "ImageMagick's convert");
  size_t at = 0;
  while (at < bytes.size() && at < 64 && (bytes[at] <= ' ' || bytes[at] >= 0x80))
    ++at;  // and a byte order mark
  for (const char* mark : {"<!doctype", "<!DOCTYPE", "<html", "<HTML"})
    if (has_at(bytes, at, mark)) kind = "a web page";
  if (has_at(bytes, at, "<svg") || has_at(bytes, at, "<?xml")) kind = "a drawing or other XML";
  if (has_at(bytes, 0, "%PDF")) kind = "a PDF document";
  return fmt::format("{}; pictures are {} files", kind.empty() ? "it is no picture" : "it is " + kind,
                     picture_kinds());
}

}  // namespace

std::string decode_picture(std::span<const uint8_t> bytes, Picture& picture) {
  if (bytes.empty()) return "the file is empty";
  const auto* const kind = kind_of(bytes);
  if (!kind && !has_at(bytes, 0, "\xff\xd8")) return no_picture(bytes);
  std::string why = kind ? kind->decode(bytes, picture) : decode_jpeg(bytes, picture);
  if (why.empty()) turn_upright(picture, {exif_orientation(bytes)});
  return why;
}

std::string decode_picture(const StoredPicture& stored, Picture& picture) {
  if (std::string why = stored.fault(); !why.empty()) return why;
  if (stored.height == 0) return decode_picture(stored.bytes, picture);
  picture.height = stored.height;
  picture.width = stored.width;
  picture.channels = stored.channels;
  picture.pixels.assign(stored.bytes.begin(), stored.bytes.end());
  return {};
}

const char* picture_kinds() { return "JPEG, PNG, WebP, TIFF, GIF, BMP, PGM or PPM"; }

bool is_picture_content(std::span<const uint8_t> bytes) {
  return has_at(bytes, 0, "\xff\xd8\xff") || kind_of(bytes) || !foreign_picture(bytes).empty();
}

bool is_picture_name(std::string_view name) {
  return has_ending(name, {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".webp", ".gif", ".bmp", ".tif",
                           ".tiff", ".pgm", ".ppm", ".heic", ".heif", ".avif", ".jxl", ".jp2"});
}

}  // namespace millrace::data
