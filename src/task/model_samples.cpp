#include "task/model_samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/thread_pool.h"
#include "base/words.h"
#include "data/codecs/arrays/npy.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/tools/pack/ordered.h"

namespace millrace::task {
namespace {

namespace fs = std::filesystem;

constexpr float kMeans[] = {0.485F, 0.456F, 0.406F}, kDeviations[] = {0.229F, 0.224F, 0.225F};
constexpr int64_t kMostSide = 1 << 14;  // of a picture for a model
constexpr size_t kMostDepth = 32;       // of lists in lists

/// A list of lists of … numbers, row by row.
struct Nested {
  std::vector<int64_t> shape;
  std::vector<double> values;
  std::vector<int64_t> whole;  // of as many, where all are whole numbers that i64 holds

  void add(const nlohmann::json& value, size_t depth, const std::string& where) {
    if (!value.is_array()) {
      if (!value.is_number() && !value.is_boolean())
        fail<InputError>("{}: {} is no number", where, value.dump(-1, ' ', true).substr(0, 40));
      if (depth != shape.size() && closed_)
        fail<InputError>("{}: lists and numbers stand in one list", where);
      closed_ = true;
      values.push_back(value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>());
      const bool large = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
      if (value.is_number_integer() && !large) whole.push_back(value.get<int64_t>());
      return;
    }
    if (depth >= kMostDepth) fail<InputError>("{}: lists lie more than {} deep", where, kMostDepth);
    const auto size = static_cast<int64_t>(value.size());
    if (depth == shape.size()) {
      if (closed_) fail<InputError>("{}: lists and numbers stand in one list", where);
      shape.push_back(size);
      if (size == 0) closed_ = true;
    } else if (shape[depth] != size) {
      fail<InputError>("{}: a list has {} elements, another one beside it {}", where, size, shape[depth]);
    }
    for (const auto& item : value) add(item, depth + 1, where);
  }

