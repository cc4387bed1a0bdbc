#include "data/table/index.h"

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/cache_folder.h"
#include "base/crc32c.h"
#include "base/fnv.h"
#include "base/format.h"
#include "base/mapped_file.h"
#include "data/io/location.h"
#include "data/io/open_file.h"
#include "data/table/index_layout.h"

namespace millrace::data {
using namespace index_layout;

/// Checks everything before it is used, so that readers need not.
class IndexParser {
 public:
  IndexParser(Index& index, const std::string& path) : index_(index), path_(path) {}

  void parse() {
    read_header();
    read_schema();
    const auto n = static_cast<size_t>(index_.count_);
    index_.key_ends_ = numbers<uint64_t>(Section::key_ends, 0, n);
    index_.keys_ = text(Section::keys, 0);
    require_ends(index_.key_ends_, index_.keys_.size());
    if (find(Section::offsets, 0)) {
      index_.offsets_ = numbers<uint64_t>(Section::offsets, 0, n);
      index_.sizes_ = numbers<uint64_t>(Section::sizes, 0, n);
      index_.checksums_ = numbers<uint32_t>(Section::checksums, 0, n);
      for (size_t i = 0; i < n; ++i)
        if (index_.offsets_[i] > index_.file_size_ ||
            index_.sizes_[i] > index_.file_size_ - index_.offsets_[i])
          damaged("a sample lies outside of the file");
    }
    for (uint32_t c = 0; c < index_.columns_.size(); ++c)
      index_.present_.push_back(bits(Section::column_present, c));
    for (uint32_t c = 0; c < index_.small_.size(); ++c) read_small(index_.small_[c], c, n);
  }

 private:
  [[noreturn]] void damaged(const char* why) const {
    fail<InputError>("{}: the index is damaged ({}); make it again with millrace data index", path_, why);
  }

  void read_header() {
    const auto bytes = index_.bytes_.view();
    if (bytes.size() < sizeof header_ || std::memcmp(bytes.data(), magic, sizeof magic) != 0)
      damaged("it does not begin like one");
    std::memcpy(&header_, bytes.data(), sizeof header_);
    if (header_.version != version)
      fail<InputError>(
          "{}: index of version {}, this program reads version {}; make it again with millrace data index",
          path_, header_.version, version);
    if (header_.sections == 0 || header_.sections > most_sections ||
        header_.sections > (bytes.size() - sizeof header_) / sizeof(SectionEntry))
      damaged("it is cut off");
    sections_.resize(header_.sections);
    std::memcpy(sections_.data(), bytes.data() + sizeof header_, sections_.size() * sizeof(SectionEntry));
    if (header_.checksum != header_checksum(header_, sections_))
      damaged("the checksum of its header differs");
    for (const SectionEntry& section : sections_) {
      if (section.offset % 8 != 0 || section.offset > bytes.size() ||
          section.size > bytes.size() - section.offset)
        damaged("it is cut off");
      if (crc32c(bytes.data() + section.offset, section.size) != section.checksum)
        damaged("a checksum differs");
      for (uint64_t at = section.offset + section.size; at % 8 != 0 && at < bytes.size(); ++at)
        if (bytes[at] != 0) damaged("what fills up a part");
    }
    if (header_.samples > bytes.size()) damaged("the number of samples");
    index_.count_ = static_cast<int64_t>(header_.samples);
    index_.file_size_ = header_.file_size;
    index_.file_modified_ = header_.file_modified;
  }

  void read_schema() {
    try {
      const auto schema = nlohmann::json::parse(text(Section::schema, 0));
      index_.format_ = schema.at("format").get<std::string>();
      if (schema.contains("class_fault")) index_.class_fault_ = schema["class_fault"].get<std::string>();
      for (const auto& column : schema.at("columns"))
        index_.columns_.push_back(
            {column.at("name").get<std::string>(), kind(column.at("kind").get<std::string>())});
      for (const auto& column : schema.at("small"))
        index_.small_.push_back(
            {{column.at("name").get<std::string>(), kind(column.at("kind").get<std::string>())},
             {},
             {},
             {},
             {},
             {}});
    } catch (const nlohmann::json::exception&) {
      damaged("its schema");
    }
    if (index_.columns_.size() > most_columns || index_.small_.size() > most_columns)
      damaged("too many columns");
  }

  ColumnKind kind(const std::string& name) const {
    for (int k = 0; k <= static_cast<int>(ColumnKind::array); ++k)
      if (name == kind_name(static_cast<ColumnKind>(k))) return static_cast<ColumnKind>(k);
    damaged("a column's kind");
  }

  void read_small(Index::Small& small, uint32_t number, size_t n) {
    small.present = bits(Section::small_present, number);
    switch (small.column.kind) {
      case ColumnKind::integer:
      case ColumnKind::real:
        small.numbers = numbers<uint64_t>(Section::values, number, n);
        return;
      case ColumnKind::text:
        break;
      default:
        damaged("a small column's kind");
    }
    small.codes = numbers<uint32_t>(Section::values, number, n);
    const SectionEntry* ends = find(Section::text_ends, number);
    if (!ends) damaged("a part is missing");
    small.text_ends = numbers<uint64_t>(Section::text_ends, number, ends->size / 8);
    small.texts = text(Section::texts, number);
    require_ends(small.text_ends, small.texts.size());
    for (const uint32_t code : small.codes)
      if (code != Index::no_text && code >= small.text_ends.size()) damaged("a text's number");
  }

