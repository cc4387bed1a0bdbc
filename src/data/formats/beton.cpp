// FFCV's .beton, version 2: read and written (libffcv/ffcv: ffcv/types.py, writer.py,
// memory_allocator.py, fields/). Header: u16 version, u16 fields, u32 page size, u64 samples, u64 place of
// the allocation table. Then 1,041 bytes a field: u8 type, 16 bytes name, 1,024 bytes arguments. Then the
// samples' metadata, a C struct each: float f64, int i64, array u64 place, all aligned; without alignment a
// picture's u8 mode, u16 width, u16 height, u64 place, and u64 place, u64 size of bytes and JSON. Pages
// follow from the next multiple of the page size on: no sample's data straddles two. The allocation table
// {u64 sample, u64 place, u64 size} is last and in no order; only there are the sizes of JPEG files.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/number_at.h"
#include "data/codecs/arrays/numpy_type.h"
#include "data/codecs/pictures/picture_size.h"
#include "data/formats/content.h"
#include "data/formats/formats.h"
#include "data/io/temporary_file.h"

namespace millrace::data {
namespace beton {
namespace {

constexpr uint64_t header_size = 24, descriptor_size = 1041, name_size = 16;
constexpr uint64_t smallest_page = 1 << 21, usual_page = 1 << 23, largest_page = uint64_t{1} << 31;

enum class FieldType : uint8_t { real, integer, picture, bytes, array, json, tensor, custom = 255 };

constexpr std::pair<FieldType, ColumnKind> field_kinds[] = {
    {FieldType::real, ColumnKind::real},       {FieldType::integer, ColumnKind::integer},
    {FieldType::picture, ColumnKind::picture}, {FieldType::bytes, ColumnKind::bytes},
    {FieldType::json, ColumnKind::json},       {FieldType::array, ColumnKind::array}};

ColumnKind kind_of(FieldType of) {
  for (const auto& [type, kind] : field_kinds)
    if (type == of) return kind;
  return ColumnKind::array;  // tensors are, too
}

FieldType type_of(ColumnKind of) {
  if (of == ColumnKind::text) return FieldType::json;  // of FFCV's fields, only JSON says where a text ends
  for (const auto& [type, kind] : field_kinds)
    if (kind == of) return type;
  return FieldType::bytes;
}

struct Field {
  FieldType type = FieldType::real;
  std::string name;
  NumpyType element;           // of arrays
  std::vector<int64_t> shape;  // of arrays
  uint64_t offset = 0;         // in a sample's metadata

  /// Its numbers stand in the metadata; all else lies in the pages.
  bool holds_number() const { return type == FieldType::real || type == FieldType::integer; }
  /// Its size in the metadata.
  uint64_t size() const {
    return type == FieldType::picture ? 13 : type == FieldType::bytes || type == FieldType::json ? 16 : 8;
  }
  /// Where in that the place of what lies in the pages stands.
  uint64_t place() const { return type == FieldType::picture ? 5 : 0; }
};

/// Sets the offsets; the size of a sample's metadata, a multiple of eight when something in it is aligned.
uint64_t lay_out(std::vector<Field>& fields) {
  uint64_t at = 0, alignment = 1;
  for (Field& field : fields) {
    if (field.size() == 8) {
      at = (at + 7) / 8 * 8;
      alignment = 8;
    }
    field.offset = at;
    at += field.size();
  }
  return (at + alignment - 1) / alignment * alignment;
}

/// What the writers keep together; some samples have all of their data in one page.
struct Header {
  uint16_t version = 0, fields = 0;
  uint32_t page = 0;
  uint64_t samples = 0, table = 0;

  explicit Header(const uint8_t* bytes)
      : version(number_at<uint16_t>(bytes)),
        fields(number_at<uint16_t>(bytes + 2)),
        page(number_at<uint32_t>(bytes + 4)),
        samples(number_at<uint64_t>(bytes + 8)),
        table(number_at<uint64_t>(bytes + 16)) {}
  bool plausible() const { return fields > 0 && page >= smallest_page && std::has_single_bit(page); }
};

class Beton final : public Dataset {
 public:
  Beton(const std::string& path, Files files) : Dataset(path), files_(std::move(files)) {
    for (size_t f = 0; f < files_.size(); ++f) add_file(f);
  }

