// Grey pictures among those of colour.
#pragma once

#include <cstdint>
#include <string>

#include <millrace/dataset.h>

namespace millrace::task {

/// Of some pictures from all over the data, by their headers where these say it.
struct PictureColours {
  int64_t looked = 0, grey = 0;

  /// What most of them are: 1 grey, 3 colour.
  int channels() const { return 2 * grey > looked ? 1 : 3; }
  /// "37 of 1,000 pictures are grey: read as RGB", of those that are not of `channels`; "" where all are.
  std::string note(int channels, bool all) const;
};
/// `column`: as input.column. At most `most` are looked at, always the same.
PictureColours picture_colours(const data::Dataset& samples, const std::string& column, int64_t most);

}  // namespace millrace::task
