// Where pictures come from: an indexed set of labelled samples with random access.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/codecs/pictures/picture.h"
#include "data/table/value.h"

namespace millrace::data {

/// One sample as it is stored. `bytes` points into the source (which must outlive it), or into `storage` or `owner`.
struct Sample {
  std::span<const uint8_t> bytes;
  std::vector<uint8_t> storage;
  Bytes owner;
  /// Raw pixels (HWC) when height > 0, else an encoded picture.
  int height = 0, width = 0, channels = 0;

  Sample() = default;
  Sample(Sample&&) = default;
  Sample& operator=(Sample&&) = default;
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
};

/// An opened source. All members may be called from many threads at once; indices go from 0 to count() - 1.
class Source {
 public:
  virtual ~Source() = default;

  virtual int64_t count() const = 0;
  /// The class of a sample, an index into classes().
  virtual int64_t label(int64_t index) const = 0;
  /// Where a sample is, for messages: "train.tar:train/cat/0001.jpg".
  virtual std::string name(int64_t index) const = 0;
  /// IoError when it cannot be read.
  virtual Sample read(int64_t index) const = 0;

  /// Says that a sample will be read soon, so that what is far away can be on its way; never fails.
  virtual void will_read(int64_t /*index*/) const {}

  /// What names the sample within the source, wherever that lies: its key, its path below the folder, its number.
  virtual std::string key(int64_t index) const;
  /// What samples have beside their picture and class, and the value of one (extra_columns()[column]).
  virtual std::vector<Column> extra_columns() const { return {}; }
  virtual Value extra(int64_t /*index*/, size_t /*column*/) const { return {}; }

  /// A column of numbers of all samples; InputError when there is none of this name.
  virtual std::vector<double> numbers(const std::string& column) const;

  /// Names of the classes; label i is classes()[i].
  const std::vector<std::string>& classes() const { return classes_; }
  /// What it was opened from.
  const std::string& path() const { return path_; }
  /// What the user should know about how it was opened (Dataset::notes).
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  std::vector<std::string> classes_, notes_;
  std::string path_;
};

/// Opens what `path` names; the format is found from the content:
///  - a folder with a folder of JPEG (or PGM, PPM) files for each class; folders above (train/, test/) are
///  looked through;
///  - a tar of such folders: the label is the name of the last folder, classes are sorted by name;
///  - WebDataset shards: tars of key.jpg + key.cls; several by "train-{000..007}.tar", "train-*.tar", or
///  their folder.
///    Class names come from the sidecar that pack writes (shard_index.h), else they are "0", "1" …;
///  - an IDX file of pictures (MNIST), plain or gzipped, its labels beside it (images-idx3 → labels-idx1);
///  - what open_dataset() reads (dataset.h) and has a column of pictures and one of classes (labelled.h).
/// InputError or IoError, naming the file and what to do, when it is none of these, empty, truncated or
/// damaged.
std::unique_ptr<Source> open_source(const std::string& path);

/// The samples of it that a condition (query.h) is true for; the classes stay those of the whole. InputError also when the format
/// has no columns, or no sample matches.
std::unique_ptr<Source> open_source(const std::string& path, const std::string& where);

/// As open_source(), but of data that has columns also what has no pictures or no classes: then classes() is empty and labels are
/// -1, samples may be empty, and all columns are extra ones. `where` may be empty.
std::unique_ptr<Source> open_samples(const std::string& path, const std::string& where = "");

/// Decodes a sample into `picture`. Returns "" or the reason why it cannot.
[[nodiscard]] std::string decode_sample(const Sample& sample, Picture& picture);

/// Expands "{000..007}", "{a,b}" and the wildcards *, ? and [] to file names in order. A pattern that matches
/// nothing is an InputError; a path without any comes back as it is.
std::vector<std::string> expand_paths(const std::string& pattern);

}  // namespace millrace::data
