// Hostile IDX files: pictures and labels are opened and every sample is read, or both are refused.
#include <cstdlib>

#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "fuzz/dataset.h"
#include "fuzz/folder.h"
#include "support/labelled.h"

using namespace millrace;

/// The first two bytes say how many of the rest are the pictures' file; the labels' follows.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  // In memory, which is a hundred times faster; with the labels beside it, which takes files, now and then.
  fuzz::read_file("idx", "t-images-idx3-ubyte", std::vector<uint8_t>(data + 2, data + size));
  if (data[1] % 64 != 34) return 0;
  const size_t pictures = std::min<size_t>(size - 2, data[0] * 256u + data[1]);
  fuzz::put("t-images-idx3-ubyte", std::span(data + 2, pictures));
  fuzz::put("t-labels-idx1-ubyte", std::span(data + 2 + pictures, size - 2 - pictures));
  fuzz::refuse_or_take([&] {
    const auto source = testing::open_labelled((fuzz::folder() / "t-images-idx3-ubyte").string());
    data::Picture picture;
    for (int64_t i = 0; i < source->count(); ++i) {
      if (source->label(i) < 0 || source->label(i) >= static_cast<int64_t>(source->classes().size()))
        std::abort();
      (void)data::decode_picture(source->picture(i), picture);
    }
  });
  return 0;
}