  int64_t count() const override { return static_cast<int64_t>(parts_.back().first + parts_.back().samples); }
  std::string name(int64_t index) const override {
    const auto [f, at] = place(index);
    return fmt::format("{}#{}", files_[f]->path(), at);
  }

  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return files_; }

  /// What its fields take in the pages, which lies together; the metadata where they take nothing, or are
  /// damaged.
  std::optional<SampleExtent> extent(int64_t index) const override {
    const auto [f, at] = place(index);
    const uint64_t metadata = parts_[f].metadata + at * stride_, whole = files_[f]->size();
    const Bytes data = files_[f]->read(metadata, stride_);
    uint64_t begin = UINT64_MAX, end = 0;
    for (const Field& field : fields_) {
      const uint8_t* bytes = data.data() + field.offset;
      if (field.holds_number()) continue;
      const auto pointer = number_at<uint64_t>(bytes + field.place());
      std::optional<uint64_t> size;
      if (field.type == FieldType::picture)
        size = bytes[0] == 1 ? uint64_t{3} * number_at<uint16_t>(bytes + 1) * number_at<uint16_t>(bytes + 3)
                             : allocated(f, pointer);
      else if (field.type == FieldType::bytes || field.type == FieldType::json)
        size = number_at<uint64_t>(bytes + 8);
      else
        size = numpy_bytes(field.element, field.shape, field.name);
      if (!size || pointer > whole || *size > whole - pointer) return SampleExtent{f, metadata, stride_};
      begin = std::min(begin, pointer);
      end = std::max(end, pointer + *size);
    }
    if (begin >= end) return SampleExtent{f, metadata, stride_};
    return SampleExtent{f, begin, end - begin};
  }

  Value read(int64_t index, size_t column) const override {
    const Field& field = fields_.at(column);
    const auto [f, at] = place(index);
    const Bytes data = files_[f]->read(parts_[f].metadata + at * stride_ + field.offset, field.size());
    const uint8_t* bytes = data.data();
    switch (field.type) {
      case FieldType::real:
        return number_at<double>(bytes);
      case FieldType::integer:
        return number_at<int64_t>(bytes);
      case FieldType::picture:
        return picture(f, index, field, bytes);
      case FieldType::bytes:
        return files_[f]->read(number_at<uint64_t>(bytes), number_at<uint64_t>(bytes + 8));
      case FieldType::json: {
        const Bytes text = files_[f]->read(number_at<uint64_t>(bytes), number_at<uint64_t>(bytes + 8));
        const std::string_view json = text.text().substr(0, text.text().find('\0'));
        if (!is_utf8(json)) fail<InputError>("{}: its {} is no UTF-8: damaged", name(index), field.name);
        return std::string(json);
      }
      default: {
        const std::string where = fmt::format("{}: {}", name(index), field.name);
        const uint64_t size = numpy_bytes(field.element, field.shape, where);
        return array_from_numpy(field.element, field.shape,
                                files_[f]->read(number_at<uint64_t>(bytes), size).view(), where);
      }
    }
  }

 private:
  /// A file: its samples and where things are in it.
  struct Part {
    uint64_t first = 0, samples = 0, metadata = 0;
    std::vector<std::pair<uint64_t, uint64_t>> sizes;  // place and size of what is allocated, by place
  };

  [[noreturn]] static void damaged(const RandomAccessFile& file, const std::string& why) {
    fail<InputError>("{}: is no FFCV file, or damaged: {}; copy the file again", file.path(), why);
  }

