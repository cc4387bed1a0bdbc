#include "data/codecs/pictures/jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs FILE from <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "base/format.h"
#include "data/codecs/pictures/cmyk.h"

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

struct JpegReader::State {
  ErrorManager manager;
  Decompressor decompressor;
  std::span<const uint8_t> bytes;
  std::vector<uint8_t> memory;
};

JpegReader::JpegReader() : state_(std::make_unique<State>()) {
  set_up(state_->manager);
  auto& info = state_->decompressor.info;
  info.err = &state_->manager.base;
  if (setjmp(state_->manager.escape)) fail<InternalError>("JPEG decoding: {}", state_->manager.message);
  jpeg_create_decompress(&info);
}

JpegReader::~JpegReader() = default;

std::string JpegReader::open(std::span<const uint8_t> bytes) {
  if (bytes.size() < 3 || bytes[0] != 0xff || bytes[1] != 0xd8 || bytes[2] != 0xff) return "not a JPEG file";
  auto& info = state_->decompressor.info;
  state_->bytes = bytes;
  if (setjmp(state_->manager.escape)) return state_->manager.message;
  jpeg_abort_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  if (int64_t{info.image_width} * info.image_height > max_pixels)
    return "the picture is too large (over 134 megapixels)";
  inks_ = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  height_ = static_cast<int>(info.image_height);
  width_ = static_cast<int>(info.image_width);
  channels_ = info.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
  return {};
}

std::string JpegReader::read(const Box& part, int reduction, int channels) {
  auto& info = state_->decompressor.info;
  if (setjmp(state_->manager.escape)) return state_->manager.message;
  info.out_color_space = inks_ ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(reduction);
  jpeg_start_decompress(&info);
  const int height = static_cast<int>(info.output_height), width = static_cast<int>(info.output_width);
  // Colours are interpolated from neighbours, of which the first and last of what is decoded have none.
  constexpr int margin = 4;
  const int top = std::max(part.top - margin, 0), bottom = std::min(part.top + part.height + margin, height);
  auto left = static_cast<JDIMENSION>(std::max(part.left - margin, 0));
  auto columns =
      static_cast<JDIMENSION>(std::min(part.left + part.width + margin, width) - static_cast<int>(left));
  if (columns < info.output_width) jpeg_crop_scanline(&info, &left, &columns);
  const size_t line = size_t{info.output_width} * static_cast<size_t>(info.output_components);
  const size_t wanted = line * static_cast<size_t>(bottom - top) + 64;
  if (state_->memory.size() < wanted) state_->memory.resize(wanted);
  if (top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(top));
  uint8_t* const memory = state_->memory.data();
  while (static_cast<int>(info.output_scanline) < bottom) {
    constexpr int most = 8;
    JSAMPROW rows[most];
    const int at = static_cast<int>(info.output_scanline) - top, count = std::min(most, bottom - top - at);
    for (int i = 0; i < count; ++i) rows[i] = memory + line * static_cast<size_t>(at + i);
    jpeg_read_scanlines(&info, rows, static_cast<JDIMENSION>(count));
  }
  if (inks_)
    for (uint8_t* row = memory; row < memory + line * static_cast<size_t>(bottom - top); row += line) {
      for (size_t i = 0; i < line; ++i) row[i] = static_cast<uint8_t>(255 - row[i]);
      cmyk_to_rgb(row, info.output_width, row);
    }
  stride_ = static_cast<int64_t>(line);
  pixels_ = memory + stride_ * (part.top - top) + (part.left - static_cast<int>(left)) * channels;
  if (info.output_scanline == info.output_height) {
    jpeg_finish_decompress(&info);
    return {};
  }
  jpeg_abort_decompress(&info);
  // The rest is not decoded, but a file that was cut off must still be refused. Pixels cannot look like the
  // marker.
  constexpr uint8_t end[] = {0xff, JPEG_EOI};
  const auto& bytes = state_->bytes;
  return std::find_end(bytes.begin(), bytes.end(), end, end + 2) == bytes.end()
             ? "truncated: its end is missing"
             : "";
}

std::string decode_jpeg(std::span<const uint8_t> bytes, Picture& picture) {
  JpegReader reader;
  if (std::string why = reader.open(bytes); !why.empty()) return why;
  const int height = reader.height(), width = reader.width(), channels = reader.channels();
  if (std::string why = reader.read({0, 0, height, width}, 1, channels); !why.empty()) return why;
  picture.height = height;
  picture.width = width;
  picture.channels = channels;
  const size_t line = static_cast<size_t>(width) * static_cast<size_t>(channels);
  picture.pixels.resize(line * static_cast<size_t>(height));
  for (int y = 0; y < height; ++y)
    std::copy_n(reader.pixels() + y * reader.stride(), line, &picture.pixels[line * static_cast<size_t>(y)]);
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
