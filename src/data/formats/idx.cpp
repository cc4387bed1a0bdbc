// IDX, the format of MNIST (yann.lecun.com/exdb/mnist): 0, 0, type, rank, big-endian u32 sizes, big-endian
// data; usually gzipped. Types: 8 u8, 9 i8, 11 i16, 12 i32, 13 f32, 14 f64. Labels of x-images-idx3-ubyte are
// in x-labels-idx1-ubyte.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/file.h>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/arrays/numpy_type.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/jpeg.h"
#include "data/codecs/pictures/picture.h"
#include "data/formats/formats.h"
#include "data/io/compression.h"
#include "data/io/location.h"
#include "data/io/open_file.h"
#include "data/io/temporary_file.h"
#include "data/table/contents.h"

namespace millrace::data {
namespace {

/// Nothing for numbers that are no type.
std::optional<NumpyType> idx_type(uint8_t number) {
  constexpr std::pair<uint8_t, NumpyType> types[] = {{0x08, {'u', 1, false}}, {0x09, {'i', 1, false}},
                                                     {0x0b, {'i', 2, true}},  {0x0c, {'i', 4, true}},
                                                     {0x0d, {'f', 4, true}},  {0x0e, {'f', 8, true}}};
  for (const auto& [known, type] : types)
    if (known == number) return type;
  return std::nullopt;
}

/// "t-images-idx3-ubyte.gz" → "t-labels-idx1-ubyte.gz"; empty where the name says of no images.
std::string idx_labels_name(const std::string& pictures) {
  const std::filesystem::path path(pictures);
  std::string name = path.filename().string();
  const size_t images = name.rfind("images");
  if (images == std::string::npos) return {};
  name.replace(images, 6, "labels");
  if (const size_t at = name.rfind("idx"); at != std::string::npos && at + 3 < name.size())
    name[at + 3] = '1';
  return (path.parent_path() / name).string();
}

/// The labels file of pictures, zipped or not; null when there is none.
std::shared_ptr<const RandomAccessFile> labels_beside(const std::string& pictures) {
  const std::string name = idx_labels_name(pictures);
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
    const auto known = idx_type(head.data()[2]);
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
    const std::string name = std::filesystem::path(idx_labels_name(files_[0]->path())).filename().string();
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

void put_big_endian(std::string& out, uint64_t bits, int size) {
  for (int i = size - 1; i >= 0; --i) out.push_back(static_cast<char>(bits >> (8 * i)));
}

/// The file of the data, and that of the labels in memory until the end.
class IdxWriter final : public DatasetWriter {
 public:
  IdxWriter(const std::string& path, const std::vector<Column>& columns)
      : path_(path), spool_(TemporaryFile::beside(path)) {
    if (path.ends_with(".gz"))
      fail<InputError>("{}: IDX files are written as they are; leave out .gz and zip them with gzip", path);
    for (size_t c = 0; c < columns.size(); ++c) {
      const ColumnKind kind = columns[c].kind;
      const bool number = is_numeric(kind);
      int& place = number ? label_ : data_;
      if (place >= 0 || (!number && kind != ColumnKind::picture && kind != ColumnKind::array) ||
          (number && columns[c].name != "label" && columns.size() > 1))
        fail<InputError>(
            "{}: IDX holds pictures of one size or arrays of one shape, and numbers called label; it has no "
            "place for the column '{}' ({})",
            path, columns[c].name, kind_name(kind));
      place = static_cast<int>(c);
      if (number) real_ = kind == ColumnKind::real;
    }
    if (data_ < 0 && label_ < 0) fail<InputError>("{}: there is no column to write", path);
    if (data_ >= 0 && label_ >= 0 && idx_labels_name(path).empty())
      fail<InputError>(
          "{}: where do the labels go? Call it …-images-idx3-ubyte, and they will be in …-labels-idx1-ubyte "
          "beside it",
          path);
  }

  void add(std::span<const Value> values) override {
    if (label_ >= 0) add_label(values[static_cast<size_t>(label_)]);
    if (data_ >= 0) {
      const Value& value = values[static_cast<size_t>(data_)];
      if (const auto* array = std::get_if<Array>(&value))
        add_array(*array);
      else
        add_picture(value);
    }
    ++count_;
  }

  void finish() override {
    if (count_ == 0) fail<InputError>("{}: there are no samples to write", path_);
    if (data_ < 0) {
      write_labels(path_);
      return;
    }
    AtomicFile file(path_);
    file.write(header(type_, shape_));
    const Bytes data = spool_.map();
    file.write(data.data(), data.size());
    if (label_ >= 0) write_labels(idx_labels_name(path_));
    file.commit();
  }

 private:
  std::string header(uint8_t type, const std::vector<int64_t>& shape) const {
    std::string head = {0, 0, static_cast<char>(type), static_cast<char>(shape.size() + 1)};
    put_big_endian(head, static_cast<uint64_t>(count_), 4);
    for (const int64_t size : shape) put_big_endian(head, static_cast<uint64_t>(size), 4);
    return head;
  }

  void add_label(const Value& value) {
    const auto number = number_value(value);
    if (!number) fail<InputError>("{}: sample {} has no label; IDX keeps one for each", path_, count_);
    if (!real_ && (*number < INT32_MIN || *number > INT32_MAX))
      fail<InputError>("{}: sample {} has the label {}, which IDX's 32-bit integer cannot hold", path_,
                       count_, *number);
    narrow_ &= !real_ && *number >= 0 && *number <= 255;
    labels_.push_back(*number);
  }

  void write_labels(const std::string& path) const {
    std::string out = header(real_ ? 0x0e : narrow_ ? 0x08 : 0x0c, {});
    for (const double label : labels_) {
      uint64_t bits = 0;
      std::memcpy(&bits, &label, sizeof bits);
      if (!real_) bits = static_cast<uint64_t>(static_cast<int64_t>(label));
      put_big_endian(out, bits, real_ ? 8 : narrow_ ? 1 : 4);
    }
    write_file(path, out);
  }

  void require_same(uint8_t type, const std::vector<int64_t>& shape, const std::string& what) {
    if (count_ == 0) {
      type_ = type;
      shape_ = shape;
      return;
    }
    if (type != type_ || shape != shape_)
      fail<InputError>(
          "{}: sample {} is {}, and the first is another size or type: IDX holds only equal ones", path_,
          count_, what);
  }

  void add_array(const Array& array) {
    const DType dtype = array.dtype();
    const uint8_t type = dtype == u8 || dtype == boolean ? 0x08
                         : dtype == i8                   ? 0x09
                         : dtype == i32                  ? 0x0c
                         : dtype == f32                  ? 0x0d
                         : dtype == f64                  ? 0x0e
                                                         : 0;
    if (type == 0)
      fail<InputError>("{}: sample {} is an array of {}, which IDX has no type for", path_, count_,
                       array.type().str());
    std::vector<int64_t> shape;
    for (const Dim& size : array.shape()) shape.push_back(size.size());
    require_same(type, shape, "an array " + array.type().str());
    const int size = static_cast<int>(array.bytes() / std::max<int64_t>(array.count(), 1));
    const auto* from = static_cast<const uint8_t*>(array.data());
    std::string out;
    for (int64_t i = 0; i < array.count(); ++i)
      for (int b = size - 1; b >= 0; --b) out.push_back(static_cast<char>(from[i * size + b]));
    spool_.add(out.data(), out.size());
  }

  void add_picture(const Value& value) {
    if (std::holds_alternative<std::monostate>(value))
      fail<InputError>("{}: sample {} has no picture; IDX keeps one for each", path_, count_);
    Picture picture;
    if (const std::string wrong = decode_picture(stored_picture(value), picture); !wrong.empty())
      fail<InputError>("{}: sample {} is no good picture: {}", path_, count_, wrong);
    std::vector<int64_t> shape = {picture.height, picture.width};
    if (picture.channels != 1) shape.push_back(picture.channels);
    require_same(0x08, shape, "a picture of " + picture.size_text());
    spool_.add(picture.pixels.data(), picture.pixels.size());
  }

  std::string path_;
  TemporaryFile spool_;  // the data, until their number is known
  int data_ = -1, label_ = -1;
  bool real_ = false, narrow_ = true;
  uint8_t type_ = 0;
  std::vector<int64_t> shape_;
  int64_t count_ = 0;
  std::vector<double> labels_;
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
                     .create = create_as<IdxWriter>,
                     .beside = idx_labels_name};

}  // namespace millrace::data