  void add_file(size_t f) {
    const RandomAccessFile& file = *files_[f];
    if (file.size() < header_size) damaged(file, "the header is cut off");
    const Header header(file.read(0, header_size).data());
    if (header.version != 2)
      fail<InputError>(
          "{}: is of FFCV's version {}, and only version 2 is read here; write it again with ffcv 1.0",
          file.path(), header.version);
    if (!header.plausible()) damaged(file, "the header is none");
    if (header.fields * descriptor_size > file.size() - header_size) damaged(file, "the fields are cut off");
    std::vector<Field> fields;
    for (uint64_t i = 0; i < header.fields; ++i)
      fields.push_back(parse_field(file, file.read(header_size + i * descriptor_size, descriptor_size)));
    const uint64_t stride = lay_out(fields);
    Part part;
    part.first = parts_.empty() ? 0 : parts_.back().first + parts_.back().samples;
    part.samples = header.samples;
    part.metadata = header_size + header.fields * descriptor_size;
    if (header.samples == 0) damaged(file, "it has no samples");
    if (header.samples > (file.size() - part.metadata) / stride)
      damaged(file, "the samples' metadata is cut off");
    read_table(file, header, part);
    parts_.push_back(std::move(part));
    if (f == 0) {
      fields_ = std::move(fields);
      stride_ = stride;
      for (const Field& field : fields_) columns_.push_back({field.name, kind_of(field.type)});
    } else if (!same(fields, fields_)) {
      fail<InputError>("{}: has other fields than {}", file.path(), files_[0]->path());
    }
  }

  static bool same(const std::vector<Field>& a, const std::vector<Field>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Field& x, const Field& y) {
      return x.type == y.type && x.name == y.name && x.element == y.element && x.shape == y.shape;
    });
  }

  static Field parse_field(const RandomAccessFile& file, const Bytes& descriptor) {
    const uint8_t* bytes = descriptor.data();
    Field field;
    const std::string_view name = descriptor.text().substr(1, name_size);
    field.name = name.substr(0, name.find('\0'));
    if (!is_utf8(field.name)) damaged(file, "the name of a field is no text");
    field.type = static_cast<FieldType>(bytes[0]);
    if (field.type == FieldType::custom)
      fail<InputError>(
          "{}: the field '{}' is of a type of its own, which only the Python class that wrote it can read; "
          "write the "
          "file again with FFCV's own fields",
          file.path(), field.name);
    if (bytes[0] > 6) damaged(file, fmt::format("the field '{}' is of type {}", field.name, bytes[0]));
    if (field.type != FieldType::array && field.type != FieldType::tensor) return field;
    const std::string where = fmt::format("{}: field '{}'", file.path(), field.name);
    const uint8_t* arguments = bytes + 1 + name_size;
    for (int d = 0; d < 32; ++d) {
      const auto size = number_at<uint64_t>(arguments + 8 * d);
      if (size >> 47) damaged(file, fmt::format("the field '{}' has an axis of {}", field.name, size));
      field.shape.push_back(static_cast<int64_t>(size));
    }
    while (!field.shape.empty() && field.shape.back() == 0) field.shape.pop_back();
    const auto length = number_at<uint64_t>(arguments + 256);
    const auto type = nlohmann::json::parse(
        descriptor.text().substr(1 + name_size + 264, std::min<uint64_t>(length, 1024 - 264)), nullptr,
        false);
    // [["", "<f4"]], as numpy.dtype.descr is.
    if (!type.is_array() || type.size() != 1 || !type[0].is_array() || type[0].size() != 2 ||
        !type[0][1].is_string())
      damaged(file, fmt::format("the element type of the field '{}' is none", field.name));
    field.element = parse_numpy_type(type[0][1].get<std::string>(), where);
    (void)numpy_bytes(field.element, field.shape, where);
    return field;
  }

  static void read_table(const RandomAccessFile& file, const Header& header, Part& part) {
    if (header.table > file.size() || (file.size() - header.table) % 24 != 0)
      damaged(file, "the allocation table is cut off");
    const Bytes table = file.read(header.table, file.size() - header.table);
    for (uint64_t at = 0; at < table.size(); at += 24) {
      const auto place = number_at<uint64_t>(table.data() + at + 8),
                 size = number_at<uint64_t>(table.data() + at + 16);
      if (place > header.table || size > header.table - place)
        damaged(file, "the allocation table names bytes that are not there");
      part.sizes.emplace_back(place, size);
    }
    std::sort(part.sizes.begin(), part.sizes.end());
  }

