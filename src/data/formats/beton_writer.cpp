#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/pictures/picture_size.h"
#include "data/formats/beton.h"
#include "data/formats/write_spool.h"

namespace millrace::data::beton {
namespace {

template <typename T>
void put(std::string& at, size_t offset, T value) {
  std::memcpy(at.data() + offset, &value, sizeof value);
}

FieldType type_of(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::integer:
      return FieldType::integer;
    case ColumnKind::real:
      return FieldType::real;
    case ColumnKind::picture:
      return FieldType::picture;
    case ColumnKind::array:
      return FieldType::array;
    case ColumnKind::text:  // of FFCV's fields, only JSON says where a text ends
    case ColumnKind::json:
      return FieldType::json;
    default:
      return FieldType::bytes;
  }
}

class BetonWriter final : public DatasetWriter {
 public:
  BetonWriter(const std::string& path, const std::vector<Column>& columns)
      : path_(path), columns_(columns), file_(path), spool_(path) {
    if (columns.empty()) fail<InputError>("{}: an FFCV file needs a field", path);
    for (const Column& column : columns) {
      const bool ascii = std::all_of(column.name.begin(), column.name.end(), [](char c) { return c > 0; });
      if (column.name.empty() || column.name.size() > name_size || !ascii)
        fail<InputError>("{}: FFCV cannot name a field '{}': 1 to {} ASCII characters are possible", path,
                         column.name, name_size);
      fields_.push_back({type_of(column.kind), column.name, {}, {}, 0});
    }
    stride_ = lay_out(fields_);
  }

  void add(std::span<const Value> values) override {
    std::string metadata(stride_, '\0');
    uint64_t all = 0;
    for (size_t c = 0; c < fields_.size(); ++c) {
      const uint64_t size = encode(values[c], c, metadata);
      if (fields_[c].type == FieldType::real || fields_[c].type == FieldType::integer) continue;
      sizes_.push_back(size);
      all += taken(size);
    }
    if (all > largest_page)
      fail<InputError>("{}: sample {} has {} bytes, an FFCV page at most {}", path_, count_, all,
                       largest_page);
    largest_ = std::max(largest_, all);
    total_ += all;
    metadata_ += metadata;
    ++count_;
  }

  void finish() override {
    if (count_ == 0) fail<InputError>("{}: there are no samples to write", path_);
    const uint64_t page =
        total_ <= smallest_page ? smallest_page : std::max(usual_page, std::bit_ceil(largest_));
    const uint64_t begin = header_size + fields_.size() * descriptor_size + metadata_.size(),
                   pages = (begin + page - 1) / page * page;
    const std::vector<uint64_t> places = allocate(pages, page);
    const uint64_t end = places.empty() ? begin : (places.back() + sizes_.back() + page - 1) / page * page;
    write_header(page, end);
    file_.write(metadata_);
    spool_.rewind();
    for (size_t i = 0; i < places.size(); ++i) {
      fill(places[i]);
      spool_.move_to(file_, sizes_[i]);
    }
    fill(end);
    const size_t per_sample = sizes_.size() / static_cast<size_t>(count_);
    for (size_t i = 0; i < places.size(); ++i) {
      const uint64_t entry[3] = {i / per_sample, places[i], sizes_[i]};
      file_.write(entry, sizeof entry);
    }
    file_.commit();
  }

 private:
  /// Nothing takes a byte, too: FFCV finds sizes by place, so that no two may begin at one.
  static uint64_t taken(uint64_t size) { return std::max<uint64_t>(size, 1); }

  [[noreturn]] void refuse(size_t c, const std::string& why) const {
    fail<InputError>("{}: the {} of sample {}: {}", path_, columns_[c].name, count_, why);
  }

  /// Puts a value's data into the spool and all but its place into the metadata; the size of the data.
  uint64_t encode(const Value& value, size_t c, std::string& metadata) {
    const Field& field = fields_[c];
    if (const auto* real = std::get_if<double>(&value)) return put(metadata, field.offset, *real), 0;
    if (const auto* integer = std::get_if<int64_t>(&value)) return put(metadata, field.offset, *integer), 0;
    if (const auto* array = std::get_if<Array>(&value)) return encode_array(*array, c);
    if (field.type == FieldType::picture) return encode_picture(value, c, metadata);
    std::string text;
    std::string_view content;
    if (const auto* bytes = std::get_if<Bytes>(&value)) content = bytes->text();
    if (const auto* own = std::get_if<std::string>(&value)) {
      text = columns_[c].kind == ColumnKind::text ? json_text(*own) : *own;
      text.push_back('\0');
      content = text;
    }
    if (std::holds_alternative<std::monostate>(value))
      refuse(c, "it is missing, and FFCV has no missing values; leave the column out");
    put(metadata, field.offset + 8, uint64_t{content.size()});
    spool_.write(content.data(), content.size());
    return content.size();
  }

  /// As a JSON string.
  static std::string json_text(const std::string& text) {
    std::string out = "\"";
    for (const char c : text)
      if (c == '"' || c == '\\')
        out += {'\\', c};
      else if (static_cast<unsigned char>(c) < 0x20)
        out += fmt::format("\\u{:04x}", static_cast<int>(c));
      else
        out += c;
    return out + '"';
  }

