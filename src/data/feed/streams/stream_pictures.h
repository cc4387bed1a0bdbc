// The pictures of a stream's samples, brought to one size. Part of the loader of streams.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/augment/augment.h"
#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/feed/loader_options.h"
#include "data/formats/streams/stream.h"

namespace millrace::data {

/// A sample with its class, and its weight in the loss; the picture lies elsewhere.
struct StreamedPicture {
  std::string name;
  int64_t label = 0;
  float weight = 1;
};

/// Thread-safe but for find_extent() and take_extent().
class StreamPictures {
 public:
  /// `source`: what names of samples begin with, "" for nothing.
  StreamPictures(const Stream& stream, const std::string& source, const std::vector<std::string>& classes,
                 const LoaderOptions& options, const Augmenter& augmenter);

  /// Takes over the size of a record's picture; "" or why there is none.
  std::string find_extent(const StreamRecord& record);
  /// Takes over the size that others have.
  void take_extent(const StreamPictures& from);
  const Extent& extent() const { return extent_; }

  /// Decodes into `planes` (extent().bytes()); "" or why the sample is bad. `random`: with the random frame that augmentation
  /// begins with, where it does; else the frame of evaluation. InputError when it is good but of another size than the others.
  std::string load(const StreamRecord& record, const SampleKey* random, PictureReader& reader,
                   StreamedPicture& picture, uint8_t* planes) const;

 private:
  std::string open(const StreamRecord& record, PictureReader& reader, StreamedPicture& picture,
                   StoredPicture& stored) const;
  Frame frame_for(const SampleKey* random, const PictureReader& reader, const std::string& name) const;
  int channels_for(int own) const { return channels_ == 0 ? own : channels_; }

  const Stream& stream_;
  std::string source_, weight_;
  const Augmenter& augmenter_;
  FrameRule rule_;
  int channels_;
  Extent extent_;
  std::string first_name_;
  int64_t class_count_;
  std::map<std::string, int64_t, std::less<>> classes_;
};

}  // namespace millrace::data
