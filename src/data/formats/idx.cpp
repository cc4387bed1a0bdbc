#include "data/formats/idx.h"

#include <algorithm>
#include <filesystem>

#include <millrace/file.h>

#include "base/format.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/formats/formats.h"
#include "data/io/beside.h"
#include "data/io/compression.h"
#include "data/io/location.h"

namespace millrace::data {
namespace idx {

std::optional<NumpyType> type_of(uint8_t number) {
  switch (number) {
    case 0x08:
      return NumpyType{'u', 1, false};
    case 0x09:
      return NumpyType{'i', 1, false};
    case 0x0b:
      return NumpyType{'i', 2, true};
    case 0x0c:
      return NumpyType{'i', 4, true};
    case 0x0d:
      return NumpyType{'f', 4, true};
    case 0x0e:
      return NumpyType{'f', 8, true};
    default:
      return std::nullopt;
  }
}

std::string labels_name(const std::string& pictures) {
  const std::filesystem::path path(pictures);
  std::string name = path.filename().string();
  const size_t images = name.rfind("images");
  if (images == std::string::npos) return {};
  name.replace(images, 6, "labels");
  if (const size_t at = name.rfind("idx"); at != std::string::npos && at + 3 < name.size())
    name[at + 3] = '1';
  return (path.parent_path() / name).string();
}

}  // namespace idx

namespace {

/// The labels file of pictures, zipped or not; null when there is none.
std::shared_ptr<const RandomAccessFile> labels_beside(const std::string& pictures) {
  const std::string name = idx::labels_name(pictures);
  if (name.empty() || (is_elsewhere(pictures) && !is_remote(pictures))) return nullptr;
  for (const std::string& candidate :
       {name, name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name + ".gz"})
    if (auto labels = open_beside(candidate)) return labels;
  return nullptr;
}

/// A file: numbers of a type, in rows.
struct Part {
  std::shared_ptr<const RandomAccessFile> file;  // unzipped
  bool packed = false;
  NumpyType type;
  std::vector<int64_t> shape;  // of a row
  int64_t rows = 0;
  uint64_t begin = 0, stride = 0;

  explicit Part(std::shared_ptr<const RandomAccessFile> opened) : file(std::move(opened)) {
    if (is_deflated(file->read(0, std::min<uint64_t>(file->size(), 2)).view())) {
      packed = true;
      file = decompress_file(*file, Compression::gzip, unpacked_limit(file->size()));
    }
    const std::string& path = file->path();
    if (file->size() < 4) fail<InputError>("{}: truncated; copy the file again", path);
    const Bytes head = file->read(0, 4);
    const auto known = idx::type_of(head.data()[2]);
    const size_t rank = head.data()[3];
    if (head.data()[0] != 0 || head.data()[1] != 0 || !known || rank < 1 || rank > 8)
      fail<InputError>("{}: is no IDX file (type {:#x}, rank {}); copy the file again", path, head.data()[2],
                       rank);
    type = *known;
    begin = 4 + 4 * rank;
    if (file->size() < begin) fail<InputError>("{}: truncated; copy the file again", path);
    const Bytes sizes = file->read(4, 4 * rank);
    std::vector<int64_t> all;
    int64_t total = type.size;
    for (size_t i = 0; i < rank; ++i) {
      const uint8_t* p = sizes.data() + 4 * i;
      all.push_back(int64_t{p[0]} << 24 | int64_t{p[1]} << 16 | int64_t{p[2]} << 8 | p[3]);
      if (all.back() == 0 || total > (int64_t{1} << 40) / all.back())
        fail<InputError>("{}: its sizes are zero or too large ({}); the file is damaged", path,
                         fmt::join(all, "x"));
      total *= all.back();
    }
    if (file->size() - begin < static_cast<uint64_t>(total))
      fail<InputError>("{}: truncated: {} of {} bytes; copy the file again", path, file->size() - begin,
                       total);
    rows = all[0];
    stride = static_cast<uint64_t>(total / rows);
    shape.assign(all.begin() + 1, all.end());
    if (holds_pictures() && (shape[0] > 65535 || shape[1] > 65535 || shape[0] * shape[1] > max_pixels))
      fail<InputError>("{}: pictures of {}x{} are too large; the file is damaged", path, shape[1], shape[0]);
  }

