#include "data/feed/streams/stream_pictures.h"

#include <cmath>

#include "base/format.h"
#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/table/contents.h"
#include "data/table/labels.h"

namespace millrace::data {

StreamPictures::StreamPictures(const Stream& stream, const std::string& source,
                               const std::vector<std::string>& classes, const LoaderOptions& options,
                               const Augmenter& augmenter)
    : stream_(stream),
      source_(source.empty() ? "" : source + ": "),
      weight_(options.sample_weight),
      augmenter_(augmenter),
      rule_{options.resize, options.crop},
      channels_(options.channels),
      class_count_(static_cast<int64_t>(classes.size())) {
  rule_.check();
  if (channels_ != 0 && channels_ != 1 && channels_ != 3)
    fail<InputError>("data.channels = {}: wanted is 1 (grey) or 3 (colour)", channels_);
  for (size_t i = 0; i < classes.size(); ++i) classes_.emplace(classes[i], static_cast<int64_t>(i));
}

namespace {

float weight_of(const Dataset& dataset, const std::string& column) {
  const size_t at = dataset.column(column);
  const Value value = dataset.read(0, at);
  const auto* const integer = std::get_if<int64_t>(&value);
  const auto* const real = std::get_if<double>(&value);
  const double weight = integer ? static_cast<double>(*integer) : real ? *real : -1;
  if (!(weight >= 0) || !std::isfinite(weight))
    fail<InputError>("its {} is {}: a weight is a number from 0 on", column,
                     value_text(value, dataset.columns()[at].kind));
  return static_cast<float>(weight);
}

}  // namespace

/// Opens the picture and finds its class; "" or why it is bad.
std::string StreamPictures::open(const StreamRecord& record, PictureReader& reader, StreamedPicture& picture,
                                 StoredPicture& stored) const {
  picture.name = fmt::format("{}{} (sample {})", source_, stream_.path(), record.at.number);
  if (!record.fault.empty()) return record.fault;
  Value label;
  try {
    const auto dataset = stream_.samples({&record, 1});
    if (dataset->count() != 1) return fmt::format("its bytes hold {} samples", dataset->count());
    if (!dataset->columns().empty() && dataset->columns()[0].name == "__key__")
      picture.name =
          fmt::format("{}{}:{}", source_, stream_.path(), std::get<std::string>(dataset->read(0, 0)));
    stored = stored_picture(Contents(*dataset, ColumnKind::picture).read(0));
    label = class_of(*dataset, 0, label_column(*dataset));
    if (!weight_.empty()) picture.weight = weight_of(*dataset, weight_);
  } catch (const Error& error) {
    return error.what();
  }
  if (const auto* number = std::get_if<int64_t>(&label)) {
    if (*number >= class_count_) return fmt::format("is of class {}, there are {}", *number, class_count_);
    picture.label = *number;
  } else {
    const auto known = classes_.find(std::get<std::string>(label));
    if (known == classes_.end())
      return fmt::format("is of class '{}', which is none of data.classes", std::get<std::string>(label));
    picture.label = known->second;
  }
  return reader.open(stored);
}

Frame StreamPictures::frame_for(const SampleKey* random, const PictureReader& reader,
                                const std::string& name) const {
  if (random && augmenter_.frames()) return augmenter_.frame(reader.height(), reader.width(), *random);
  try {
    return rule_.frame(reader.height(), reader.width());
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", name, error.what());
  }
}

std::string StreamPictures::find_extent(const StreamRecord& record) {
  PictureReader reader;
  StreamedPicture picture;
  StoredPicture stored;
  if (std::string why = open(record, reader, picture, stored); !why.empty()) return why;
  const int channels = channels_for(reader.channels());
  Frame frame = whole_frame(reader.height(), reader.width(), reader.height(), reader.width());
  if (!augmenter_.frames()) frame = frame_for(nullptr, reader, picture.name);
  const Extent extent{channels, frame.keep.height, frame.keep.width};
  std::vector<uint8_t> planes(extent.bytes());
  if (std::string why = reader.load(frame, channels, false, planes.data()); !why.empty()) return why;
  extent_ = augmenter_.frames() ? augmenter_.framed(extent) : extent;
  first_name_ = picture.name;
  return {};
}

void StreamPictures::take_extent(const StreamPictures& from) {
  extent_ = from.extent_;
  first_name_ = from.first_name_;
}

std::string StreamPictures::load(const StreamRecord& record, const SampleKey* random, PictureReader& reader,
                                 StreamedPicture& picture, uint8_t* planes) const {
  StoredPicture stored;
  if (std::string why = open(record, reader, picture, stored); !why.empty()) return why;
  const Frame frame = frame_for(random, reader, picture.name);
  const Picture result{frame.keep.height, frame.keep.width, channels_for(reader.channels()), {}};
  if (result.height == extent_.height && result.width == extent_.width && result.channels == extent_.channels)
    return reader.load(frame, extent_.channels, random && augmenter_.frames(), planes);
  // A bad picture need not fit: its size may be a part of what is damaged.
  std::vector<uint8_t> ignored(result.channels * size_t(result.height) * result.width);
  if (std::string why = reader.load(frame, result.channels, false, ignored.data()); !why.empty()) return why;
  const bool sides = result.height != extent_.height || result.width != extent_.width;
  fail<InputError>(
      "{} is {}, but {} is {}: all pictures must have one size; {}", picture.name, result.size_text(),
      first_name_, Picture{extent_.height, extent_.width, extent_.channels, {}}.size_text(),
      sides
          ? fmt::format("set data.resize = {} to bring them to one", std::min(extent_.height, extent_.width))
          : "set data.channels = 1 (grey) or 3 (colour)");
}

}  // namespace millrace::data
