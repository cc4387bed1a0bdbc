#include "data/tools/pack/pack_samples.h"

#include <algorithm>

#include "base/format.h"
#include "base/thread_pool.h"
#include "data/codecs/pictures/netpbm.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/formats/content.h"
#include "data/formats/formats.h"
#include "data/formats/webdataset_member.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

/// The extension of an encoded picture. All but Netpbm are called .jpg: readers look at the content.
const char* extension_of(std::span<const uint8_t> bytes) {
  const bool netpbm = bytes.size() > 1 && bytes[0] == 'P';
  return !netpbm ? "jpg" : bytes[1] == '5' ? "pgm" : "ppm";
}

uint64_t bytes_of(const std::vector<ShardMember>& members) {
  uint64_t bytes = 0;
  for (const ShardMember& member : members)
    if (member.extension != "cls") bytes += member.content.size();
  return bytes;
}

/// A picture as a column has it; no value where there is none.
Value picture_value(const StoredPicture& picture) {
  if (picture.bytes.empty()) return {};
  if (picture.height == 0) return picture.owner;
  return Pixels{picture.height, picture.width, picture.channels, picture.owner};
}

/// The columns of pictures of a source without classes: those of one with them are its samples.
std::vector<size_t> loose_pictures(const PackSource& source) {
  std::vector<size_t> pictures;
  if (source.has_classes()) return pictures;
  const std::vector<Column>& columns = source.extra_columns();
  for (size_t c = 0; c < columns.size(); ++c)
    if (columns[c].kind == ColumnKind::picture) pictures.push_back(c);
  return pictures;
}

class TarSink final : public PackSink {
 public:
  TarSink(const fs::path& path, std::vector<Column> columns) : writer_(path), columns_(std::move(columns)) {}
  bool full(const PackedRow& row, const ShardLimits& limits) override {
    return writer_.full(limits, bytes_of(members_of(row, columns_, made_)));
  }
  void add(const PackedRow& row) override { writer_.add(row.key, members_of(row, columns_, made_)); }
  int64_t samples() const override { return writer_.samples(); }
  ShardEntry finish() override { return writer_.finish(); }

 private:
  ShardWriter writer_;
  std::vector<Column> columns_;
  std::vector<std::vector<uint8_t>> made_;
};

class FormatSink final : public PackSink {
 public:
  FormatSink(fs::path path, const Format& format, std::vector<Column> columns)
      : path_(std::move(path)),
        columns_(std::move(columns)),
        writer_(format.create(path_.string(), columns_)) {}
  bool full(const PackedRow& row, const ShardLimits& limits) override {
    return samples_ >= limits.samples || (samples_ > 0 && bytes_ + size_of(row) > limits.bytes);
  }
  void add(const PackedRow& row) override {
    writer_->add(values_of(row, columns_));
    bytes_ += size_of(row);
    ++samples_;
  }
  int64_t samples() const override { return samples_; }
  ShardEntry finish() override {
    writer_->finish();
    std::error_code ignored;
    if (fs::is_regular_file(path_, ignored)) bytes_ = fs::file_size(path_, ignored);
    return {path_.filename().string(), samples_, bytes_, 0};
  }

 private:
  /// Only large values count.
  static uint64_t size_of(const PackedRow& row) {
    uint64_t size = row.picture.bytes.size();
    for (const Value& value : row.extra)
      if (const auto* bytes = std::get_if<Bytes>(&value)) size += bytes->size();
    return size;
  }

