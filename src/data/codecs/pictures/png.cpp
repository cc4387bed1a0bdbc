#include "data/codecs/pictures/png.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <png.h>
#include <zlib.h>

#include "base/format.h"

namespace millrace::data {
namespace {

struct PngInput {
  std::span<const uint8_t> bytes;
  size_t at = 0;
  std::jmp_buf escape;
  char message[200] = "";
};

void on_error(png_structp png, png_const_charp message) {
  auto* input = static_cast<PngInput*>(png_get_error_ptr(png));
  std::strncpy(input->message, message, sizeof input->message - 1);
  std::longjmp(input->escape, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, size_t size) {
  auto* input = static_cast<PngInput*>(png_get_io_ptr(png));
  if (size > input->bytes.size() - input->at) png_error(png, "truncated");
  std::memcpy(to, input->bytes.data() + input->at, size);
  input->at += size;
}

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Reads with libpng, whose errors jump to the caller.
const char* read(Reader& reader, Picture& picture) {
  png_structp png = reader.png;
  png_infop info = reader.info;
  // Chunks other than pixels are skipped; text and profiles could be made to unpack to much.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_user_limits(png, 65535, 65535);
  png_set_chunk_malloc_max(png, 1 << 20);
  png_read_info(png, info);
  const png_uint_32 width = png_get_image_width(png, info), height = png_get_image_height(png, info);
  if (int64_t{width} * height > max_pixels) return "the picture is too large (over 134 megapixels)";
  const int type = png_get_color_type(png, info);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) < 8) png_set_expand_gray_1_2_4_to_8(png);
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  picture.height = static_cast<int>(height);
  picture.width = static_cast<int>(width);
  picture.channels = png_get_channels(png, info);
  const size_t line = png_get_rowbytes(png, info);
  if ((picture.channels != 1 && picture.channels != 3) || line != size_t{width} * picture.channels)
    return "its pixels are of an unknown kind";
  picture.pixels.assign(line * height, 0);
  const int passes = png_get_interlace_type(png, info) == PNG_INTERLACE_NONE ? 1 : PNG_INTERLACE_ADAM7_PASSES;
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(png, picture.pixels.data() + line * y, nullptr);
  png_read_end(png, nullptr);
  return nullptr;
}

}  // namespace

bool is_png(std::span<const uint8_t> bytes) {
  return bytes.size() >= 8 && png_sig_cmp(bytes.data(), 0, 8) == 0;
}

std::string decode_png(std::span<const uint8_t> bytes, Picture& picture) {
  PngInput input{bytes, 0, {}, ""};
  Reader reader;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, on_error, on_warning);
  if (reader.png) reader.info = png_create_info_struct(reader.png);
  if (!reader.info) return "there is no memory for it";
  png_set_read_fn(reader.png, &input, on_read);
  if (setjmp(input.escape)) return input.message[0] ? input.message : "damaged";
  const char* why = read(reader, picture);
  return why ? why : "";
}

namespace {

constexpr size_t png_header = 33;  // the signature and the chunk that is always first

/// A chunk with a text, as libpng's simple writer makes none.
std::vector<uint8_t> software_chunk(std::string_view software) {
  std::string content = "tEXtSoftware";
  content += '\0';
  content += software;
  std::vector<uint8_t> chunk;
  const auto number = [&](uint64_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) chunk.push_back(static_cast<uint8_t>(value >> shift));
  };
  number(content.size() - 4);
  chunk.insert(chunk.end(), content.begin(), content.end());
  number(crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
  return chunk;
}

}  // namespace

bool is_png_by(std::span<const uint8_t> bytes, std::string_view software) {
  const std::vector<uint8_t> chunk = software_chunk(software);
  return is_png(bytes) && bytes.size() >= png_header + chunk.size() &&
         std::equal(chunk.begin(), chunk.end(), bytes.begin() + png_header);
}

std::vector<uint8_t> encode_png(const Picture& picture, std::string_view software) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  std::vector<uint8_t> bytes;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, picture.pixels.data(), 0, nullptr)) {
    bytes.resize(size);
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0, nullptr)) {
      bytes.resize(size);
      if (software.empty()) return bytes;
      const std::vector<uint8_t> chunk = software_chunk(software);
      bytes.insert(bytes.begin() + png_header, chunk.begin(), chunk.end());
      return bytes;
    }
  }
  fail<InternalError>("PNG encoding: {}", image.message);
}

}  // namespace millrace::data
