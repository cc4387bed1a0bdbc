// The bytes of an index sidecar (docs/mrx.md); part of index.cpp and index_build.cpp. All numbers are
// little-endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace millrace::data::index_layout {

inline constexpr char magic[8] = {'M', 'R', 'I', 'N', 'D', 'E', 'X', '\n'};
inline constexpr uint32_t version = 1;
inline constexpr uint32_t most_sections = 65536, most_columns = 4096;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t checksum;  // CRC-32C of the header, this field zero, and of the section entries
  uint64_t samples;
  uint64_t file_size;
  int64_t file_modified;  // nanoseconds since 1970
  uint32_t sections;      // entries that follow
  uint32_t zero;
};
static_assert(sizeof(Header) == 48);

struct SectionEntry {
  uint32_t kind, column;
  uint64_t offset, size;  // in the index; offsets are multiples of 8
  uint32_t checksum;      // CRC-32C of the section
  uint32_t zero;
};
static_assert(sizeof(SectionEntry) == 32);

enum class Section : uint32_t {
  schema = 1,          // JSON: format, columns, small
  offsets = 2,         // u64 a sample
  sizes = 3,           // u64 a sample
  checksums = 4,       // u32 a sample
  key_ends = 5,        // u64 a sample: where its key ends in `keys`
  keys = 6,            // bytes
  values = 7,          // of small column `column`: i64, f64, or u32 numbers of texts
  small_present = 8,   // a bit a sample, the lowest first; left out when all samples have a value
  text_ends = 9,       // u64 a text of the small column's dictionary
  texts = 10,          // bytes
  column_present = 11  // as small_present, of the data set's column `column`
};

uint32_t header_checksum(Header header, std::span<const SectionEntry> sections);

}  // namespace millrace::data::index_layout
