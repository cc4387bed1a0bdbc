// What a model without a recipe (an ONNX model) is given: files of arrays, JSON, pictures.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <millrace/session.h>

namespace millrace::task {

/// How pictures become the numbers that a model takes: nothing in an ONNX model says so.
struct PicturePreparation {
  /// "crop": the shorter side becomes 8/7 of the model's, and the middle is cut out (224 of 256); "stretch":
  /// both sides become the model's.
  std::string resize = "crop";
  /// "imagenet": minus ImageNet's means, over its deviations; "unit": 0 to 1; "signed": -1 to 1; "none": 0 to
  /// 255; "": "none" for integers, "imagenet" for three channels, "unit" for one.
  std::string normalise = {};
};

/// Arrays for all of a model's inputs.
struct ModelSample {
  std::string name;  // "cat.jpg", "rows.jsonl#3"
  std::vector<Array> inputs = {};
  std::string why = {};  // not empty: it cannot be read
};

/// Makes samples of what a user names.
class ModelSamples {
 public:
  /// InputError when there is no such preparation.
  ModelSamples(std::vector<SessionValue> inputs, PicturePreparation preparation);

  /// Of arguments: files, those of folders in their place, in the order of their names; and JSON itself.
  static std::vector<std::string> files_of(std::span<const std::string> arguments);

  struct On {
    std::function<void(const ModelSample&)> sample;
    std::function<void(const std::string& name, const std::string& why)> failed;  // one that cannot be read
    std::function<bool()> done = {};  // with a file; false: no other one
  };
  /// Of each file from `first` on: a picture, an array (.npy, of a model with one input), arrays by the
  /// inputs' names (.npz), JSON (an object with the inputs' names, or the value of the only one; in a file,
  /// one in each line of a .jsonl, or itself). In order; while one is worked on, the next ones are read and
  /// decoded by threads of their own.
  void each(std::span<const std::string> files, int64_t first, const On& on) const;

  /// "pictures: the shorter side becomes 256, the middle 224×224 …"; empty when the model takes none.
  std::string preparation() const;

 private:
  std::vector<ModelSample> read(const std::string& path) const;
  std::vector<ModelSample> read_argument(const std::string& argument) const;
  ModelSample picture(const std::string& path, std::span<const uint8_t> bytes) const;
  ModelSample arrays(const std::string& path, std::span<const uint8_t> bytes, bool many) const;
  ModelSample json(const std::string& name, std::string_view text) const;
  void only_input(const std::string& name, const char* what) const;

  std::vector<SessionValue> inputs_;
  PicturePreparation preparation_;
  /// Of the input that takes pictures.
  int64_t channels_ = 0, height_ = 0, width_ = 0;
  bool planes_ = true;          // channels before rows
  std::string why_no_picture_;  // empty: it takes them
};

/// The array as an input of that type takes it: one dimension more in front where a single sample lacks it,
/// numbers converted where none changes but by rounding of floats. TypeError.
Array fit_to_input(const SessionValue& input, const Array& array);

}  // namespace millrace::task
