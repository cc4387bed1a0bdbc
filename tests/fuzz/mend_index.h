// Index sidecars with their checksums mended, or nothing would be let through.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "data/table/index_layout.h"

namespace millrace::fuzz {

/// `file_size`: of the file that it then says it describes.
inline void mend_index(std::vector<uint8_t>& bytes, std::optional<uint64_t> file_size = std::nullopt) {
  using namespace data::index_layout;
  if (bytes.size() < sizeof(Header)) return;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.sections == 0 || header.sections > (bytes.size() - sizeof header) / sizeof(SectionEntry)) return;
  std::vector<SectionEntry> sections(header.sections);
  std::memcpy(sections.data(), bytes.data() + sizeof header, sections.size() * sizeof(SectionEntry));
  for (SectionEntry& section : sections)
    if (section.offset <= bytes.size() && section.size <= bytes.size() - section.offset)
      section.checksum = crc32c(bytes.data() + section.offset, section.size);
  if (file_size) header.file_size = *file_size;
  header.checksum = header_checksum(header, sections);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, sections.data(), sections.size() * sizeof(SectionEntry));
}

}  // namespace millrace::fuzz
