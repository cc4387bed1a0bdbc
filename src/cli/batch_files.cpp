#include "cli/batch_files.h"

#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/arrays/npy.h"
#include "data/formats/formats.h"

namespace millrace::cli {

void write_arrays(const std::filesystem::path& folder, const data::Feed& feed, const data::FeedBatch& batch) {
  for (size_t i = 0; i < feed.fields().size(); ++i) {
    const data::Field& field = feed.fields()[i];
    Bindings sizes{{"batch", feed.batch_size()}};
    if (batch.length > 0) sizes["length"] = batch.length;
    Array array(field.type.dtype, field.type.shape.specialise(sizes));
    if (static_cast<size_t>(array.bytes()) != batch.arrays[i].size())
      fail<InternalError>("{}: '{}' has {} bytes", feed.path(), field.name, batch.arrays[i].size());
    std::memcpy(array.data(), batch.arrays[i].data(), batch.arrays[i].size());
    write_file(folder / (field.name + ".npy"), data::encode_npy(array));
  }
}

void write_rows(const std::filesystem::path& folder, const data::Feed& feed, const data::Dataset& samples) {
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
  const auto writer = data::format_named("csv").create((folder / "rows.csv").string(), columns);
  for (const int64_t sample : feed.samples()) {
    std::vector<data::Value> values;
    for (const size_t c : places) values.push_back(samples.read(sample, c));
    writer->add(values);
  }
  writer->finish();
}

void write_sounds(const std::filesystem::path& folder, const data::Feed& feed, const data::Dataset& samples) {
  size_t column = 0;
  while (samples.columns().at(column).kind != data::ColumnKind::audio) ++column;
  const std::vector<int64_t> numbers = feed.samples();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const data::Value value = samples.read(numbers[i], column);
    const auto& bytes = std::get<data::Bytes>(value);
    const char* end = bytes.text().starts_with("fLaC") ? "flac" : "wav";
    write_file(folder / fmt::format("{:04}-{}.{}", i, numbers[i], end), bytes.view());
  }
}

void write_texts(const std::filesystem::path& folder, const data::Feed& feed, const data::FeedBatch& batch,
                 const data::Tokenizer& tokenizer) {
  const auto length = static_cast<size_t>(batch.length);
  const auto* tokens = reinterpret_cast<const int64_t*>(batch.arrays[0].data());
  // Rows that may be padded have segments, which are 0 there (text_inputs).
  const auto* segments =
      feed.inputs() > 1 ? reinterpret_cast<const int64_t*>(batch.arrays[1].data()) : nullptr;
  for (size_t row = 0; row < static_cast<size_t>(batch.valid); ++row) {
    std::vector<int32_t> ids;
    for (size_t i = row * length; i < (row + 1) * length; ++i)
      if (!segments || segments[i] > 0) ids.push_back(static_cast<int32_t>(tokens[i]));
    write_file(folder / fmt::format("{:04}.txt", row), tokenizer.decode(ids, false));
  }
}

}  // namespace millrace::cli