 private:
  bool closed_ = false;  // the shape is known
};

Array array_of_json(const nlohmann::json& value, DType dtype, const std::string& where) {
  Nested nested;
  nested.add(value, 0, where);
  Type type{f64, Shape(nested.shape)};
  if (type.shape.count() != static_cast<int64_t>(nested.values.size()))
    fail<InputError>("{}: the lists are not of one depth", where);
  // Large integers would lose digits as floats.
  if (!dtype.is_float() && nested.whole.size() == nested.values.size()) {
    Array integers(i64, type.shape);
    std::copy(nested.whole.begin(), nested.whole.end(), integers.as<int64_t>().begin());
    return integers;
  }
  const Array doubles = Array::of(f64, type.shape, nested.values);
  if (!dtype.is_float()) return doubles;
  return doubles.converted(dtype);
}

bool is_json_text(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && (text[at] == '{' || text[at] == '[');
}

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Array fit_to_input(const SessionValue& input, const Array& array) {
  const Type& wanted = input.type;
  Array fitted = array;
  if (array.shape().rank() + 1 == wanted.shape.rank() &&
      (!wanted.shape[0].is_static() || wanted.shape[0] == 1)) {
    Shape shape = array.shape();
    shape.insert(shape.begin(), Dim(1));
    fitted = array.reshaped(shape);
  }
  if (array.dtype() == wanted.dtype) return fitted;
  Array converted = fitted.converted(wanted.dtype);
  if (!wanted.dtype.is_float())
    for (int64_t i = 0; i < fitted.count(); ++i)
      // As a double 2^63 would be what i64 makes of it, and no u64 is negative.
      if (const double value = fitted.at(i);
          converted.at(i) != value || (value >= 0x1p63 && !fitted.dtype().is_int()))
        fail<TypeError>("'{}' takes {}, and {} is none", input.name, wanted.dtype.name(), value);
  return converted;
}

ModelSamples::ModelSamples(std::vector<SessionValue> inputs, PicturePreparation preparation)
    : inputs_(std::move(inputs)), preparation_(std::move(preparation)) {
  const std::string& resize = preparation_.resize;
  std::string& normalise = preparation_.normalise;
  if (resize != "crop" && resize != "stretch")
    fail<InputError>("--resize {}: choose crop or stretch", resize);
  if (!normalise.empty() && normalise != "imagenet" && normalise != "unit" && normalise != "signed" &&
      normalise != "none")
    fail<InputError>("--normalise {}: choose imagenet, unit, signed or none", normalise);
  if (inputs_.size() != 1) {
    why_no_picture_ = fmt::format("it has {} inputs", inputs_.size());
    return;
  }
  const Type& type = inputs_[0].type;
  const auto channels = [&](int at) { return type.shape[at] == 1 || type.shape[at] == 3; };
  if (type.shape.rank() != 4 || (!channels(1) && !channels(3))) {
    why_no_picture_ =
        fmt::format("its input is {}, and not of 4 dimensions with 1 or 3 channels", type.str());
    return;
  }
  planes_ = channels(1);
  const Dim &height = type.shape[planes_ ? 2 : 1], &width = type.shape[planes_ ? 3 : 2];
  if (!height.is_static() || !width.is_static() || height.size() < 1 || width.size() < 1 ||
      height.size() > kMostSide || width.size() > kMostSide) {
    why_no_picture_ = fmt::format("its input is {}, which does not say a picture's size", type.str());
    return;
  }
  channels_ = type.shape[planes_ ? 1 : 3].size();
  height_ = height.size();
  width_ = width.size();
  if (normalise.empty()) normalise = !type.dtype.is_float() ? "none" : channels_ == 3 ? "imagenet" : "unit";
  if (normalise == "imagenet" && channels_ != 3)
    fail<InputError>("--normalise imagenet is for pictures of 3 channels; the model takes {}", channels_);
  if (normalise != "none" && !type.dtype.is_float())
    fail<InputError>("--normalise {}: the model takes {}, so pictures stay 0 to 255", normalise,
                     type.dtype.name());
}

std::string ModelSamples::preparation() const {
  if (!why_no_picture_.empty()) return "";
  const std::string size = fmt::format("{}×{}", width_, height_);
  const std::string numbers = preparation_.normalise == "imagenet" ? "ImageNet's means and deviations"
                              : preparation_.normalise == "unit"   ? "0 to 1"
                              : preparation_.normalise == "signed" ? "-1 to 1"
                                                                   : "0 to 255";
  return fmt::format(
      "pictures: {}, {}, numbers by {} (--resize, --normalise)", channels_ == 3 ? "colour" : "grey",
      preparation_.resize == "crop" ? "resized, the middle " + size : "resized to " + size, numbers);
}

void ModelSamples::only_input(const std::string& name, const char* what) const {
  if (inputs_.size() == 1) return;
  std::string names;
  for (const SessionValue& input : inputs_) names += (names.empty() ? "" : ", ") + input.name;
  fail<InputError>(
      "{}: {}, but the model has {} inputs ({}): give them by their names, in a .npz or a JSON object", name,
      what, inputs_.size(), names);
}

ModelSample ModelSamples::picture(const std::string& path, std::span<const uint8_t> bytes) const {
  if (!why_no_picture_.empty())
    fail<InputError>("{}: is a picture, which the model does not take: {}", path, why_no_picture_);
  data::PictureReader reader;
  data::StoredPicture stored;
  stored.bytes = bytes;
  if (const std::string why = reader.open(stored); !why.empty()) fail<InputError>("{}: {}", path, why);
  const int rows = reader.height(), columns = reader.width();
  const int height = static_cast<int>(height_), width = static_cast<int>(width_);
  data::Frame frame = data::whole_frame(rows, columns, height, width);
  if (preparation_.resize == "crop") {
    // As large as it has to be for both sides.
    const double scale =
        std::max(height_ / static_cast<double>(rows), width_ / static_cast<double>(columns)) * 8 / 7;
    frame.height = std::max(height, static_cast<int>(std::lround(rows * scale)));
    frame.width = std::max(width, static_cast<int>(std::lround(columns * scale)));
    if (frame.height > kMostSide || frame.width > kMostSide)
      fail<InputError>("{}: is {}×{}, too long for --resize crop; --resize stretch takes it", path, columns,
                       rows);
    frame.keep = {(frame.height - height) / 2, (frame.width - width) / 2, height, width};
  }
  const int channels = static_cast<int>(channels_);
  const int64_t plane = height_ * width_;
  std::vector<uint8_t> planes(static_cast<size_t>(channels_ * plane) + 64);
  if (const std::string why = reader.load(frame, channels, false, planes.data()); !why.empty())
    fail<InputError>("{}: {}", path, why);
  Array pixels(u8, planes_ ? Shape{1, channels_, height_, width_} : Shape{1, height_, width_, channels_});
  const bool numbers = preparation_.normalise != "none";
  Array array = numbers ? Array(f32, pixels.shape()) : pixels;
  float* const floats = numbers ? array.as<float>().data() : nullptr;
  uint8_t* const bytes_of_pixels = numbers ? nullptr : array.as<uint8_t>().data();
  for (int64_t c = 0; c < channels_; ++c) {
    const std::string& by = preparation_.normalise;
    const float mean = by == "imagenet" ? kMeans[c] : by == "signed" ? 0.5F : 0;
    const float deviation = by == "imagenet" ? kDeviations[c] : by == "signed" ? 0.5F : 1;
    for (int64_t i = 0; i < plane; ++i) {
      const int64_t at = planes_ ? c * plane + i : i * channels_ + c;
      const uint8_t pixel = planes[static_cast<size_t>(c * plane + i)];
      if (numbers)
        floats[at] = (static_cast<float>(pixel) / 255 - mean) / deviation;
      else
        bytes_of_pixels[at] = pixel;
    }
  }
  return {path, {fit_to_input(inputs_[0], array)}};
}

ModelSample ModelSamples::arrays(const std::string& path, std::span<const uint8_t> bytes, bool many) const {
  ModelSample sample{path, {}};
  const auto parsed = [&](const std::function<Array()>& parse) {
    try {
      return parse();
    } catch (const InputError& e) {
      fail<InputError>("{}: {}", path, e.what());
    }
  };
  if (!many) {
    only_input(path, "is one array");
    sample.inputs = {fit_to_input(inputs_[0], parsed([&] { return data::parse_npy(bytes); }))};
    return sample;
  }
  for (const SessionValue& input : inputs_)
    sample.inputs.push_back(fit_to_input(input, parsed([&] { return data::parse_npz(bytes, input.name); })));
  return sample;
}

ModelSample ModelSamples::json(const std::string& name, std::string_view text) const {
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) fail<InputError>("{}: is no JSON", name);
  ModelSample sample{name, {}};
  if (!value.is_object()) {
    only_input(name, "is one list");
    sample.inputs = {fit_to_input(inputs_[0], array_of_json(value, inputs_[0].type.dtype, name))};
    return sample;
  }
  for (const SessionValue& input : inputs_) {
    const auto at = value.find(input.name);
    if (at == value.end()) fail<InputError>("{}: lacks the model's input '{}'", name, input.name);
    sample.inputs.push_back(
        fit_to_input(input, array_of_json(*at, input.type.dtype, fmt::format("{}: '{}'", name, input.name))));
  }
  return sample;
}

std::vector<ModelSample> ModelSamples::read(const std::string& path) const {
  const std::vector<uint8_t> bytes = read_file(path);
  const std::string_view text = text_of(bytes);
  if (text.starts_with("\x93NUMPY")) return {arrays(path, bytes, false)};
  if (text.starts_with("PK\x03\x04")) return {arrays(path, bytes, true)};
  if (data::is_picture_content(bytes)) return {picture(path, bytes)};
  if (has_ending(path, {".jsonl"})) {
    std::vector<ModelSample> samples;
    int64_t line = 0;
    for (const std::string& one : lines_in(text)) {
      if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::string name = fmt::format("{}#{}", path, line++);
      try {
        samples.push_back(json(name, one));
      } catch (const Error& e) {
        samples.push_back({name, {}, e.what()});
      }
    }
    return samples;
  }
  if (has_ending(path, {".json"}) || is_json_text(text)) return {json(path, text)};
  fail<InputError>("{}: is no picture, .npy, .npz or JSON, which is what a model without a recipe takes",
                   path);
}

std::vector<ModelSample> ModelSamples::read_argument(const std::string& argument) const {
  std::error_code ignored;
  if (is_json_text(argument) && !fs::exists(argument, ignored))
    return {json(argument.size() > 60 ? argument.substr(0, 57) + "…" : argument, argument)};
  return read(argument);
}

std::vector<std::string> ModelSamples::files_of(std::span<const std::string> arguments) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const std::string& argument : arguments) {
    if (!fs::is_directory(argument, ignored)) {
      files.push_back(argument);
      continue;
    }
    const size_t first = files.size();
    for (const auto& entry : fs::directory_iterator(argument))
      if (entry.is_regular_file()) files.push_back(entry.path().string());
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end());
  }
  return files;
}

void ModelSamples::each(std::span<const std::string> files, int64_t first, const On& on) const {
  // One CPU, too, reads while it is predicted.
  const int threads = std::max(available_cpus(), 2);
  const auto read_one = [&](int64_t i) { return read_argument(files[static_cast<size_t>(i)]); };
  data::Ordered<std::vector<ModelSample>> samples(first, std::ssize(files), threads, threads + 4, read_one);
  for (int64_t i = first; i < std::ssize(files); ++i) {
    std::vector<ModelSample> own;
    try {
      own = samples.next();
    } catch (const Error& e) {
      own.push_back({files[static_cast<size_t>(i)], {}, e.what()});
    }
    for (const ModelSample& sample : own)
      if (sample.why.empty())
        on.sample(sample);
      else
        on.failed(sample.name, sample.why);
    if (on.done && !on.done()) return;
  }
}

}  // namespace millrace::task
