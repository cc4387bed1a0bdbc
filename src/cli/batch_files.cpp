#include "cli/batch_files.h"

#include <bit>
#include <cstring>

#include <millrace/tensor.h>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/arrays/npy.h"
#include "data/codecs/pictures/png.h"
#include "data/formats/formats.h"
#include "data/tools/contact_sheet.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

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

std::string target_field(const task::Output& output) {
  return output.from() ? output.from()->prefix() + "targets" : output.prefix() + "target";
}

Bindings batch_sizes(const data::Feed& feed, const data::FeedBatch& batch) {
  Bindings sizes{{"batch", feed.batch_size()}};
  if (batch.length > 0) sizes["length"] = batch.length;
  return sizes;
}

/// All rows of a field.
Array whole_array(const data::Feed& feed, const data::FeedBatch& batch, size_t place) {
  const data::Field& field = feed.fields()[place];
  Array array(field.type.dtype, field.type.shape.specialise(batch_sizes(feed, batch)));
  if (static_cast<size_t>(array.bytes()) != batch.arrays[place].size())
    fail<InternalError>("{}: '{}' has {} bytes", feed.path(), field.name, batch.arrays[place].size());
  std::memcpy(array.data(), batch.arrays[place].data(), batch.arrays[place].size());
  return array;
}

/// A WAV file of 32-bit floats, one channel.
std::string wav_file(std::span<const float> signal, int64_t rate) {
  static_assert(std::endian::native == std::endian::little);
  const auto bytes = static_cast<uint32_t>(signal.size_bytes()), each = static_cast<uint32_t>(sizeof(float));
  std::string file;
  const auto number = [&](auto value) { file.append(reinterpret_cast<const char*>(&value), sizeof value); };
  file += "RIFF";
  number(uint32_t{36 + bytes});
  file += "WAVEfmt ";
  number(uint32_t{16});
  number(uint16_t{3});  // floats
  number(uint16_t{1});  // channels
  number(static_cast<uint32_t>(rate));
  number(static_cast<uint32_t>(rate) * each);
  number(static_cast<uint16_t>(each));
  number(uint16_t{32});  // bits
  file += "data";
  number(bytes);
  file.append(reinterpret_cast<const char*>(signal.data()), bytes);
  return file;
}

/// Rows that are one array of values in time say how many a second there are.
bool is_signal(const task::Input& input, std::span<const Array> row) {
  return input.fields().size() == 1 && row[0].dtype() == f32 && row[0].type().shape.size() == 1 &&
         input.settings().find("rate");
}

void write_row(const task::Input& input, std::span<const Array> row, const fs::path& stem) {
  const auto file = [&](const char* end) { return fs::path(stem.string() + end); };
  const std::optional<Array> planes = row_picture(input, row);
  const bool signal = is_signal(input, row);
  if (planes) write_file(file(".png"), data::encode_png(data::picture_of(*planes)));
  if (signal) write_file(file(".wav"), wav_file(row[0].as<float>(), input.settings().integer("rate")));
  if (!planes && !signal) write_file(file(".txt"), input.text(row));
}

void write_table(const fs::path& path, const data::Dataset& samples, std::span<const int64_t> numbers) {
  std::vector<data::Column> columns;
  std::vector<size_t> places;
  for (size_t c = 0; c < samples.columns().size(); ++c) {
    const data::Column& column = samples.columns()[c];
    if (column.kind != data::ColumnKind::integer && column.kind != data::ColumnKind::real &&
        column.kind != data::ColumnKind::text)
      continue;
    columns.push_back(column);
    places.push_back(c);
  }
  if (columns.empty()) return;
  const auto writer = data::formats().at("csv").create(path.string(), columns);
  for (const int64_t sample : numbers) {
    std::vector<data::Value> values;
    for (const size_t c : places) values.push_back(samples.read(sample, c));
    writer->add(values);
  }
  writer->finish();
}

}  // namespace

InputRows::InputRows(const task::Input& input, const data::Feed& feed, const data::FeedBatch& batch)
    : batch_(batch) {
  std::vector<Tensor> all;
  const auto take = [&](const data::Field& field) {
    const size_t place = feed.field(input.prefix() + field.name);
    all.emplace_back(whole_array(feed, batch, place));
    const Type& type = all.back().type();
    return Taken{place, {type.dtype, Shape(type.shape.begin() + 1, type.shape.end())}};
  };
  for (const data::Field& field : input.fields()) taken_.push_back(take(field));
  const std::vector<data::Field> more = input.training_fields();
  for (const data::Field& field : more) {
    if (!feed.has_field(input.prefix() + field.name)) return;
    take(field);
  }
  if (more.empty()) return;
  for (const Tensor& tensor : input.graph(all, true)) made_.push_back(tensor.to_array());
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

std::optional<Array> row_picture(const task::Input& input, std::span<const Array> row) {
  std::optional<Array> planes = input.picture(row);
  if (planes && planes->type().shape.size() == 4) {  // a batch of one
    const Shape shape = planes->type().shape;
    planes = planes->reshaped(Shape(shape.begin() + 1, shape.end()));
  }
  return planes;
}

std::string row_target(const task::Output& output, const data::Feed& feed, const data::FeedBatch& batch,
                       int64_t row, bool mixed) {
  const auto place = field_place(feed, (mixed ? "mixed." : "") + target_field(output));
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

std::string row_name(const task::TaskFeed& set, const data::FeedBatch& batch, int64_t row) {
  const auto at = static_cast<size_t>(row);
  if (at < batch.names.size()) return batch.names[at];
  return set.samples && at < batch.samples.size() ? set.samples->name(batch.samples[at]) : "";
}

void write_arrays(const fs::path& folder, const data::Feed& feed, const data::FeedBatch& batch) {
  for (size_t i = 0; i < feed.fields().size(); ++i)
    write_file(folder / (feed.fields()[i].name + ".npy"), data::encode_npy(whole_array(feed, batch, i)));
}

void write_rows(const fs::path& folder, const task::Task& task, const task::TaskFeed& set,
                const data::FeedBatch& batch) {
  for (const auto& input : task.inputs) {
    const InputRows rows(*input, *set.feed, batch);
    for (int64_t row = 0; row < batch.valid; ++row) {
      std::string stem = fmt::format("{:04}", row);
      if (!batch.samples.empty()) stem += fmt::format("-{}", batch.samples[static_cast<size_t>(row)]);
      if (!input->name().empty()) stem += "-" + input->name();
      write_row(*input, rows.row(row), folder / stem);
    }
  }
  if (set.samples && !batch.samples.empty())
    write_table(folder / "rows.csv", *set.samples, batch.samples.first(static_cast<size_t>(batch.valid)));
}

}  // namespace millrace::cli
