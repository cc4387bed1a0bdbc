#include "data/formats/formats.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/words.h"
#include "data/formats/text_sniff.h"
#include "data/io/compression.h"
#include "data/io/location.h"

namespace millrace::data {

#include "generated/formats.inc"

Registry<Format>& formats() {
  static Registry<Format> all("format", {MILLRACE_FOUND_FORMATS});
  return all;
}

const Format& register_format(const Format& format) {
  return formats().add(format, {{"matches", format.matches}, {"open", format.open}});
}

const Format* format_of(const RandomAccessFile& file) {
  const Bytes head = file.read(0, std::min<uint64_t>(file.size(), 4096));
  const std::string_view path = without_compression(file.path());
  const bool packed = compression_of(head.view()) != Compression::none;
  for (const Format* format : formats().all()) {
    if (!format->matches(path, head.view())) continue;
    // One that would take anything by its name means what is packed.
    if (!packed || !format->matches(path, {})) return format;
  }
  if (packed) return nullptr;
  const char* const text = text_format(file.read(0, std::min<uint64_t>(file.size(), sniffed_text)).text(),
                                       file.size() <= sniffed_text, is_piped(file.path()));
  return text ? &formats().at(text) : nullptr;
}

std::string format_by_ending(const std::string& path, bool lines) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> called = {
      {{"tsv", "csv"},
       {"tab", "csv"},
       {"ndjson", "jsonl"},
       {"feather", "arrow"},
       {"ipc", "arrow"},
       {"rec", "recordio"},
       {"tfrecords", "tfrecord"},
       {"tar", "webdataset"},
       {"svm", "libsvm"},
       {"svmlight", "libsvm"}}};
  std::string end = lower_case(std::filesystem::path(path).extension().string());
  if (!end.empty()) end.erase(0, 1);
  if (lines && end == "txt") return "text";
  const auto found =
      std::find_if(called.begin(), called.end(), [&](const auto& each) { return each.first == end; });
  return found == called.end() ? end : std::string(found->second);
}

}  // namespace millrace::data
