// Little streams for the tests of their loader.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "data/formats/tar_members.h"
#include "support/pictures.h"
#include "support/refusal.h"

namespace millrace::testing {

inline std::string member(const std::string& name, const std::string& content) {
  return data::tar_header(name, content.size()) + content +
         std::string(data::tar_padding(content.size()), '\0');
}

/// Members of `count` samples: a picture whose bytes begin a JPEG only where it is good, and its class.
inline std::string members(int64_t count, const std::set<int64_t>& bad = {}, int64_t first = 0) {
  std::string tar;
  for (int64_t i = first; i < first + count; ++i) {
    const std::string key = fmt::format("{:05}", i);
    tar +=
        member(key + ".jpg", bad.contains(i) ? "no picture" : make_jpeg(8, 8, 3, static_cast<uint64_t>(i)));
    tar += member(key + ".cls", std::to_string(i % 3));
  }
  return tar;
}
inline const std::string end_mark(1024, '\0');

}  // namespace millrace::testing
