// The data sets that a recipe names.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <millrace/array.h>

#include "data/codecs/pictures/extent.h"
#include "data/codecs/pictures/frame.h"
#include "data/feed/feed.h"
#include "data/feed/picture_feed.h"
#include "data/formats/open_dataset.h"
#include "data/table/dataset.h"
#include "train/control.h"
#include "train/recipe.h"

namespace millrace::train {

/// Progress of reading: (what, done, total).
using ReadProgress = std::function<void(const std::string& what, int64_t done, int64_t total)>;

/// The data set that a recipe's text names, its ${VARIABLES} expanded. InputError says what to set when the folder of all
/// data is missing.
std::shared_ptr<const data::Dataset> open_set(const std::string& text, const data::OpenOptions& options = {});
/// Pictures with their classes (labels.h). `where`: only samples that this condition is true for; the classes stay all.
std::shared_ptr<const data::Dataset> open_named(const std::string& text, const std::string& where = "");

/// What a recipe trains on, where it has random access: one source, or the sources of data.train by name, one after the other,
/// with all their classes. `parts`: samples of each of those, in the order of their names; empty for one source.
struct TrainingSource {
  std::shared_ptr<const data::Dataset> source;
  std::vector<int64_t> parts;
};
/// `most` > 0: a sample of about so many.
TrainingSource open_training_source(const Recipe& recipe, int64_t most = 0);
/// data.weights of the sources in the order of their names; without any, `parts`.
std::vector<double> shares_of(const Recipe& recipe, const std::vector<int64_t>& parts);
/// The streams of a recipe (data.stream). `tests`: the classes of data.test, where data.classes is empty.
std::unique_ptr<data::Loader> stream_loader(const Recipe& recipe, const std::vector<std::string>& tests);
/// data.classes, ranges such as "0..9" written out; InputError.
std::vector<std::string> classes_of(const Recipe& recipe);

/// What evaluation and prediction look at of each picture: data.resize and data.crop; where neither is given and the first
/// augmentation is a random frame of a size, the middle, with the shorter side resized to that size.
data::FrameRule evaluation_frames(const Recipe& recipe);

/// What a model of that recipe, which takes pictures of `extent`, looks at of a picture of this size: as for evaluation;
/// without data.crop all of it, resized to the model's size. InputError when it is smaller than the crop.
data::Frame prepared_frame(const Recipe& recipe, const data::Extent& extent, int height, int width);

/// A picture file as a model of that recipe takes it, its prepared_frame(): u8 [1, C, H, W]. InputError when it is no good picture or too small, IoError when it cannot be read.
Array load_prepared(const std::string& path, const Recipe& recipe, const data::Extent& extent);

/// Batches for training: in the recipe's order, augmented, whole batches only. InputError names what is wrong with the source.
std::unique_ptr<data::Loader> training_loader(const Recipe& recipe, const TrainingSource& from,
                                              const ReadProgress& progress);

/// The same as a feed for the training loop.
std::unique_ptr<data::PictureFeed> training_pictures(const Recipe& recipe, const TrainingSource& from,
                                                     const ReadProgress& progress);

/// The loader of a training, about to give the batch of a step, counted from 1. Nothing is decoded beforehand, but of a stream
/// all before that step. `journal`: what was changed on the way (control.h).
std::unique_ptr<data::Loader> loader_at_step(const Recipe& recipe, int64_t step,
                                             std::span<const Applied> journal = {});

/// Where the batch of a step, counted from 1, of a training on a feed of whole batches begins; InputError without such a step.
data::Cursor cursor_at_step(const data::Feed& feed, int64_t step);

/// A labelled set to evaluate on: in order, as it is; the last batch is padded.
struct TestSet {
  std::unique_ptr<data::Loader> loader;
  /// From the source's labels to those of the model.
  std::vector<int64_t> labels;
};
/// `extent`: of the model's pictures. InputError when the pictures differ from it or a class is none of the model's.
TestSet open_test_set(std::shared_ptr<const data::Dataset> source, const Recipe& recipe,
                      const std::vector<std::string>& classes, const data::Extent& extent,
                      const ReadProgress& progress);
/// `text`: a path as recipes write it.
TestSet open_test_set(const std::string& text, const Recipe& recipe, const std::vector<std::string>& classes,
                      const data::Extent& extent, const ReadProgress& progress);

/// A test set as a feed.
std::unique_ptr<data::PictureFeed> test_pictures(TestSet set);

/// A random sample of the training pictures, as they are without augmentation.
struct PictureSample {
  Array pictures;  // u8 [N, C, H, W]
  /// Of each channel, of values 0…1; a channel that never changes gets deviation 1.
  std::vector<double> mean, std;
};
PictureSample sample_pictures(const Recipe& recipe, std::shared_ptr<const data::Dataset> source);
/// The same of the first pictures of a stream that was not read yet.
PictureSample sample_stream(const Recipe& recipe, data::Loader& loader);

/// InputError where `bytes` of samples are more than data.memory says. `what` they are, as the message begins; `fix`: what else can be
/// done than to raise it.
void require_memory(const Recipe& recipe, int64_t bytes, const std::string& what, const char* fix);

/// Lines about samples that cannot be read and are not in `named` yet (they are put there): the first few by name, and
/// how many there are in all. Without a cache of decoded pictures more may come up while the data is gone through.
std::vector<std::string> skipped_samples(const data::Feed& feed, std::set<int64_t>& named);
/// A line for each class without a picture that can be read.
std::vector<std::string> empty_classes(const data::Loader& loader);

}  // namespace millrace::train
