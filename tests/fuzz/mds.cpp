// Hostile MDS folders: an index and a shard. What opens can be read whole, or says why not.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "base/format.h"
#include "fuzz/dataset.h"

using namespace millrace;
namespace fs = std::filesystem;

namespace {

/// A folder of this process, in memory where there is such a place, removed at its end.
struct Folder {
  fs::path path = (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
                  fmt::format("millrace-fuzz-{}", ::getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

void put(const fs::path& path, const uint8_t* data, size_t size) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

}  // namespace

/// Two bytes: the size of the index. One: whether the shard is compressed. The index, in which @ stands for the shard's size;
/// the shard.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  if (size < 3) return 0;
  const size_t first = std::min<size_t>(size - 3, data[0] * 256u + data[1]), rest = size - 3 - first;
  std::string index;
  for (size_t i = 0; i < first; ++i)
    index += data[3 + i] == '@' ? std::to_string(rest) : std::string(1, static_cast<char>(data[3 + i]));
  const char *used = data[2] & 1 ? "s.zstd" : "s", *other = data[2] & 1 ? "s" : "s.zstd";
  fs::remove(folder.path / other);
  put(folder.path / "index.json", reinterpret_cast<const uint8_t*>(index.data()), index.size());
  put(folder.path / used, data + 3 + first, rest);
  fuzz::refuse_or_take(
      [&] { fuzz::read_samples(*data::open_dataset((folder.path / "index.json").string())); });
  return 0;
}
