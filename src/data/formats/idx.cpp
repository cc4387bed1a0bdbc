// IDX, the format of MNIST: 0, 0, type (8: bytes), rank, big-endian u32 sizes, data; usually gzipped.
#include <algorithm>
#include <filesystem>
#include <zlib.h>

#include "base/format.h"
#include "data/formats/formats.h"
#include "data/pictures/jpeg.h"

namespace millrace::data {
namespace {

/// A plain or gzipped file (zlib's gzread takes both).
class ZipReader {
 public:
  explicit ZipReader(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) fail<IoError>("{}: cannot be opened; check the path", path);
  }
  ~ZipReader() { gzclose(file_); }
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  /// Up to `size` bytes; less only at the end of the file.
  size_t read(uint8_t* into, size_t size) {
    size_t done = 0;
    while (done < size) {
      const int got =
          gzread(file_, into + done, static_cast<unsigned>(std::min<size_t>(size - done, 1 << 20)));
      int status = Z_OK;
      const char* message = gzerror(file_, &status);
      if (got < 0 || status == Z_BUF_ERROR)
        fail<InputError>("{}: truncated or damaged ({}); copy the file again", path_, message);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

 private:
  std::string path_;
  gzFile file_;
};

struct Idx {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> data;
};

Idx read_idx(const std::string& path, int rank) {
  ZipReader reader(path);
  uint8_t head[4 + 4 * 3];
  if (reader.read(head, 4) != 4 || head[0] != 0 || head[1] != 0)
    fail<InputError>("{}: is no IDX file; copy the file again", path);
  if (head[2] != 8 || head[3] != rank)
    fail<InputError>(
        "{}: IDX type {:#x} of rank {} found, bytes (0x8) of rank {} wanted; {} files are read here", path,
        head[2], head[3], rank, rank == 3 ? "MNIST's images-idx3-ubyte" : "labels-idx1-ubyte");
  if (reader.read(head + 4, 4 * rank) != static_cast<size_t>(4 * rank))
    fail<InputError>("{}: truncated; copy the file again", path);
  Idx idx;
  int64_t total = 1;
  for (int i = 0; i < rank; ++i) {
    const uint8_t* p = head + 4 + 4 * i;
    idx.sizes.push_back(int64_t{p[0]} << 24 | int64_t{p[1]} << 16 | int64_t{p[2]} << 8 | p[3]);
    if (idx.sizes.back() == 0 || total > (int64_t{1} << 40) / idx.sizes.back())
      fail<InputError>("{}: its sizes are zero or too large ({}); the file is damaged", path,
                       fmt::join(idx.sizes, "x"));
    total *= idx.sizes.back();
  }
  // Memory grows with what is really there, whatever the header says.
  constexpr int64_t step = 1 << 24;
  while (static_cast<int64_t>(idx.data.size()) < total) {
    const size_t done = idx.data.size(), want = static_cast<size_t>(std::min<int64_t>(total - done, step));
    idx.data.resize(done + want);
    const size_t got = reader.read(idx.data.data() + done, want);
    if (got < want)
      fail<InputError>("{}: truncated: {} of {} bytes; copy the file again", path, done + got, total);
  }
  return idx;
}

/// "train-images-idx3-ubyte.gz" → "train-labels-idx1-ubyte.gz" (zipped or not), which must exist.
std::string labels_path(const std::string& pictures) {
  const std::filesystem::path path(pictures);
  std::string name = path.filename().string();
  for (const auto& [from, to] : {std::pair{"images", "labels"}, std::pair{"idx3", "idx1"}})
    if (const size_t at = name.rfind(from); at != std::string::npos)
      name.replace(at, std::string(from).size(), to);
  const bool zipped = name.ends_with(".gz");
  const std::string other = zipped ? name.substr(0, name.size() - 3) : name + ".gz";
  if (name != path.filename().string())
    for (const std::string& candidate : {name, other})
      if (auto found = path.parent_path() / candidate; std::filesystem::exists(found)) return found.string();
  fail<InputError>(
      "{}: no labels file beside it; put {} into the same folder (images-idx3 goes with labels-idx1)",
      pictures, name == path.filename().string() ? "the labels" : name);
}

class IdxSource final : public Source {
 public:
  explicit IdxSource(const std::string& path) {
    path_ = path;
    if (path.find("labels") != std::string::npos && path.find("images") == std::string::npos)
      fail<InputError>(
          "{}: holds labels; give the file with the pictures (images-idx3), labels are found beside it",
          path);
    const std::string labels_file = labels_path(path);
    Idx pictures = read_idx(path, 3), labels = read_idx(labels_file, 1);
    if (pictures.sizes[0] != labels.sizes[0])
      fail<InputError>("{} has {} pictures, but {} has {} labels; the two files do not belong together", path,
                       pictures.sizes[0], labels_file, labels.sizes[0]);
    if (pictures.sizes[1] > 65535 || pictures.sizes[2] > 65535 ||
        pictures.sizes[1] * pictures.sizes[2] > max_pixels)
      fail<InputError>("{}: pictures of {}x{} are too large; the file is damaged", path, pictures.sizes[2],
                       pictures.sizes[1]);
    height_ = static_cast<int>(pictures.sizes[1]);
    width_ = static_cast<int>(pictures.sizes[2]);
    pixels_ = std::move(pictures.data);
    labels_ = std::move(labels.data);
    const int top = *std::max_element(labels_.begin(), labels_.end());
    for (int i = 0; i <= top; ++i) classes_.push_back(std::to_string(i));
  }

  int64_t count() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t index) const override { return labels_.at(index); }
  std::string name(int64_t index) const override { return fmt::format("{}[{}]", path_, index); }
  Sample read(int64_t index) const override {
    const size_t size = static_cast<size_t>(height_) * width_;
    Sample sample;
    sample.bytes = std::span(pixels_).subspan(index * size, size);
    sample.height = height_;
    sample.width = width_;
    sample.channels = 1;
    return sample;
  }

 private:
  int height_ = 0, width_ = 0;
  std::vector<uint8_t> pixels_, labels_;
};

}  // namespace

bool is_idx(const std::string& path) {
  try {
    ZipReader reader(path);
    uint8_t head[4];
    return reader.read(head, 4) == 4 && head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14 &&
           head[3] >= 1 && head[3] <= 8;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<Source> open_idx(const std::string& path) { return std::make_unique<IdxSource>(path); }

}  // namespace millrace::data