  fs::path path_;
  std::vector<Column> columns_;
  std::unique_ptr<DatasetWriter> writer_;
  int64_t samples_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

PackedSamples::PackedSamples(const PackSource& source, const PackOptions& options, int64_t first)
    : source_(source), options_(options), extra_(source.extra_columns().size()), maker_(options.pictures) {
  const int cpus = options.threads > 0 ? options.threads : available_cpus();
  if (options.pictures.decodes()) pictures_ = loose_pictures(source);
  // Copying is done faster than it is handed over.
  const int threads = options.pictures.decodes() ? cpus : 1;
  ordered_ = std::make_unique<Ordered<PackedSample>>(first, source.count(), threads, 4 * threads,
                                                     [this](int64_t i) { return make(i); });
}

PackedSample PackedSamples::make(int64_t index) const {
  PackedSample made;
  PackedRow row;
  row.key = options_.keep_keys ? key_of(source_.set(), index) : fmt::format("{:08}", index);
  row.label = source_.label(index);
  try {
    row.picture = source_.picture(index);
    for (size_t c = 0; c < extra_; ++c) row.extra.push_back(source_.extra(index, c));
    // Members of tars are called by what they are: an empty file is no sound.
    for (size_t c = 0; c < extra_ && options_.format.empty(); ++c)
      if (const auto* const bytes = std::get_if<Bytes>(&row.extra[c]))
        (void)member_extension(source_.extra_columns()[c], content_extension(bytes->view()),
                               fmt::format("{} bytes", bytes->size()));
  } catch (const InputError& error) {
    made.bad = error.what();
    return made;
  }
  made.rows.push_back(std::move(row));
  const auto change = [&](const StoredPicture& picture, const auto& put) {
    if (picture.bytes.empty() || !made.bad.empty()) return;
    std::vector<StoredPicture> pictures;
    made.bad = maker_.make(picture, index, pictures);
    for (size_t v = 1; v < pictures.size(); ++v) made.rows.push_back(made.rows[0]);
    for (size_t v = 0; v < pictures.size(); ++v) {
      put(made.rows[v], pictures[v]);
      if (options_.pictures.versions > 0) made.rows[v].key += fmt::format("-{}", v);
    }
  };
  change(made.rows[0].picture, [](PackedRow& of, const StoredPicture& to) { of.picture = to; });
  for (const size_t c : pictures_)
    change(stored_picture(made.rows[0].extra[c]),
           [c](PackedRow& of, const StoredPicture& to) { of.extra[c] = picture_value(to); });
  if (!made.bad.empty()) made.rows.clear();
  return made;
}

void PackedSamples::check(const PackSource& source, const PackOptions& options) {
  if (!options.pictures.changes() || source.has_classes()) return;
  const std::vector<size_t> pictures = loose_pictures(source);
  if (pictures.empty())
    fail<InputError>(
        "{}: has no pictures that could be resized or augmented; leave out --max-side, --resize, --quality "
        "and "
        "--augment",
        source.set().path());
  if (options.pictures.versions == 0 || pictures.size() == 1) return;
  const std::vector<Column>& columns = source.extra_columns();
  fail<InputError>("{}: --augment changes one column of pictures, and there are several: {}, {} …",
                   source.set().path(), columns[pictures[0]].name, columns[pictures[1]].name);
}

std::vector<ShardMember> members_of(const PackedRow& row, const std::vector<Column>& columns,
                                    std::vector<std::vector<uint8_t>>& made) {
  made.resize(columns.size() + 2);
  std::vector<ShardMember> members;
  if (row.label >= 0) {
    const std::string label = std::to_string(row.label);
    made[0].assign(label.begin(), label.end());
    members.push_back({"cls", made[0]});
  }
  if (const StoredPicture& picture = row.picture; !picture.bytes.empty()) {
    std::span<const uint8_t> content = picture.bytes;
    if (picture.height > 0)
      content = made[1] = encode_netpbm(
          {picture.height, picture.width, picture.channels, {picture.bytes.begin(), picture.bytes.end()}});
    members.push_back({extension_of(content), content});
  }
  for (size_t c = 0; c < columns.size(); ++c)
    if (!std::holds_alternative<std::monostate>(row.extra[c]))
      members.push_back(member_of(columns[c], row.extra[c], made[c + 2], fmt::format("sample {}", row.key)));
  std::sort(members.begin(), members.end(),
            [](const ShardMember& a, const ShardMember& b) { return a.extension < b.extension; });
  for (size_t m = 1; m < members.size(); ++m)
    if (members[m].extension == members[m - 1].extension)
      fail<InputError>("sample {}: two columns would both be .{} in the shards; rename one of the source's",
                       row.key, members[m].extension);
  if (members.empty()) fail<InputError>("sample {} has no values", row.key);
  return members;
}

std::vector<Column> columns_for(const PackSource& source, const PackOptions& options) {
  std::vector<Column> columns;
  if (options.keep_keys) columns.push_back({"__key__", ColumnKind::text});
  if (source.has_classes()) {
    columns.push_back({"image", ColumnKind::picture});
    columns.push_back({"label", ColumnKind::integer});
  }
  const size_t own = columns.size();
  for (const Column& column : source.extra_columns()) {
    for (size_t c = 0; c < own; ++c)
      if (columns[c].name == column.name)
        fail<InputError>("{}: has a column '{}' beside what becomes '{}'; rename it", source.set().path(),
                         column.name, column.name);
    columns.push_back(column);
  }
  return columns;
}

std::vector<Value> values_of(const PackedRow& row, const std::vector<Column>& columns) {
  std::vector<Value> values;
  if (!columns.empty() && columns[0].name == "__key__") values.emplace_back(row.key);
  if (row.label >= 0) {
    values.push_back(picture_value(row.picture));
    values.emplace_back(row.label);
  }
  values.insert(values.end(), row.extra.begin(), row.extra.end());
  return values;
}

fs::path shard_path(const fs::path& out, const std::string& name, size_t number, const PackOptions& options) {
  const std::string& format = options.format;
  const std::string extension = format.empty()         ? ".tar"
                                : format == "mds"      ? ""  // a folder
                                : format == "recordio" ? ".rec"
                                                       : "." + format;
  return out / fmt::format("{}-{:06}{}", name, number, extension);
}

std::unique_ptr<PackSink> create_sink(const fs::path& path, const PackSource& source,
                                      const PackOptions& options) {
  if (options.format.empty()) return std::make_unique<TarSink>(path, source.extra_columns());
  return std::make_unique<FormatSink>(path, formats().at(options.format), columns_for(source, options));
}

}  // namespace millrace::data
