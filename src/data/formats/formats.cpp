#include "data/formats/formats.h"

#include <algorithm>

namespace millrace::data {

#define KIND(NAME) extern const Format format_##NAME;
#include "generated/formats.inc"
#undef KIND

Registry<Format>& formats() {
#define KIND(NAME) &format_##NAME,
  static Registry<Format> all("format", {
#include "generated/formats.inc"
                                        });
#undef KIND
  return all;
}

const Format& register_format(const Format& format) {
  return formats().add(format, {{"matches", format.matches}, {"open", format.open}});
}

const Format* format_of(const RandomAccessFile& file) {
  const Bytes head = file.read(0, std::min<uint64_t>(file.size(), 4096));
  for (const Format* format : formats().all())
    if (format->matches(file.path(), head.view())) return format;
  return nullptr;
}

}  // namespace millrace::data
