// Making indices: one pass over the samples.
#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/contains.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"
#include "data/table/index.h"
#include "data/table/index_layout.h"
#include "data/table/labels.h"

namespace millrace::data {
using namespace index_layout;
namespace {

constexpr size_t most_text = 255;

/// A column while it grows. A text that is too long ends it.
struct Growing {
  Column column;
  std::optional<size_t> source;  // in the data set; else it is made of pictures and keys
  std::vector<uint64_t> numbers;
  std::vector<uint32_t> codes;
  std::vector<bool> present;
  std::unordered_map<std::string, uint32_t> dictionary;
  std::vector<uint64_t> text_ends;
  std::string texts;
  size_t longest = most_text;
  bool too_long = false;

  void add(const Value& value) {
    present.push_back(true);
    if (column.kind == ColumnKind::text) {
      codes.push_back(Index::no_text);
      const auto* text = std::get_if<std::string>(&value);
      if (!text) return;
      if (text->size() > longest) too_long = true;
      if (too_long) return;
      const auto [at, added] = dictionary.try_emplace(*text, static_cast<uint32_t>(text_ends.size()));
      if (added) {
        texts += *text;
        text_ends.push_back(texts.size());
      }
      codes.back() = at->second;
      return;
    }
    uint64_t bits = 0;
    if (const auto* integer = std::get_if<int64_t>(&value); integer && column.kind == ColumnKind::integer)
      bits = static_cast<uint64_t>(*integer);
    else if (const auto* real = std::get_if<double>(&value); real && column.kind == ColumnKind::real)
      bits = std::bit_cast<uint64_t>(*real);
    else
      present.back() = false;
    numbers.push_back(bits);
  }
};

class Writer {
 public:
  void add(Section kind, uint32_t column, const void* data, size_t size) {
    sections_.push_back({static_cast<uint32_t>(kind), column, bytes_.size(), size, crc32c(data, size), 0});
    const auto* from = static_cast<const uint8_t*>(data);
    if (size > 0) bytes_.insert(bytes_.end(), from, from + size);
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
  }
  template <typename T>
  void add(Section kind, uint32_t column, const std::vector<T>& values) {
    add(kind, column, values.data(), values.size() * sizeof(T));
  }
  void add(Section kind, uint32_t column, const std::string& text) {
    add(kind, column, text.data(), text.size());
  }
  /// Nothing when all bits are set.
  void add_bits(Section kind, uint32_t column, const std::vector<bool>& present) {
    if (!contains(present, false)) return;
    std::vector<uint8_t> bits((present.size() + 7) / 8);
    for (size_t i = 0; i < present.size(); ++i) bits[i / 8] |= static_cast<uint8_t>(present[i] << (i % 8));
    add(kind, column, bits);
  }

  std::vector<uint8_t> finish(uint64_t samples, uint64_t file_size, int64_t modified) {
    const uint64_t begin = sizeof(Header) + sections_.size() * sizeof(SectionEntry);
    for (SectionEntry& section : sections_) section.offset += begin;
    Header header{{}, version, 0, samples, file_size, modified, static_cast<uint32_t>(sections_.size()), 0};
    std::copy(std::begin(magic), std::end(magic), header.magic);
    header.checksum = header_checksum(header, sections_);
    std::vector<uint8_t> out(begin);
    std::memcpy(out.data(), &header, sizeof header);
    std::memcpy(out.data() + sizeof header, sections_.data(), sections_.size() * sizeof(SectionEntry));
    out.insert(out.end(), bytes_.begin(), bytes_.end());
    return out;
  }

 private:
  std::vector<SectionEntry> sections_;
  std::vector<uint8_t> bytes_;
};

class Builder {
 public:
  /// `only`: these small columns, texts of any length; null: all. `file`: what the index is of; null: none.
  Builder(const Dataset& dataset, const std::set<std::string>* only, const RandomAccessFile* file)
      : dataset_(dataset),
        only_(only),
        file_(file),
        key_(key_column(dataset)),
        present_(dataset.columns().size()) {
    for (const std::string& name : small_names(dataset)) {
      if (only ? !only->contains(name) : name == "__key__") continue;
      Growing& small = small_.emplace_back();
      small.source = dataset.find_column(name);
      const bool split = name == "split";
      small.column = small.source ? dataset.columns()[*small.source]
                                  : Column{name, split ? ColumnKind::text : ColumnKind::integer};
      if (only) small.longest = SIZE_MAX;
      sized_ = sized_ || (!small.source && !split);
    }
  }

