// Inputs of a task: what a model is given. Each kind of input is one file in inputs/.
//
// What an input's life is like: learn() looks at the training data once, or load() takes what was learnt from
// a checkpoint; part() makes the arrays of samples on the host; graph() goes from these to the first tensors
// of the architecture, the same in training, evaluation, prediction and export.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/feed.h>
#include <millrace/nn.h>
#include <millrace/picture.h>
#include <millrace/settings.h>
#include <millrace/tensor.h>

#include "base/registry.h"
#include "task/reading.h"

namespace millrace::data {
class Part;
class RowPlan;
class Stream;
struct RowPick;
}  // namespace millrace::data

namespace millrace::task {

struct InputKind;
class Continuable;

/// Texts that an exported model turns into ids by itself (ai.onnx.ml's LabelEncoder): column `column` of the
/// array `field`.
struct ExportedTexts {
  std::string field;
  int64_t column = 0;
  std::string name;                                  // of the column of the table
  std::vector<std::pair<std::string, int64_t>> ids;  // each text's, from 1 on; anything else is id 0
};

/// What the texts of a setting are made of, for help.
struct SettingWords {
  struct Word {
    std::string usage, doc;
    std::vector<Setting> settings;
  };
  std::string title, setting;  // "Augmentations", "augment"
  std::vector<Word> words;
};

/// How samples could be stored to be read in less time.
struct CheaperSamples {
  std::string how;  // "millrace pack --resize 256"; empty: none is known
  double cost = 1;  // so much of what it is now, in CPU time
};

class Input {
 public:
  explicit Input(Section section) : section_(std::move(section)) {}
  virtual ~Input() = default;

  const InputKind& kind() const;
  const std::string& name() const { return section_.name; }
  const Settings& settings() const { return section_.settings; }
  const Section& section() const { return section_; }
  /// What names of its fields begin with: "" of the only input, else "NAME.".
  std::string prefix() const { return section_.name.empty() ? "" : section_.name + "."; }

  /// What was learnt from the training data, as JSON; load() reads it.
  virtual std::string encoding() const = 0;
  /// Lines for the user about what was learnt or opened.
  virtual std::vector<std::string> notes() const { return {}; }
  /// Lines for the user about samples to train or evaluate on: values in them that cannot be read, and what
  /// becomes of these. InputError where nothing of a column can be.
  virtual std::vector<std::string> unreadable(const data::Dataset& /*samples*/) const { return {}; }
  /// Lines for the user about samples to evaluate or predict: what nearly all of them have in a column, and
  /// no sample of training had.
  virtual std::vector<std::string> unknown(const data::Dataset& /*samples*/) const { return {}; }

  /// The arrays that evaluation, prediction and the exported model take, named without the prefix; training
  /// may have more (random masks). The first dimension is `batch`.
  virtual std::vector<data::Field> fields() const = 0;
  /// The names of those that only training has, in the order of its part's fields; graph() gets them behind
  /// the others.
  virtual std::vector<data::Field> training_fields() const { return {}; }
  /// Does the host change samples at random in training?
  virtual bool augments() const { return false; }
  /// Of samples that are values in time: how many a second; else 0.
  virtual int64_t rate() const { return 0; }
  /// From these to what the architecture takes, as operators (`training`: with the arrays of
  /// training_fields() behind).
  virtual std::vector<Tensor> graph(std::span<const Tensor> fields, bool training) const = 0;

  /// Puts what the architecture must know of it into the options: sizes of a sample after graph(),
  /// vocabulary, columns.
  virtual void describe(nn::ModelOptions& options) const = 0;
  /// The architectures that it goes with, the default first ("convnet").
  virtual std::vector<std::string> architectures() const = 0;
  /// Which Architecture::takes it gives: "picture", "tokens", "table".
  virtual std::string gives() const = 0;
  /// The longest rows, where fields have the dimension `length`; else 0.
  virtual int64_t length() const { return 0; }
  /// May rows be longer than that, outside of training? The exported model then takes rows of any length.
  virtual bool any_length() const { return false; }

  /// Its arrays of the samples of a data set. InputError when the data set does not have what it takes.
  virtual std::shared_ptr<const data::Part> part(const Reading& reading, Purpose purpose) const = 0;
  /// The rows of an epoch, where the input decides (corpora, texts in buckets); null: an order of the samples
  /// does. `part`: its own.
  virtual std::unique_ptr<data::RowPlan> rows(const data::Part& part, const Reading& reading, Purpose purpose,
                                              int64_t batch) const;
  /// Does it put rows together by the lengths of all samples, which must be known for that?
  virtual bool plans() const { return false; }
  /// What a recipe says so that it does not ("input.sequences = "padded""); "" where nothing keeps it from
  /// it.
  virtual std::string without_plan() const { return {}; }
  /// Are rows extracts of a corpus, not samples?
  virtual bool cuts() const { return false; }
  /// Bytes of text that one target stands for, of that part; 0 where that says nothing.
  virtual double bytes_per_target(const data::Part& /*part*/) const { return 0; }

  /// Opens what a user names to be predicted: "" when `text` is the sample itself (a text), else InputError
  /// or the data set of paths. Null: `argument` is no path but a sample, which sample_of() makes one of.
  virtual std::shared_ptr<const data::Dataset> open(const Recipe& recipe,
                                                    const std::vector<std::string>& paths) const;
  /// The paths that an argument of `predict` stands for: those in a list, those that a pattern matches.
  virtual std::vector<std::string> paths(const std::string& argument) const { return {argument}; }
  /// May these arguments be opened as one data set (files of one kind)?
  virtual bool together(const std::string& /*path*/) const { return false; }
  /// Is an argument of `predict` a sample as it stands, not a path? InputError for what looks like a file
  /// that is not there.
  virtual bool is_sample(const std::string& /*argument*/) const { return false; }
  /// A data set of one sample, of such an argument.
  virtual std::shared_ptr<const data::Dataset> sample(const std::string& argument) const;