  uint64_t encode_picture(const Value& value, size_t c, std::string& metadata) {
    int width = 0, height = 0, mode = 0;
    std::span<const uint8_t> content;
    if (const auto* pixels = std::get_if<Pixels>(&value)) {
      if (pixels->channels != 3) refuse(c, "FFCV's pictures are RGB, and it is grey");
      width = pixels->width;
      height = pixels->height;
      mode = 1;
      content = pixels->bytes.view();
    } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
      content = bytes->view();
      const auto size = jpeg_size(content);
      if (!size) refuse(c, "it is no JPEG file, the only encoded pictures of FFCV");
      width = static_cast<int>(size->width);
      height = static_cast<int>(size->height);
    } else {
      refuse(c, "it is missing, and FFCV has no missing values");
    }
    if (width > UINT16_MAX || height > UINT16_MAX)
      refuse(c, fmt::format("{}x{} is larger than FFCV's 65535", width, height));
    const size_t at = fields_[c].offset;
    put(metadata, at, static_cast<uint8_t>(mode));
    put(metadata, at + 1, static_cast<uint16_t>(width));
    put(metadata, at + 3, static_cast<uint16_t>(height));
    spool_.write(content.data(), content.size());
    return content.size();
  }

  /// The first one decides type and shape of all.
  uint64_t encode_array(const Array& array, size_t c) {
    Field& field = fields_[c];
    const std::string where = fmt::format("{}: the {} of sample {}", path_, field.name, count_);
    const NumpyType element = numpy_type_of(array.dtype(), where);
    const std::vector<int64_t> shape = array.shape().sizes();
    if (count_ == 0) {
      if (array.count() == 0 || shape.empty() || shape.size() > 32)
        refuse(c, fmt::format("an array {}; FFCV holds those of 1 to 32 axes that are not empty",
                              array.type().str()));
      field.element = element;
      field.shape = shape;
    } else if (shape != field.shape || element != field.element) {
      refuse(c, fmt::format("an array {} after {} of shape {}; FFCV's arrays are all alike",
                            array.type().str(), field.element.name(), Shape(field.shape).str()));
    }
    spool_.write(array.data(), static_cast<size_t>(array.bytes()));
    return static_cast<uint64_t>(array.bytes());
  }

  /// The places of all data, which also go into the metadata. No sample's straddle two pages.
  std::vector<uint64_t> allocate(uint64_t pages, uint64_t page) {
    std::vector<uint64_t> places;
    uint64_t at = pages;
    for (int64_t i = 0; i < count_; ++i) {
      const size_t first = places.size();
      uint64_t all = 0;
      size_t n = 0;
      for (const Field& field : fields_)
        if (field.type != FieldType::real && field.type != FieldType::integer)
          all += taken(sizes_[first + n++]);
      if (at % page + all > page) at = (at + page - 1) / page * page;
      for (const Field& field : fields_) {
        if (field.type == FieldType::real || field.type == FieldType::integer) continue;
        put(metadata_,
            static_cast<uint64_t>(i) * stride_ + field.offset + (field.type == FieldType::picture ? 5 : 0),
            at);
        places.push_back(at);
        at += taken(sizes_[places.size() - 1]);
      }
    }
    return places;
  }

  void write_header(uint64_t page, uint64_t table) {
    std::string header(header_size, '\0');
    put(header, 0, uint16_t{2});
    put(header, 2, static_cast<uint16_t>(fields_.size()));
    put(header, 4, static_cast<uint32_t>(page));
    put(header, 8, static_cast<uint64_t>(count_));
    put(header, 16, table);
    file_.write(header);
    for (const Field& field : fields_) {
      std::string descriptor(descriptor_size, '\0');
      descriptor[0] = static_cast<char>(field.type);
      descriptor.replace(1, field.name.size(), field.name);
      if (field.type == FieldType::array) {
        const size_t arguments = 1 + name_size;
        for (size_t d = 0; d < field.shape.size(); ++d)
          put(descriptor, arguments + 8 * d, static_cast<uint64_t>(field.shape[d]));
        const std::string type = fmt::format(R"([["", "{}"]])", field.element.descr());
        put(descriptor, arguments + 256, uint64_t{type.size()});
        descriptor.replace(arguments + 264, type.size(), type);
      }
      file_.write(descriptor);
    }
  }

  /// Zeros up to `place`.
  void fill(uint64_t place) {
    static const std::string zeros(1 << 16, '\0');
    while (file_.size() < place)
      file_.write(std::string_view(zeros).substr(0, std::min<uint64_t>(zeros.size(), place - file_.size())));
  }

  std::string path_;
  std::vector<Column> columns_;
  std::vector<Field> fields_;
  AtomicFile file_;
  WriteSpool spool_;
  uint64_t stride_ = 0, largest_ = 0, total_ = 0;
  std::string metadata_;         // of all samples, without places until the end
  std::vector<uint64_t> sizes_;  // of all data in the spool, in order
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<DatasetWriter> create(const std::string& path, const std::vector<Column>& columns) {
  return std::make_unique<BetonWriter>(path, columns);
}

}  // namespace millrace::data::beton
