// Any bytes as a WebDataset member, by the first byte: .npy, .npz, .ten, msgpack or packed text; read or
// refused.
#include "data/codecs/arrays/npy.h"

#include <cstdlib>

#include "data/formats/tar_values.h"
#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes content(std::vector<uint8_t>(data + 1, data + size));
  const char* extensions[] = {"npy",     "npz",    "ten",     "mp",   "txt.gz",
                              "txt.bz2", "txt.xz", "txt.zst", "json", "cls"};
  const std::string extension = extensions[data[0] % std::size(extensions)];
  for (const std::string& column : member_columns(extension, content))
    fuzz::refuse_or_take([&] {
      const data::Value value = decode_member(extension, split_column(column).second, content);
      // What can be read is written so that it reads the same.
      if (const auto* array = std::get_if<Array>(&value); array && extension == "npy")
        if (!parse_npy(encode_npy(*array)).identical(*array)) std::abort();
    });
  return 0;
}
