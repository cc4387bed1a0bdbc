// JPEG files of all kinds, for tests of what is decoded of them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>
// jpeglib.h needs FILE from <cstdio>.
#include <jpeglib.h>

#include <millrace/random.h>

#include "data/codecs/pictures/picture.h"

namespace millrace::testing {

struct JpegKind {
  int channels = 3, across = 2, down = 2;  // how many times fewer colours than pixels
  bool progressive = false;
  int restart = 0;  // rows of blocks between restart markers
};

/// A picture with edges and noise, in which every pixel differs from its neighbours.
inline data::Picture make_rough_picture(int height, int width, int channels, uint64_t seed) {
  data::Picture picture{height, width, channels, {}};
  RandomStream random(seed, 2);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        picture.pixels.push_back(
            static_cast<uint8_t>((x / 7 * 40 + y / 5 * (30 + 20 * c) + random.below(60)) % 256));
  return picture;
}

inline std::vector<uint8_t> make_jpeg_of(const data::Picture& picture, const JpegKind& kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 88, TRUE);
  if (picture.channels == 3) {
    info.comp_info[0].h_samp_factor = kind.across;
    info.comp_info[0].v_samp_factor = kind.down;
  }
  if (kind.progressive) jpeg_simple_progression(&info);
  info.restart_in_rows = kind.restart;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.pixels.data() + static_cast<size_t>(picture.width) *
                                                                 picture.channels * info.next_scanline);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::vector<uint8_t> bytes(memory, memory + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return bytes;
}

}  // namespace millrace::testing