  std::vector<uint8_t> build(int64_t first, int64_t last,
                             const std::function<void(int64_t, int64_t)>& progress) {
    located_ = file_ && dataset_.extent(first);
    for (int64_t i = first; i < last; ++i) {
      add(i, first);
      if (progress && (i % 1024 == 1023 || i + 1 == last)) progress(i + 1, dataset_.count());
    }
    // A split that not every sample has is none.
    for (Growing& small : small_)
      if (!only_ && !small.source && contains(small.codes, Index::no_text)) small.too_long = true;
    return finish(static_cast<uint64_t>(last - first));
  }

 private:
  void add(int64_t i, int64_t first) {
    std::string key;
    if (key_) key = std::get<std::string>(dataset_.read(i, *key_));
    if (located_) {
      const auto extent = dataset_.extent(i);
      offsets_.push_back(extent->offset);
      sizes_.push_back(extent->size);
      const Bytes bytes = file_->read(extent->offset, extent->size);
      checksums_.push_back(crc32c(bytes.data(), bytes.size()));
    }
    const auto size = sized_ ? size_of_picture(dataset_, i) : std::nullopt;
    for (Growing& small : small_) {
      if (small.source) {
        small.add(read_or_missing(dataset_, i, *small.source));
      } else if (small.column.kind == ColumnKind::text) {
        const auto extent = dataset_.extent(i);
        std::string split = split_of(key, extent ? dataset_.files()[extent->file]->path() : dataset_.path());
        small.add(split.empty() ? Value() : Value(std::move(split)));
      } else {
        small.add(size ? Value(small.column.name == "width" ? size->width : size->height) : Value());
      }
    }
    for (size_t c = 0; c < present_.size(); ++c) present_[c].push_back(dataset_.has(i, c));
    keys_ += key_ ? key : std::to_string(i - first);
    key_ends_.push_back(keys_.size());
  }