  bool holds_pictures() const {
    return type == NumpyType{'u', 1, false} &&
           (shape.size() == 2 || (shape.size() == 3 && (shape[2] == 1 || shape[2] == 3)));
  }
  Bytes row(int64_t i) const { return file->read(begin + static_cast<uint64_t>(i) * stride, stride); }
  Array array(int64_t i) const { return array_from_numpy(type, shape, row(i).view(), file->path()); }
  /// A row of rank 0.
  Value number(int64_t i) const {
    const Array one = array(i);
    return type.kind == 'f' ? Value(one.at(0)) : Value(one.int_at(0));
  }
};

class Idx final : public Dataset {
 public:
  Idx(const std::string& path, const Files& files) : Dataset(path) {
    for (const auto& file : files) {
      Part part(file);
      if (!parts_.empty() && (part.type != parts_[0].type || part.shape != parts_[0].shape))
        fail<InputError>("{}: its rows are not of the type and size of those of {}", file->path(),
                         parts_[0].file->path());
      files_.push_back(part.file);
      starts_.push_back(starts_.back() + part.rows);
      parts_.push_back(std::move(part));
    }
    const Part& first = parts_[0];
    const auto number = first.type.kind == 'f' ? ColumnKind::real : ColumnKind::integer;
    columns_ = {first.holds_pictures() ? Column{"image", ColumnKind::picture}
                : first.shape.empty()  ? Column{"label", number}
                                       : Column{"data", ColumnKind::array}};
    find_labels();
  }

  int64_t count() const override { return starts_.back(); }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return files_; }
  std::string name(int64_t index) const override {
    const auto [part, at] = place(index);
    return fmt::format("{}[{}]", files_[part]->path(), at);
  }
  std::optional<SampleExtent> extent(int64_t index) const override {
    const auto [part, at] = place(index);
    if (parts_[part].packed) return std::nullopt;
    return SampleExtent{part, parts_[part].begin + static_cast<uint64_t>(at) * parts_[part].stride,
                        parts_[part].stride};
  }

  std::string lacks() const override {
    if (columns_[0].name == "label")
      return fmt::format(
          "{}: holds labels; give the file with the pictures (images-idx3), labels are found beside it",
          files_[0]->path());
    if (columns_[0].kind != ColumnKind::picture) return {};
    const std::string name = std::filesystem::path(idx::labels_name(files_[0]->path())).filename().string();
    return fmt::format(
        "{}: no labels file beside it; put {} into the same folder (images-idx3 goes with labels-idx1)",
        files_[0]->path(), name.empty() ? "the labels" : name);
  }

  Value read(int64_t index, size_t column) const override {
    const auto [which, at] = place(index);
    if (column == 1) return labels_.at(which).number(at);
    const Part& part = parts_[which];
    if (part.shape.empty()) return part.number(at);
    if (!part.holds_pictures()) return part.array(at);
    return Pixels{static_cast<int>(part.shape[0]), static_cast<int>(part.shape[1]),
                  part.shape.size() == 3 ? static_cast<int>(part.shape[2]) : 1, part.row(at)};
  }

 private:
  void find_labels() {
    if (columns_[0].name == "label") return;
    for (const Part& part : parts_) {
      auto file = labels_beside(part.file->path());
      if (!file) continue;
      const std::string path = file->path();
      Part labels(std::move(file));
      if (!labels.shape.empty())
        fail<InputError>("{}: holds arrays of rank {}, and not one label a sample", path,
                         labels.shape.size());
      if (labels.rows != part.rows)
        fail<InputError>("{} has {} pictures, but {} has {} labels; the two files do not belong together",
                         part.file->path(), part.rows, path, labels.rows);
      labels_.push_back(std::move(labels));
    }
    if (labels_.empty()) return;
    if (labels_.size() != parts_.size())
      fail<InputError>("{}: only {} of its {} files have a file of labels beside them", path(),
                       labels_.size(), parts_.size());
    for (const Part& labels : labels_)
      if (labels.type.kind != labels_[0].type.kind)
        fail<InputError>("{}: its labels are of another type than those of {}", labels.file->path(),
                         labels_[0].file->path());
    columns_.push_back({"label", labels_[0].type.kind == 'f' ? ColumnKind::real : ColumnKind::integer});
  }

  std::pair<size_t, int64_t> place(int64_t index) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), index);
    if (index < 0 || after == starts_.end()) fail<InternalError>("{}: there is no sample {}", path(), index);
    const auto part = static_cast<size_t>(after - starts_.begin()) - 1;
    return {part, index - starts_[part]};
  }

  std::vector<Part> parts_, labels_;
  std::vector<int64_t> starts_ = {0};
  Files files_;
};

bool matches_idx(std::string_view, std::span<const uint8_t> head) {
  std::vector<uint8_t> inside;
  if (is_deflated(head)) head = inside = deflated_head(head, 4);
  return head.size() >= 4 && head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14 && head[3] >= 1 &&
         head[3] <= 8;
}

}  // namespace

MILLRACE_FORMAT(idx){.name = "idx",
                     .doc = "IDX, as MNIST (-idx3-ubyte, gzipped or not)",
                     .place = 120,
                     .matches = matches_idx,
                     .open = open_as<Idx>,
                     .create = idx::create,
                     .beside = idx::labels_name};

}  // namespace millrace::data
