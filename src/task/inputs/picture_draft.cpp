#include "task/inputs/picture_draft.h"

#include <algorithm>

#include "base/format.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/table/contents.h"

namespace millrace::task {
namespace {

struct PictureSizes {
  int64_t looked = 0;
  int shortest = 0, longest = 0;  // of the shorter sides
  bool one_size = true, grey = false, colour = false;
};

/// Of a few pictures from all over the data.
PictureSizes sizes_of(const data::Dataset& samples, const std::vector<std::string>& columns) {
  PictureSizes sizes;
  int height = 0, width = 0;
  std::vector<size_t> places;
  for (const std::string& column : columns) places.push_back(samples.column(column));
  const int64_t looks = std::min<int64_t>(samples.count(), 32);
  for (int64_t i = 0; i < looks; ++i) try {
      const int64_t index = i * samples.count() / looks;
      const auto has = [&](size_t place) { return samples.has(index, place); };
      const auto place = std::find_if(places.begin(), places.end(), has);
      if (place == places.end()) continue;
      const data::StoredPicture stored = data::stored_picture(samples.read(index, *place));
      data::PictureReader reader;
      if (!reader.open(stored).empty()) continue;
      const int side = std::min(reader.height(), reader.width());
      if (sizes.looked++ == 0) {
        height = reader.height(), width = reader.width();
        sizes.shortest = sizes.longest = side;
      }
      sizes.one_size &= reader.height() == height && reader.width() == width;
      sizes.shortest = std::min(sizes.shortest, side);
      sizes.longest = std::max(sizes.longest, side);
      (reader.channels() == 1 ? sizes.grey : sizes.colour) = true;
    } catch (const Error&) {  // a bad sample; others say enough
    }
  return sizes;
}

}  // namespace

std::string draft_pictures(const data::Dataset& samples, const std::vector<std::string>& columns) {
  const PictureSizes sizes = sizes_of(samples, columns);
  if (sizes.looked == 0) return "";
  std::string text;
  if (columns.size() > 1) text += fmt::format("# columns of pictures: {}\n", fmt::join(columns, ", "));
  if (sizes.grey && sizes.colour) text += "channels = 3  # some are grey, some are of colour\n";
  if (!sizes.one_size || sizes.shortest > 256) {
    const int side = sizes.shortest >= 224 ? 224 : std::max(sizes.shortest / 32 * 32, 32);
    text += fmt::format("# shorter sides of {} to {} pixels\n", sizes.shortest, sizes.longest);
    text += fmt::format(
        "augment = [\"random-resized-crop {}\", \"flip\"]  # no flip where left and right differ\n", side);
    text += fmt::format("resize = {}  # to evaluate: the shorter side, and\ncrop = {}  # the middle of it\n",
                        side * 8 / 7, side);
    return text;
  }
  text += fmt::format("augment = [\"pad-crop {}\"]  # \"flip\" too, where left and right are alike\n",
                      std::max(1, sizes.shortest / 14));
  return text;
}

}  // namespace millrace::task
