// Any bytes as a tar: members lie inside the file, or it is refused with an InputError. Checksums of headers
// are mended first, or nothing would be let through.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <millrace/error.h>

#include "data/formats/tar_members.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  for (size_t at = 0; at + 512 <= size; at += 512) {
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < 512; ++i) sum += i < 148 || i >= 156 ? bytes[at + i] : 0u;
    std::snprintf(reinterpret_cast<char*>(&bytes[at + 148]), 8, "%06o", sum);
  }
  try {
    const auto file = millrace::data::memory_file("fuzz.tar", millrace::data::Bytes(bytes, nullptr));
    millrace::data::for_each_tar_member(*file, [&](const millrace::data::TarMember& member) {
      if (member.offset > bytes.size() || member.size > bytes.size() - member.offset) std::abort();
      return true;
    });
  } catch (const millrace::InputError&) {
  }
  return 0;
}
