#include "task/inputs/picture_colours.h"

#include <algorithm>
#include <vector>

#include <millrace/error.h>

#include "base/format.h"
#include "base/parallel_for.h"
#include "base/size_text.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/picture_size.h"
#include "data/table/contents.h"

namespace millrace::task {
namespace {

/// 1 or 3; 0 of what is no picture.
int channels_of(const data::StoredPicture& stored, data::PictureReader& reader) {
  if (stored.height > 0 || stored.bytes.empty()) return stored.channels;
  const auto size = data::picture_size(stored.bytes);
  if (size && size->channels > 0) return size->channels;
  return reader.open(stored).empty() ? reader.channels() : 0;
}

}  // namespace

std::string PictureColours::note(int channels, bool all) const {
  const int64_t others = channels == 1 ? looked - grey : grey;
  if (others == 0) return "";
  return fmt::format("{} of {} pictures{} {} {}: read as {}", thousands(others), thousands(looked),
                     all ? "" : " that were looked at", others == 1 ? "is" : "are",
                     channels == 1 ? "of colour" : "grey", channels == 1 ? "grey" : "RGB");
}

PictureColours picture_colours(const data::Dataset& samples, const std::string& column, int64_t most) {
  const data::Contents pictures(samples, data::ColumnKind::picture, column);
  const int64_t count = samples.count(), looks = std::min(count, most);
  std::vector<int> found(static_cast<size_t>(looks));
  parallel_parts(looks, 32, 0, [&](int64_t first, int64_t end) {
    data::PictureReader reader;
    for (int64_t i = first; i < end; ++i) try {
        found[static_cast<size_t>(i)] =
            channels_of(data::stored_picture(pictures.read(i * count / looks)), reader);
      } catch (const Error&) {  // a bad sample, which is told of where it is read
      }
  });
  PictureColours colours;
  for (const int channels : found) {
    colours.looked += channels > 0;
    colours.grey += channels == 1;
  }
  return colours;
}

}  // namespace millrace::task
