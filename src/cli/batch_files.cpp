#include "cli/batch_files.h"

#include <bit>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/arrays/npy.h"
#include "data/codecs/pictures/png.h"
#include "data/formats/formats.h"
#include "data/tools/contact_sheet.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

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

void write_row(const task::Input& input, std::span<const Array> row, const fs::path& stem) {
  const auto file = [&](const char* end) { return fs::path(stem.string() + end); };
  const std::optional<Array> planes = task::row_picture(input, row);
  const bool signal = input.rate() > 0 && row[0].dtype() == f32 && row[0].type().shape.rank() == 1;
  if (planes) write_file(file(".png"), data::encode_png(data::picture_of(*planes)));
  if (signal) write_file(file(".wav"), wav_file(row[0].as<float>(), input.rate()));
  if (!planes && !signal) write_file(file(".txt"), input.text(row));
}

void write_table(const fs::path& path, const data::Dataset& samples, std::span<const int64_t> numbers) {
  std::vector<data::Column> columns;
  std::vector<size_t> places;
  for (size_t c = 0; c < samples.columns().size(); ++c) {
    const data::Column& column = samples.columns()[c];
    if (!data::is_tabular(column.kind)) continue;
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

void write_arrays(const fs::path& folder, const data::Feed& feed, const data::FeedBatch& batch) {
  for (size_t i = 0; i < feed.fields().size(); ++i)
    write_file(folder / (feed.fields()[i].name + ".npy"), data::encode_npy(feed.array(batch, i)));
}

void write_rows(const fs::path& folder, const task::Task& task, const task::TaskFeed& set,
                const data::FeedBatch& batch) {
  for (const auto& input : task.inputs) {
    const task::InputRows rows(*input, *set.feed, batch);
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