  void require_ends(std::span<const uint64_t> ends, size_t size) const {
    uint64_t last = 0;
    for (const uint64_t end : ends) {
      if (end < last || end > size) damaged("an end of a text");
      last = end;
    }
  }

  const SectionEntry* find(Section kind, uint32_t column) const {
    for (const SectionEntry& section : sections_)
      if (section.kind == static_cast<uint32_t>(kind) && section.column == column) return &section;
    return nullptr;
  }
  template <typename T>
  std::span<const T> numbers(Section kind, uint32_t column, size_t count) const {
    const SectionEntry* section = find(kind, column);
    if (!section || section->size != count * sizeof(T)) damaged("a part is missing");
    return {reinterpret_cast<const T*>(index_.bytes_.data() + section->offset), count};
  }
  std::string_view text(Section kind, uint32_t column) const {
    const SectionEntry* section = find(kind, column);
    if (!section) damaged("a part is missing");
    return {reinterpret_cast<const char*>(index_.bytes_.data() + section->offset), section->size};
  }
  std::span<const uint8_t> bits(Section kind, uint32_t column) const {
    if (!find(kind, column)) return {};
    return numbers<uint8_t>(kind, column, (static_cast<size_t>(index_.count_) + 7) / 8);
  }

  Index& index_;
  const std::string& path_;
  Header header_{};
  std::vector<SectionEntry> sections_;
};

std::shared_ptr<const Index> Index::parse(Bytes bytes, const std::string& path) {
  auto index = std::make_shared<Index>();
  // Numbers are read where they lie, which wants their alignment.
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 8 != 0)
    bytes = Bytes(std::vector<uint8_t>(bytes.view().begin(), bytes.view().end()));
  index->bytes_ = std::move(bytes);
  IndexParser(*index, path).parse();
  return index;
}

std::string_view Index::key(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  const uint64_t begin = at == 0 ? 0 : key_ends_[at - 1];
  return keys_.substr(begin, key_ends_[at] - begin);
}

const Index::Small* Index::small(std::string_view name) const {
  for (const Small& small : small_)
    if (small.column.name == name) return &small;
  return nullptr;
}

std::string_view Index::text(const Small& small, uint32_t code) {
  const uint64_t begin = code == 0 ? 0 : small.text_ends[code - 1];
  return small.texts.substr(begin, small.text_ends[code] - begin);
}

Value Index::value(const Small& small, int64_t i) const {
  const auto at = static_cast<size_t>(i);
  if (small.column.kind == ColumnKind::text)
    return small.codes[at] == no_text ? Value() : Value(std::string(text(small, small.codes[at])));
  if (!bit(small.present, i)) return {};
  if (small.column.kind == ColumnKind::real) return std::bit_cast<double>(small.numbers[at]);
  return static_cast<int64_t>(small.numbers[at]);
}

std::filesystem::path index_path(const std::string& file) {
  if (is_piped(file)) fail<InputError>("{}: what a command gives has no index; keep it in a file", file);
  if (!is_remote(file)) return file + ".mrx";
  const auto folder = cache_folder("index");
  if (!folder)
    fail<InputError>("{}: there is no folder for its index; set HOME, XDG_CACHE_HOME or MILLRACE_CACHE",
                     file);
  return *folder / fmt::format("{:016x}.mrx", fnv1a(file));
}

namespace {

std::shared_ptr<const Index> checked_index(Bytes bytes, const std::string& path, const RandomAccessFile& file,
                                           bool old) {
  auto index = Index::parse(std::move(bytes), path);
  if (index->file_size() != file.size() || (!old && index->file_modified() != file.version()))
    fail<InputError>("{}: {} has changed since this index was made; make it again with millrace data index",
                     path, file.path());
  return index;
}

}  // namespace

std::shared_ptr<const Index> open_index(const RandomAccessFile& file, std::string& why, bool old) {
  std::error_code ignored;
  if (is_piped(file.path())) return nullptr;
  try {
    const std::filesystem::path path = index_path(file.path());
    if (std::filesystem::exists(path, ignored)) {
      auto mapped = std::make_shared<const MappedFile>(path);
      const auto bytes = mapped->bytes();
      return checked_index({bytes, std::move(mapped)}, path.string(), file, old);
    }
    if (!is_remote(file.path())) return nullptr;
    // That which a server has beside the file is another's: it was made where the file had another time.
    const std::string beside = file.path() + ".mrx";
    const auto served = open_beside(beside);
    return served ? checked_index(served->read(0, served->size()), beside, file, true) : nullptr;
  } catch (const Error& error) {
    why = fmt::format("{} (it is not used)", error.what());
    return nullptr;
  }
}

uint32_t index_layout::header_checksum(Header header, std::span<const SectionEntry> sections) {
  header.checksum = 0;
  return crc32c(sections.data(), sections.size_bytes(), crc32c(&header, sizeof header));
}

}  // namespace millrace::data