  /// Copies of the arrays of a batch that evaluation also looks at (test-time augmentation): how many ways
  /// there are, 1 for none, and the arrays as way number `view` sees them (0: unchanged).
  virtual int views() const { return 1; }
  virtual std::vector<Array> view(std::span<const Array> arrays, int /*view*/) const {
    return {arrays.begin(), arrays.end()};
  }
  /// How much that view counts in the mean of the logits; the unchanged one counts 1.
  virtual float view_weight(int /*view*/) const { return 1; }

  /// What evaluation makes of a decoded picture of this size, where the first of fields() holds pictures u8
  /// [batch, C, H, W]; nothing where it does not. InputError when the picture is too small.
  virtual std::optional<data::Frame> frame(int /*height*/, int /*width*/) const { return std::nullopt; }
  /// Columns that it looks at, as far as it knows them by name.
  virtual std::vector<std::string> columns() const { return text_columns(); }
  /// Columns that were texts in training, and are texts wherever samples are read.
  virtual std::vector<std::string> text_columns() const { return {}; }

  /// For `data show`: a row as planes u8 [C, H, W] where it can be looked at (a picture, a spectrogram), from
  /// its arrays and what graph() makes of them; else nothing, and text() tells it.
  virtual std::optional<Array> picture(std::span<const Array> /*row*/) const { return std::nullopt; }
  virtual std::string text(std::span<const Array> row) const = 0;

  /// Some thousand samples, for parameters that come from the data (nn::Model::fit): the array of its only
  /// field. Nothing where it has none to offer.
  virtual std::optional<Array> fitting(const Reading& /*reading*/) const { return std::nullopt; }
  /// For going on with a text, token by token (generate.h); null where nothing can follow.
  virtual const Continuable* continuable() const { return nullptr; }
  /// Of ids (of tokens) how many, from 0 on, mean the same to another input; 0 where that cannot be told.
  virtual int64_t shared_ids(const Input& /*other*/) const { return 0; }
  /// A line for `data why`: what stands in a row of extracts.
  virtual std::string row_text(const data::Part& /*part*/, const data::RowPick& /*row*/) const { return {}; }
  virtual CheaperSamples cheaper(const data::Dataset& /*samples*/) const { return {}; }
  /// A line for the user where samples of the test set are among those of training, or nearly, as far as a
  /// second's look tells; else "".
  virtual std::string repeated(const data::Dataset& /*training*/, const data::Dataset& /*tests*/) const {
    return {};
  }
  virtual std::vector<ExportedTexts> exported_texts() const { return {}; }

 protected:
  Section section_;
};

/// A kind of input.
struct InputKind {
  std::string name;  // "picture"
  std::string doc;
  const char* unit = "samples";  // "pictures": what samples are called
  /// Are its samples made of several rows each (data.group)?
  bool groups = false;
  /// The kind of output whose targets it makes itself, where nothing else is there to be predicted
  /// ("tokens"); "" for none.
  std::string targets = {};
  std::vector<Setting> settings;
  /// The setting that names columns which formats of texts (CSV) are to give as they are written, be they
  /// numbers ("007"); "" for none.
  std::string as_written = {};
  /// The setting that names columns which it is not to take; "" for none.
  std::string left_out = {};
  /// Could a data set be its samples? The columns that it would take, empty where it cannot. `taken`: columns
  /// that are others'.
  std::vector<std::string> (*recognise)(const data::Dataset& samples,
                                        const std::vector<std::string>& taken) = nullptr;
  /// How sure it is, where several kinds recognise a data set: the greatest counts.
  int rank = 0;
  /// What no single key can show; InputError without the file's name. May be null.
  void (*check)(const Section& section, const Recipe& recipe) = nullptr;
  /// Where its rows differ in length, and those of similar length are to share a batch: the longest; else 0.
  int64_t (*longest)(const Section& section) = nullptr;
  /// Makes them all of one length, unless the recipe says how long they are.
  void (*pad)(Section& section) = nullptr;
  /// Of a kind whose rows are cut from samples: its rows, of a stream of samples (as it was where it cannot).
  /// Null: rows are samples.
  std::unique_ptr<data::Stream> (*stream)(const Section& section,
                                          std::unique_ptr<data::Stream> samples) = nullptr;
  /// The section is settled. InputError says what is wrong with the data.
  std::unique_ptr<Input> (*learn)(const Section& section, const Reading& reading) = nullptr;
  std::unique_ptr<Input> (*load)(const Section& section, const std::string& encoding) = nullptr;
  /// Comments and lines of a recipe for this data (`millrace init`): keys of the [input] section that suit,
  /// "" for none.
  std::string (*draft)(const data::Dataset& samples, const std::vector<std::string>& columns) = nullptr;
  /// Of a setting whose texts are made of words that have their own meaning. May be null.
  SettingWords (*words)() = nullptr;
};

#define MILLRACE_INPUT(name)                             \
  extern const ::millrace::task::InputKind name##_input; \
  const ::millrace::task::InputKind name##_input

Registry<InputKind>& input_kinds();
/// Adds a kind of input to those of the library. InputError.
const InputKind& register_input(const InputKind& kind);

}  // namespace millrace::task
