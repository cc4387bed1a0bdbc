// What is shown beside curves: texts, pictures, histograms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/array.h>

namespace millrace::track {

/// One of the three, of a step.
struct Exhibit {
  std::string tag;   // "weights/conv1"
  std::string file;  // of the run folder that has the newest one, too: "samples.md"; "": none
  std::string text;  // Markdown
  struct Picture {
    std::string png;
    int width = 0, height = 0;
  };
  std::optional<Picture> picture;
  struct Bucket {
    double left = 0, right = 0, count = 0;
  };
  std::vector<Bucket> histogram;
};

/// So many buckets of one width from the least to the greatest value; values that are not finite are left
/// out. Empty where there are none.
std::vector<Exhibit::Bucket> histogram_of(const Array& values, int64_t buckets = 30);

}  // namespace millrace::track
