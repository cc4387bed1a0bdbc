#include "data/jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs FILE from <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "base/format.h"

namespace millrace::data {
namespace {

/// libjpeg reports errors by calling back; we jump out and keep the text.
struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  info->err->format_message(info, manager->message);
  std::longjmp(manager->escape, 1);
}

/// Warnings that mean lost pixels are errors here; harmless ones (stray bytes between markers) are ignored.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      on_error(info);
      break;
    default:
      break;
  }
}

void set_up(ErrorManager& manager) {
  jpeg_std_error(&manager.base);
  manager.base.error_exit = on_error;
  manager.base.emit_message = on_message;
  manager.message[0] = 0;
}

struct Decompressor {
  jpeg_decompress_struct info{};
  ~Decompressor() { jpeg_destroy_decompress(&info); }
};

struct Compressor {
  jpeg_compress_struct info{};
  unsigned char* memory = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  ~Compressor() {
    jpeg_destroy_compress(&info);
    std::free(memory);
  }
};

}  // namespace

std::string decode_jpeg(std::span<const uint8_t> bytes, Picture& picture) {
  if (bytes.size() < 3 || bytes[0] != 0xff || bytes[1] != 0xd8 || bytes[2] != 0xff) return "not a JPEG file";
  ErrorManager manager;
  Decompressor decompressor;
  auto& info = decompressor.info;
  set_up(manager);
  info.err = &manager.base;
  if (setjmp(manager.escape)) return manager.message;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  if (int64_t{info.image_width} * info.image_height > max_pixels)
    return "the picture is too large (over 134 megapixels)";
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK)
    return "its colours are CMYK; grey and RGB are supported";
  info.out_color_space = info.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&info);
  picture.height = static_cast<int>(info.output_height);
  picture.width = static_cast<int>(info.output_width);
  picture.channels = info.output_components;
  const size_t line = static_cast<size_t>(info.output_width) * info.output_components;
  picture.pixels.resize(line * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = picture.pixels.data() + line * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return {};
}

std::vector<uint8_t> encode_jpeg(const Picture& picture, int quality) {
  const size_t line = static_cast<size_t>(picture.width) * picture.channels;
  if (picture.width < 1 || picture.height < 1 || (picture.channels != 1 && picture.channels != 3) ||
      picture.pixels.size() != line * picture.height)
    fail<InputError>("a picture of {}x{} with {} channels and {} bytes cannot be encoded as JPEG",
                     picture.width, picture.height, picture.channels, picture.pixels.size());
  ErrorManager manager;
  Compressor compressor;
  auto& info = compressor.info;
  set_up(manager);
  info.err = &manager.base;
  if (setjmp(manager.escape)) fail<InternalError>("JPEG encoding: {}", manager.message);
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &compressor.memory, &compressor.size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.dct_method = JDCT_ISLOW;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.pixels.data() + line * info.next_scanline);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return {compressor.memory, compressor.memory + compressor.size};
}

}  // namespace millrace::data
