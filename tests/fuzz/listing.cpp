// Any bytes as what servers say about their files: S3's pages of a list (XML), WebHDFS's lists and statuses
// (JSON).
#include "data/io/listing.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text(data, size);
  const auto choose = [&](const std::vector<std::string>& names) {
    size_t bytes = 0;
    for (const std::string& name : names) {
      bytes += name.size();
      for (const char* pattern : {"", "deep/", "a*/x-[0-9]?.tar"})
        if (chosen_by(pattern, name) && name.empty()) std::abort();
    }
    if (bytes > size) std::abort();  // nothing is made up
  };
  S3Page page;
  if (parse_s3_page(text, page)) choose(page.keys);
  if (!page.more && !page.token.empty()) std::abort();
  std::vector<std::string> files;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (parse_webhdfs_list(json, files)) choose(files);
  WebHdfsStatus status;
  (void)parse_webhdfs_status(json, status);
  return 0;
}
