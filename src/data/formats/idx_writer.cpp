#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "data/formats/idx.h"
#include "data/formats/write_spool.h"
#include "data/table/contents.h"

namespace millrace::data::idx {
namespace {

void put_big_endian(std::string& out, uint64_t bits, int size) {
  for (int i = size - 1; i >= 0; --i) out.push_back(static_cast<char>(bits >> (8 * i)));
}

/// The file of the data, and that of the labels in memory until the end.
class IdxWriter final : public DatasetWriter {
 public:
  IdxWriter(const std::string& path, const std::vector<Column>& columns) : path_(path), spool_(path) {
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
    if (data_ >= 0 && label_ >= 0 && labels_name(path).empty())
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
    spool_.rewind();
    spool_.move_to(file, bytes_);
    if (label_ >= 0) write_labels(labels_name(path_));
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
    write(out.data(), out.size());
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
    write(picture.pixels.data(), picture.pixels.size());
  }

  void write(const void* data, size_t size) {
    spool_.write(data, size);
    bytes_ += size;
  }

  std::string path_;
  WriteSpool spool_;
  int data_ = -1, label_ = -1;
  bool real_ = false, narrow_ = true;
  uint8_t type_ = 0;
  std::vector<int64_t> shape_;
  uint64_t bytes_ = 0;
  int64_t count_ = 0;
  std::vector<double> labels_;
};

}  // namespace

std::unique_ptr<DatasetWriter> create(const std::string& path, const std::vector<Column>& columns) {
  return std::make_unique<IdxWriter>(path, columns);
}

}  // namespace millrace::data::idx