  /// The part of a sample and its place there.
  std::pair<size_t, uint64_t> place(int64_t index) const {
    const auto at = static_cast<uint64_t>(index);
    size_t f = parts_.size() - 1;
    while (f > 0 && parts_[f].first > at) --f;
    if (index < 0 || at - parts_[f].first >= parts_[f].samples)
      fail<InternalError>("{}: there is no sample {}", path(), index);
    return {f, at - parts_[f].first};
  }

  Value picture(size_t f, int64_t index, const Field& field, const uint8_t* bytes) const {
    const int mode = bytes[0], width = number_at<uint16_t>(bytes + 1),
              height = number_at<uint16_t>(bytes + 3);
    const auto place = number_at<uint64_t>(bytes + 5);
    if (mode == 1) {
      if (width == 0 || height == 0)
        fail<InputError>("{}: its {} is a picture of {}x{}: damaged", name(index), field.name, width, height);
      return Pixels{
          height, width, 3,
          files_[f]->read(place, uint64_t{3} * static_cast<uint64_t>(width) * static_cast<uint64_t>(height))};
    }
    if (mode != 0)
      fail<InputError>("{}: its {} is stored in the unknown way {}: damaged", name(index), field.name, mode);
    const auto size = allocated(f, place);
    if (!size)
      fail<InputError>("{}: the allocation table has no size of its {}: damaged", name(index), field.name);
    return files_[f]->read(place, *size);
  }

  /// The size of what the allocation table has at this place.
  std::optional<uint64_t> allocated(size_t f, uint64_t place) const {
    // Of several at one place, all but one are empty.
    const auto& sizes = parts_[f].sizes;
    const auto after = std::upper_bound(sizes.begin(), sizes.end(), std::pair{place, UINT64_MAX});
    if (after == sizes.begin() || std::prev(after)->first != place) return std::nullopt;
    return std::prev(after)->second;
  }

  Files files_;
  std::vector<Field> fields_;
  uint64_t stride_ = 0;
  std::vector<Part> parts_;
};

template <typename T>
void put(std::string& at, size_t offset, T value) {
  std::memcpy(at.data() + offset, &value, sizeof value);
}

class BetonWriter final : public DatasetWriter {
 public:
  BetonWriter(const std::string& path, const std::vector<Column>& columns)
      : path_(path), columns_(columns), file_(path), spool_(TemporaryFile::beside(path)) {
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
      if (fields_[c].holds_number()) continue;
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
    const Bytes data = spool_.map();
    const uint8_t* next = data.data();
    for (size_t i = 0; i < places.size(); next += sizes_[i++]) {
      fill(places[i]);
      file_.write(next, sizes_[i]);
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
    spool_.add(content.data(), content.size());
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
    spool_.add(content.data(), content.size());
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
    spool_.add(array.data(), static_cast<size_t>(array.bytes()));
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
        if (!field.holds_number()) all += taken(sizes_[first + n++]);
      if (at % page + all > page) at = (at + page - 1) / page * page;
      for (const Field& field : fields_) {
        if (field.holds_number()) continue;
        put(metadata_, static_cast<uint64_t>(i) * stride_ + field.offset + field.place(), at);
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
  TemporaryFile spool_;  // the data, until it is known where it goes
  uint64_t stride_ = 0, largest_ = 0, total_ = 0;
  std::string metadata_;         // of all samples, without places until the end
  std::vector<uint64_t> sizes_;  // of all data in the spool, in order
  int64_t count_ = 0;
};

}  // namespace
}  // namespace beton

MILLRACE_FORMAT(beton){.name = "beton",
                       .doc = "FFCV (.beton)",
                       .place = 60,
                       .matches =
                           [](std::string_view path, std::span<const uint8_t> head) {
                             if (head.size() < beton::header_size + 1) return false;
                             const beton::Header header(head.data());
                             // Without a magic number, all that is known must fit; a file of another version
                             // by its name.
                             return header.plausible() && (header.version == 2 || path.ends_with(".beton")) &&
                                    (head[beton::header_size] <= 6 || head[beton::header_size] == 255);
                           },
                       .open = open_as<beton::Beton>,
                       .create = create_as<beton::BetonWriter>};

}  // namespace millrace::data
