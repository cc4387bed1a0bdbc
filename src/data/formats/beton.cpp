#include "data/formats/beton.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/number_at.h"
#include "data/formats/content.h"
#include "data/formats/formats.h"

namespace millrace::data {
namespace beton {

uint64_t lay_out(std::vector<Field>& fields) {
  uint64_t at = 0, alignment = 1;
  for (Field& field : fields) {
    const bool packed =
        field.type == FieldType::picture || field.type == FieldType::bytes || field.type == FieldType::json;
    if (!packed) {
      at = (at + 7) / 8 * 8;
      alignment = 8;
    }
    field.offset = at;
    at += field.type == FieldType::picture ? 13 : packed ? 16 : 8;
  }
  return (at + alignment - 1) / alignment * alignment;
}

namespace {

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
      if (field.type == FieldType::real || field.type == FieldType::integer) continue;
      const bool picture = field.type == FieldType::picture;
      const auto pointer = number_at<uint64_t>(bytes + (picture ? 5 : 0));
      std::optional<uint64_t> size;
      if (picture)
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
    const Bytes data = files_[f]->read(parts_[f].metadata + at * stride_ + field.offset,
                                       field.type == FieldType::picture                                  ? 13
                                       : field.type == FieldType::bytes || field.type == FieldType::json ? 16
                                                                                                         : 8);
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
      for (const Field& field : fields_) columns_.push_back({field.name, kind(field.type)});
    } else if (!same(fields, fields_)) {
      fail<InputError>("{}: has other fields than {}", file.path(), files_[0]->path());
    }
  }

  static bool same(const std::vector<Field>& a, const std::vector<Field>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Field& x, const Field& y) {
      return x.type == y.type && x.name == y.name && x.element == y.element && x.shape == y.shape;
    });
  }

  static ColumnKind kind(FieldType type) {
    switch (type) {
      case FieldType::real:
        return ColumnKind::real;
      case FieldType::integer:
        return ColumnKind::integer;
      case FieldType::picture:
        return ColumnKind::picture;
      case FieldType::bytes:
        return ColumnKind::bytes;
      case FieldType::json:
        return ColumnKind::json;
      default:
        return ColumnKind::array;
    }
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
                       .create = beton::create};

}  // namespace millrace::data
