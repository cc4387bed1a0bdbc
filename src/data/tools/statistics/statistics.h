// What is in the data: counts, sizes, what cannot be read, what is there twice.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/feed.h>

namespace millrace::data {

/// A picture of one of several sources.
struct Place {
  int source = 0;
  int64_t index = 0;
  auto operator<=>(const Place&) const = default;
};

/// Pictures that are the same, or look the same.
struct Twins {
  std::vector<Place> places;
  bool classes_differ = false, sources_differ = false;
};

struct PictureStatistics {
  struct OfSource {
    int64_t pictures = 0;
    uint64_t bytes = 0;  // as stored
    std::vector<int64_t> of_class;
    std::map<std::array<int, 3>, int64_t> sizes;  // height, width, channels
    std::vector<double> mean, std;                // of each channel of readable pictures, of values 0…1
    std::vector<BadSample> bad;
  };
  std::vector<OfSource> sources;
  /// Of the same bytes; and of others that look the same.
  std::vector<Twins> same, alike;
};

struct StatisticsOptions {
  /// Hashes of pictures that look the same differ in at most so many bits: 0 to 3.
  int distance = 3;
  int threads = 0;
  std::function<void(int64_t done, int64_t total)> progress;
};

/// Of data sets with pictures, which may have a class_column() (labels.h). Reads and decodes every picture
/// once. Classes of different sources are compared by name.
PictureStatistics picture_statistics(const std::vector<std::shared_ptr<const Dataset>>& sets,
                                     const StatisticsOptions& options = {});

/// Of one column.
struct ColumnStatistics {
  int64_t missing = 0;
  /// Of numbers.
  double least = 0, most = 0, mean = 0, std = 0;
  /// Of sounds these are their seconds, `frequent` their rates and channels; and those that cannot be
  /// decoded, with the first reason.
  int64_t bad = 0;
  std::string why;
  /// Of texts and contents: bytes.
  uint64_t shortest = 0, longest = 0, bytes = 0;
  /// Different numbers or texts, while they are few (else -1), and how often the most frequent of them
  /// appear.
  int64_t different = 0;
  std::vector<std::pair<std::string, int64_t>> frequent;
};
/// In the order of the columns.
std::vector<ColumnStatistics> column_statistics(const Dataset& dataset,
                                                const StatisticsOptions& options = {});

}  // namespace millrace::data
