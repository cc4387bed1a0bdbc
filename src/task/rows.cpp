#include "task/rows.h"

#include <algorithm>
#include <cstring>

#include <millrace/nn.h>
#include <millrace/tensor.h>

#include "base/format.h"
#include "data/feed/part.h"

namespace millrace::task {
namespace {

/// The place of a field, or nothing.
std::optional<size_t> field_place(const data::Feed& feed, const std::string& name) {
  if (!feed.has_field(name)) return std::nullopt;
  return feed.field(name);
}

/// The bytes of a row in a field.
std::span<const std::byte> row_bytes(const data::Feed& feed, const data::FeedBatch& batch, size_t field,
                                     int64_t row) {
  const auto all = batch.arrays[field];
  const size_t each = all.size() / static_cast<size_t>(feed.batch_size());
  return all.subspan(static_cast<size_t>(row) * each, each);
}

/// "price 12, kind new": of the only one without its name.
void add_said(std::string& text, const std::string& name, const std::string& said) {
  if (said.empty()) return;
  text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", name, name.empty() ? "" : " ", said);
}

/// As a picture, of which larger ones than `largest_shown` are made smaller.
data::Picture shown_picture(const Array& planes) {
  constexpr int largest_shown = 256;
  data::Picture picture = data::picture_of(planes);
  const int side = std::max(picture.height, picture.width);
  if (side <= largest_shown) return picture;
  const auto smaller = [&](int size) { return std::max(1, size * largest_shown / side); };
  return data::resize(picture, smaller(picture.height), smaller(picture.width));
}

}  // namespace

InputRows::InputRows(const Input& input, const data::Feed& feed, const data::FeedBatch& batch)
    : batch_(batch) {
  std::vector<size_t> all;
  for (const data::Field& field : input.fields()) {
    all.push_back(feed.field(input.prefix() + field.name));
    const Type& type = feed.fields()[all.back()].type;
    const Shape shape = type.shape.specialise({{"batch", feed.batch_size()}, {"length", batch.length}});
    taken_.push_back({all.back(), {type.dtype, Shape(shape.begin() + 1, shape.end())}});
  }
  const std::vector<data::Field> more = input.training_fields();
  for (const data::Field& field : more) {
    if (!feed.has_field(input.prefix() + field.name)) return;
    all.push_back(feed.field(input.prefix() + field.name));
  }
  if (more.empty()) return;
  std::vector<Tensor> arrays;
  for (const size_t place : all) arrays.emplace_back(feed.array(batch, place));
  for (const Tensor& tensor : input.graph(arrays, true)) made_.push_back(tensor.to_array());
}

std::vector<Array> InputRows::row(int64_t row) const {
  std::vector<Array> arrays;
  const auto add = [&](const Type& type, const std::byte* all) {
    Array array(type.dtype, type.shape);
    const auto size = static_cast<size_t>(array.bytes());
    std::memcpy(array.data(), all + static_cast<size_t>(row) * size, size);
    arrays.push_back(std::move(array));
  };
  for (const Taken& taken : taken_) add(taken.type, batch_.arrays[taken.place].data());
  for (const Array& made : made_) {
    const Shape& shape = made.type().shape;
    add({made.dtype(), Shape(shape.begin() + 1, shape.end())}, static_cast<const std::byte*>(made.data()));
  }
  return arrays;
}

std::optional<Array> row_picture(const Input& input, std::span<const Array> row) {
  std::optional<Array> planes = input.picture(row);
  if (planes && planes->type().shape.size() == 4) {  // a batch of one
    const Shape shape = planes->type().shape;
    planes = planes->reshaped(Shape(shape.begin() + 1, shape.end()));
  }
  return planes;
}

std::string row_target(const Output& output, const data::Feed& feed, const data::FeedBatch& batch,
                       int64_t row, bool mixed) {
  const auto place = field_place(feed, (mixed ? "mixed." : "") + output.target_field());
  return place ? output.target_text(row_bytes(feed, batch, *place, row)) : "";
}

std::optional<double> row_number(const data::Feed& feed, const data::FeedBatch& batch,
                                 const std::string& field, int64_t row) {
  const auto place = field_place(feed, field);
  if (!place) return std::nullopt;
  float value = 0;
  std::memcpy(&value, row_bytes(feed, batch, *place, row).data(), sizeof value);
  return value;
}

std::string row_name(const TaskFeed& set, const data::FeedBatch& batch, int64_t row) {
  const auto at = static_cast<size_t>(row);
  if (at < batch.names.size()) return batch.names[at];
  return set.samples && at < batch.samples.size() ? set.samples->name(batch.samples[at]) : "";
}

int64_t tokens_of_row(const Task& task, int64_t length) {
  int64_t tokens = 0;
  for (const auto& input : task.inputs) {
    nn::ModelOptions described;
    described.vocabulary = 0;
    input->describe(described);
    if (described.vocabulary == 0) continue;
    const Type type = input->fields().front().type;
    tokens += static_cast<int64_t>(data::row_bytes(type, length)) / type.dtype.bytes();
  }
  return tokens;
}

ShownRows::ShownRows(const Task& task, const TaskFeed& set, int64_t count)
    : task_(task), set_(set), all_(set.feed->samples_per_epoch()), count_(std::min(count, all_)) {}

bool ShownRows::wants(const data::FeedBatch& batch) const {
  return std::ssize(rows_) < count_ && place() < batch.valid;
}

void ShownRows::add(const data::FeedBatch& batch, std::span<const Array> logits) {
  if (wants(batch)) {
    std::vector<InputRows> inputs;
    for (const auto& input : task_.inputs) inputs.emplace_back(*input, *set_.feed, batch);
    while (wants(batch)) rows_.push_back(shown(batch, logits, inputs, place()));
  }
  seen_ += batch.valid;
}

ShownRow ShownRows::shown(const data::FeedBatch& batch, std::span<const Array> logits,
                          std::span<const InputRows> inputs, int64_t row) const {
  const data::Feed& feed = *set_.feed;
  ShownRow shown;
  shown.name = row_name(set_, batch, row);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = *task_.inputs[i];
    const std::vector<Array> arrays = inputs[i].row(row);
    if (const auto planes = row_picture(input, arrays))
      shown.pictures.push_back(shown_picture(*planes));
    else
      add_said(shown.words, input.name(), input.text(arrays));
  }
  for (size_t k = 0; k < task_.outputs.size(); ++k) {
    const Output& output = *task_.outputs[k];
    const std::span<const float> all = logits[k].as<float>();
    const size_t each = all.size() / static_cast<size_t>(feed.batch_size());
    const auto own = all.subspan(static_cast<size_t>(row) * each, each);
    const auto target = row_bytes(feed, batch, feed.field(output.target_field()), row);
    add_said(shown.target, output.name(), output.target_text(target));
    add_said(shown.prediction, output.name(), output.predicted_text(own, target));
  }
  return shown;
}

std::optional<track::Exhibit::Picture> sheet_of(std::span<const ShownRow> rows) {
  constexpr size_t rows_across = 4;
  std::vector<data::Tile> tiles;
  for (const ShownRow& row : rows)
    for (const data::Picture& picture : row.pictures)
      tiles.push_back(
          {picture, &picture == row.pictures.data() ? row.target + " → " + row.prediction : std::string()});
  if (tiles.empty()) return std::nullopt;
  // Each row's pictures stay side by side.
  const data::ContactSheet sheet =
      data::contact_sheet(tiles, static_cast<int>(rows_across * rows[0].pictures.size()));
  const std::vector<uint8_t> png = data::png_of(sheet);
  return track::Exhibit::Picture{{png.begin(), png.end()}, sheet.picture.width, sheet.picture.height};
}

}  // namespace millrace::task
