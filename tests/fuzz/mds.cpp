// Hostile MDS folders: an index and a shard. What opens can be read whole, or says why not.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "data/formats/open_dataset.h"
#include "fuzz/dataset.h"
#include "fuzz/folder.h"

using namespace millrace;

/// Two bytes: the size of the index. One: whether the shard is compressed. The index, in which @ stands for
/// the shard's size; the shard.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const size_t first = std::min<size_t>(size - 3, data[0] * 256u + data[1]), rest = size - 3 - first;
  std::string index;
  for (size_t i = 0; i < first; ++i)
    index += data[3 + i] == '@' ? std::to_string(rest) : std::string(1, static_cast<char>(data[3 + i]));
  const char *used = data[2] & 1 ? "s.zstd" : "s", *other = data[2] & 1 ? "s" : "s.zstd";
  std::filesystem::remove(fuzz::folder() / other);
  fuzz::put("index.json", std::span(reinterpret_cast<const uint8_t*>(index.data()), index.size()));
  fuzz::put(used, std::span(data + 3 + first, rest));
  fuzz::refuse_or_take(
      [&] { fuzz::read_samples(*data::open_dataset((fuzz::folder() / "index.json").string())); });
  return 0;
}