  std::vector<uint8_t> finish(uint64_t samples) {
    std::erase_if(small_, [](const Growing& growing) { return growing.too_long; });
    nlohmann::ordered_json schema;
    schema["format"] = dataset_.format();
    try {
      for (size_t c = 0; c < dataset_.columns().size(); ++c)
        if (dataset_.columns()[c] == Column{"label", ColumnKind::text}) (void)dataset_.class_names(c);
    } catch (const InputError& fault) {
      schema["class_fault"] = fault.what();
    }
    schema["columns"] = schema["small"] = nlohmann::ordered_json::array();
    for (const Column& column : dataset_.columns())
      schema["columns"].push_back({{"name", column.name}, {"kind", kind_name(column.kind)}});
    for (const Growing& growing : small_)
      schema["small"].push_back({{"name", growing.column.name}, {"kind", kind_name(growing.column.kind)}});
    Writer writer;
    writer.add(Section::schema, 0, schema.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    if (located_) {
      writer.add(Section::offsets, 0, offsets_);
      writer.add(Section::sizes, 0, sizes_);
      writer.add(Section::checksums, 0, checksums_);
    }
    writer.add(Section::key_ends, 0, key_ends_);
    writer.add(Section::keys, 0, keys_);
    for (uint32_t c = 0; c < small_.size(); ++c) {
      const Growing& growing = small_[c];
      if (growing.column.kind == ColumnKind::text) {
        writer.add(Section::values, c, growing.codes);
        writer.add(Section::text_ends, c, growing.text_ends);
        writer.add(Section::texts, c, growing.texts);
      } else {
        writer.add(Section::values, c, growing.numbers);
        writer.add_bits(Section::small_present, c, growing.present);
      }
    }
    for (uint32_t c = 0; c < present_.size(); ++c) writer.add_bits(Section::column_present, c, present_[c]);
    return writer.finish(samples, file_ ? file_->size() : 0, file_ ? file_->version() : 0);
  }

  const Dataset& dataset_;
  const std::set<std::string>* only_;
  const RandomAccessFile* file_;
  bool located_ = false;  // offsets, sizes and checksums are in it: the samples lie in the file
  std::optional<size_t> key_;
  bool sized_ = false;  // width or height is made of pictures
  std::vector<Growing> small_;
  std::vector<std::vector<bool>> present_;
  std::vector<uint64_t> offsets_, sizes_, key_ends_;
  std::vector<uint32_t> checksums_;
  std::string keys_;
};

}  // namespace

std::string split_of(std::string_view key, const std::string& file) {
  constexpr std::string_view names[] = {"train", "val", "valid", "validation", "test"};
  for (size_t at = 0, slash = key.find('/'); slash != std::string_view::npos;
       at = slash + 1, slash = key.find('/', at))
    for (const std::string_view name : names)
      if (key.substr(at, slash - at) == name) return std::string(name);
  const std::string stem = std::filesystem::path(file).filename().string();
  const std::string_view first = std::string_view(stem).substr(0, stem.find_first_of("-_."));
  for (const std::string_view name : names)
    if (first == name) return std::string(name);
  return {};
}

Value read_or_missing(const Dataset& dataset, int64_t index, size_t column) {
  try {
    return dataset.read(index, column);
  } catch (const InputError&) {
    return {};
  }
}

std::optional<PictureSize> size_of_picture(const Dataset& dataset, int64_t index) {
  for (size_t c = 0; c < dataset.columns().size(); ++c) {
    if (dataset.columns()[c].kind != ColumnKind::picture || !dataset.has(index, c)) continue;
    const Value value = read_or_missing(dataset, index, c);
    if (const auto* pixels = std::get_if<Pixels>(&value)) return PictureSize{pixels->width, pixels->height};
    const auto* bytes = std::get_if<Bytes>(&value);
    return bytes ? picture_size(bytes->view()) : std::nullopt;
  }
  return {};
}

std::vector<IndexResult> write_indices(const Dataset& dataset,
                                       const std::function<void(int64_t, int64_t)>& progress) {
  std::vector<IndexResult> results;
  for (int64_t first = 0; first < dataset.count();) {
    const auto of = dataset.source_file(first);
    if (!of)
      fail<InputError>(
          "{}: its samples have no place of their own in a file (is it compressed as a whole?), so there is "
          "nothing to "
          "index; unpack it first",
          dataset.path());
    int64_t last = first + 1;
    while (last < dataset.count() && dataset.source_file(last) == of) ++last;
    const RandomAccessFile& file = *dataset.files()[*of];
    const std::vector<uint8_t> bytes = Builder(dataset, nullptr, &file).build(first, last, progress);
    const std::filesystem::path path = index_path(file.path());
    write_file(path, bytes);
    results.push_back({path.string(), last - first, bytes.size()});
    first = last;
  }
  return results;
}

std::vector<std::string> small_names(const Dataset& dataset) {
  std::vector<std::string> names;
  bool pictures = false;
  for (const Column& column : dataset.columns()) {
    pictures = pictures || column.kind == ColumnKind::picture;
    if (is_tabular(column.kind)) names.push_back(column.name);
  }
  const auto derive = [&](const char* name) {
    if (!dataset.find_column(name)) names.emplace_back(name);
  };
  if (pictures) {
    derive("width");
    derive("height");
  }
  derive("split");
  return names;
}

std::vector<std::shared_ptr<const Index>> indices_for(const Dataset& dataset,
                                                      const std::set<std::string>& names) {
  std::vector<std::shared_ptr<const Index>> found;
  int64_t samples = 0;
  for (const auto& file : dataset.files()) {
    std::string ignored;
    auto index = open_index(*file, ignored);
    const bool good = index && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
                        return index->small(name) != nullptr;
                      });
    if (!good) break;
    samples += index->count();
    found.push_back(std::move(index));
  }
  if (!found.empty() && found.size() == dataset.files().size() && samples == dataset.count()) return found;
  Bytes bytes(Builder(dataset, &names, nullptr).build(0, dataset.count(), {}));
  return {Index::parse(std::move(bytes), dataset.path())};
}

}  // namespace millrace::data
