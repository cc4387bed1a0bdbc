#include "data/feed/picture_part.h"

#include <algorithm>

#include "base/format.h"
#include "base/mapped_file.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "data/io/remote_object.h"
#include "data/table/contents.h"

namespace millrace::data {
namespace {

struct PictureScratch final : Part::Scratch {
  PictureReader reader;
  std::vector<uint8_t> between;
};

PictureScratch& picture_scratch(Part::Scratch* scratch) { return static_cast<PictureScratch&>(*scratch); }

}  // namespace

PicturePart::PicturePart(const Dataset& dataset, PictureOptions options)
    : key_(std::move(options.key)),
      bring_(options.bring && options.wanted),
      augmenter_(options.augment),
      mixer_(options.mix),
      rule_{options.resize, options.crop, key_},
      channels_(options.wanted ? options.wanted->channels : options.channels) {
  rule_.check();
  if (channels_ != 0 && channels_ != 1 && channels_ != 3)
    fail<InputError>("{}.channels = {}: wanted is 1 (grey) or 3 (colour)", key_, channels_);
  if (options.column.empty()) {
    (void)Contents(dataset, ColumnKind::picture);  // says what there is where there are none
  } else {
    column_.emplace(dataset, options.column);
    const Column& column = dataset.columns()[column_->in(dataset)];
    if (column.kind != ColumnKind::picture && column.kind != ColumnKind::bytes)
      fail<InputError>("{}: the column '{}' holds no pictures ({}); there are: {}", dataset.path(),
                       column.name, kind_name(column.kind), columns_text(dataset));
  }
  if (bring_)
    stored_ = *options.wanted;
  else
    find_first(dataset);
  augmenter_.check(stored_);
  result_ = augmenter_.result(stored_);
  if (const auto& wanted = options.wanted;
      wanted && (result_.height != wanted->height || result_.width != wanted->width ||
                 result_.channels != wanted->channels))
    fail<InputError>("{} has pictures of {}×{} with {} channels, the model takes {}×{} with {}",
                     dataset.path(), result_.width, result_.height, result_.channels, wanted->width,
                     wanted->height, wanted->channels);
  fields_ = {{"pictures", {u8, {Dim::named("batch"), result_.channels, result_.height, result_.width}}}};
}

std::unique_ptr<Part::Scratch> PicturePart::scratch() const { return std::make_unique<PictureScratch>(); }

StoredPicture PicturePart::picture_of(const Dataset& from, int64_t index) const {
  if (column_) {
    const Value value = from.read(index, column_->in(from));
    if (std::holds_alternative<std::monostate>(value))
      fail<InputError>("its '{}' is missing", column_->name());
    return stored_picture(value);
  }
  for (size_t c = 0; c < from.columns().size(); ++c)
    if (from.columns()[c].kind == ColumnKind::picture && from.has(index, c))
      return stored_picture(from.read(index, c));
  fail<InputError>("it has no picture");
}

Frame PicturePart::frame_for(const Dataset& from, int64_t index, const SampleKey* random,
                             const PictureReader& reader) const {
  const int height = reader.height(), width = reader.width();
  if (bring_)
    return rule_.crop > 0 ? rule_.frame(height, width)
                          : whole_frame(height, width, stored_.height, stored_.width);
  if (augmenter_.frames())
    return random ? augmenter_.frame(height, width, *random)
                  : whole_frame(height, width, stored_.height, stored_.width);
  try {
    return rule_.frame(height, width);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", from.name(index), error.what());
  }
}

std::string PicturePart::read(const Dataset& from, int64_t index, const SampleKey* random, Scratch* scratch,
                              std::byte* stored) const {
  PictureReader& reader = picture_scratch(scratch).reader;
  StoredPicture picture;
  try {
    picture = picture_of(from, index);
  } catch (const Error& error) {
    return reason_or_rethrow(error, from, index);
  }
  const auto bad = [&](std::string why) {
    require_mapped_file(picture.bytes.data());  // not the picture's fault
    return why;
  };
  if (std::string why = reader.open(picture); !why.empty()) return bad(std::move(why));
  Frame frame;
  try {
    frame = frame_for(from, index, random, reader);
  } catch (const InputError& error) {
    if (bring_) return error.what();
    throw;
  }
  const Picture result{frame.keep.height, frame.keep.width, channels_for(reader.channels()), {}};
  if (result.height != stored_.height || result.width != stored_.width ||
      result.channels != stored_.channels) {
    if (bring_) fail<InternalError>("{}.crop = {} gives other pictures than the model's", key_, rule_.crop);
    const bool sides = result.height != stored_.height || result.width != stored_.width;
    // A bad picture need not fit: its size may be a part of what is damaged.
    std::vector<uint8_t> ignored(result.channels * size_t(result.height) * result.width);
    if (std::string why = reader.load(frame, result.channels, false, ignored.data()); !why.empty())
      return bad(std::move(why));
    fail<InputError>("{} is {}, but {} is {}: all pictures must have one size; {}", from.name(index),
                     result.size_text(), first_name_,
                     Picture{stored_.height, stored_.width, stored_.channels, {}}.size_text(),
                     sides ? fmt::format("set {}.resize = {} to bring them to one", key_,
                                         std::min(stored_.height, stored_.width))
                           : fmt::format("set {}.channels = 1 (grey) or 3 (colour)", key_));
  }
  std::string why =
      reader.load(frame, stored_.channels, augmenter_.frames(), reinterpret_cast<uint8_t*>(stored));
  return why.empty() ? why : bad(std::move(why));
}

void PicturePart::put(const std::byte* stored, const Row& row, Scratch* scratch,
                      std::span<std::byte* const> arrays) const {
  augmenter_.apply(stored_, reinterpret_cast<const uint8_t*>(stored), reinterpret_cast<uint8_t*>(arrays[0]),
                   row.key, picture_scratch(scratch).between);
}

float PicturePart::mix(std::span<std::byte* const> arrays, int64_t count, const SampleKey& batch,
                       Scratch* scratch) const {
  return mixer_.apply(result_, reinterpret_cast<uint8_t*>(arrays[0]), count, batch,
                      picture_scratch(scratch).between);
}

/// The first good picture decides on the size.
void PicturePart::find_first(const Dataset& dataset) {
  PictureReader reader;
  std::vector<uint8_t> planes;
  std::string first_reason = "it is empty";
  for (int64_t i = 0; i < dataset.count(); ++i) {
    std::string why;
    StoredPicture picture;
    try {
      picture = picture_of(dataset, i);
    } catch (const RemoteError&) {
      throw;
    } catch (const Error& error) {
      why = error.what();
    }
    if (why.empty()) why = reader.open(picture);
    if (why.empty()) {
      const int channels = channels_for(reader.channels());
      Frame frame = whole_frame(reader.height(), reader.width(), reader.height(), reader.width());
      if (!augmenter_.frames()) frame = frame_for(dataset, i, nullptr, reader);
      stored_ = {channels, frame.keep.height, frame.keep.width};
      planes.resize(stored_.bytes());
      why = reader.load(frame, channels, false, planes.data());
    }
    if (why.empty()) {
      if (augmenter_.frames()) stored_ = augmenter_.framed(stored_);
      first_name_ = dataset.name(i);
      return;
    }
    require_mapped_file(picture.bytes.data());
    if (i == 0) first_reason = why;
  }
  fail<InputError>("{}: none of its {} pictures can be decoded (the first: {}); are they {} files?",
                   dataset.path(), dataset.count(), first_reason, picture_kinds());
}

std::shared_ptr<const PicturePart> picture_part(const Dataset& dataset, PictureOptions options) {
  return std::make_shared<PicturePart>(dataset, std::move(options));
}

}  // namespace millrace::data
