// Any bytes as an index sidecar: everything that it then says can be read, or it is refused. Its checksums are mended first,
// or nothing would be let through.
#include "data/index/index.h"

#include <cstdlib>
#include <cstring>

#include "base/crc32c.h"
#include "data/index/index_layout.h"
#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::data::index_layout;

namespace {

void mend(std::vector<uint8_t>& bytes) {
  if (bytes.size() < sizeof(Header)) return;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.sections == 0 || header.sections > (bytes.size() - sizeof header) / sizeof(SectionEntry)) return;
  std::vector<SectionEntry> sections(header.sections);
  std::memcpy(sections.data(), bytes.data() + sizeof header, sections.size() * sizeof(SectionEntry));
  for (SectionEntry& section : sections)
    if (section.offset <= bytes.size() && section.size <= bytes.size() - section.offset)
      section.checksum = crc32c(bytes.data() + section.offset, section.size);
  header.checksum = header_checksum(header, sections);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, sections.data(), sections.size() * sizeof(SectionEntry));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  mend(bytes);
  fuzz::refuse_or_take([&] {
    const auto index = Index::parse(Bytes(std::move(bytes)), "fuzz.mrx");
    for (int64_t i = 0; i < index->count(); ++i) {
      (void)std::string(index->key(i));
      for (size_t c = 0; c < index->columns().size(); ++c) (void)index->has(i, c);
      for (const Index::Small& small : index->small()) (void)index->value(small, i);
      if (index->located() &&
          (index->offset(i) > index->file_size() || index->size(i) > index->file_size() - index->offset(i)))
        std::abort();
    }
  });
  return 0;
}
