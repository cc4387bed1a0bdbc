// What was packed, read back and compared with the source.
#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "base/format.h"
#include "data/formats/open_dataset.h"
#include "data/formats/tar_members.h"
#include "data/io/open_file.h"
#include "data/tools/pack/pack_samples.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t most_listed = 20;

void differs(PackResult& result, std::string message) {
  ++result.different;
  if (result.differences.size() < most_listed) result.differences.push_back(std::move(message));
}

/// Goes through the shards in step with the source.
class Reader {
 public:
  virtual ~Reader() = default;
  /// "" or what is wrong with the row that should come next.
  virtual std::string compare(const PackedRow& row) = 0;
  /// "" or what is there beyond the last row.
  virtual std::string rest() = 0;
};

class TarReader final : public Reader {
 public:
  TarReader(const fs::path& out, const std::vector<ShardEntry>& shards, std::vector<Column> columns,
            PackResult& result)
      : out_(out), shards_(shards), columns_(std::move(columns)), result_(result) {}

  std::string compare(const PackedRow& row) override {
    for (const ShardMember& wanted : members_of(row, columns_, made_)) {
      const std::string name = fmt::format("{}.{}", row.key, wanted.extension);
      if (!more()) return fmt::format("{} is not in the shards", name);
      const TarMember& member = members_[at_];
      if (member.name != name)
        return fmt::format("{}: there is {} where {} should be", shard_.string(), member.name, name);
      ++at_;
      const auto content = bytes_.view().subspan(member.offset, member.size);
      if (!std::ranges::equal(content, wanted.content))
        return fmt::format("{}:{}: {} bytes of checksum {:08x}, of the source come {} of {:08x}",
                           shard_.string(), name, content.size(), crc32c(content.data(), content.size()),
                           wanted.content.size(), crc32c(wanted.content.data(), wanted.content.size()));
    }
    return {};
  }
  std::string rest() override {
    return more()
               ? fmt::format("{}: {} comes from no sample of the source", shard_.string(), members_[at_].name)
               : "";
  }

 private:
  /// Opens the next shard at the end of one.
  bool more() {
    while (at_ >= members_.size()) {
      if (next_ >= shards_.size()) return false;
      const ShardEntry& entry = shards_[next_++];
      shard_ = out_ / entry.name;
      members_.clear();
      at_ = 0;
      const auto file = open_file(shard_.string());
      bytes_ = file->read(0, file->size());
      if (const uint32_t found = crc32c(bytes_.data(), bytes_.size());
          bytes_.size() != entry.bytes || found != entry.crc32c)
        differs(result_, fmt::format("{}: {} bytes of checksum {:08x}, written were {} of {:08x}",
                                     shard_.string(), bytes_.size(), found, entry.bytes, entry.crc32c));
      for_each_tar_member(*file, [&](const TarMember& member) {
        members_.push_back(member);
        return true;
      });
    }
    return true;
  }

  fs::path out_, shard_;
  const std::vector<ShardEntry>& shards_;
  std::vector<Column> columns_;
  PackResult& result_;
  Bytes bytes_;
  std::vector<TarMember> members_;
  std::vector<std::vector<uint8_t>> made_;
  size_t at_ = 0, next_ = 0;
};

/// Numbers up to what 32 bits hold; kinds that a format changes (an array, a list) are compared by their
/// texts.
bool equal(const Value& a, const Value& b, ColumnKind kind) {
  if (const auto* x = std::get_if<Bytes>(&a), *y = std::get_if<Bytes>(&b); x && y)
    return std::ranges::equal(x->view(), y->view());
  if (const auto* x = std::get_if<Pixels>(&a), *y = std::get_if<Pixels>(&b); x && y)
    return x->height == y->height && x->width == y->width && x->channels == y->channels &&
           std::ranges::equal(x->bytes.view(), y->bytes.view());
  if (const auto* x = std::get_if<double>(&a), *y = std::get_if<double>(&b); x && y)
    return static_cast<float>(*x) == static_cast<float>(*y) || (*x != *x && *y != *y);
  if (std::holds_alternative<Array>(a) || std::holds_alternative<Array>(b) || kind == ColumnKind::json)
    return true;
  return value_text(a, kind, 1 << 20) == value_text(b, kind, 1 << 20);
}

class FormatReader final : public Reader {
 public:
  FormatReader(const fs::path& out, const std::vector<ShardEntry>& shards, std::vector<Column> columns)
      : out_(out), shards_(shards), columns_(std::move(columns)) {}

  std::string compare(const PackedRow& row) override {
    if (!more()) return fmt::format("sample {} is not in the files", row.key);
    const std::vector<Value> wanted = values_of(row, columns_);
    const int64_t i = at_++;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const Value found = dataset_->read(i, dataset_->column(columns_[c].name));
      if (!equal(wanted[c], found, columns_[c].kind))
        return fmt::format("{}: its {} is {}, of the source comes {}", dataset_->name(i), columns_[c].name,
                           value_text(found, columns_[c].kind), value_text(wanted[c], columns_[c].kind));
    }
    return {};
  }
  std::string rest() override {
    return more() ? fmt::format("{} comes from no sample of the source", dataset_->name(at_)) : "";
  }

 private:
  bool more() {
    while (!dataset_ || at_ >= dataset_->count()) {
      if (next_ >= shards_.size()) return false;
      dataset_ = open_dataset((out_ / shards_[next_++].name).string(), OpenOptions{.use_indices = false});
      at_ = 0;
    }
    return true;
  }

  fs::path out_;
  const std::vector<ShardEntry>& shards_;
  std::vector<Column> columns_;
  std::unique_ptr<Dataset> dataset_;
  int64_t at_ = 0;
  size_t next_ = 0;
};

}  // namespace

void verify_pack(const PackSource& source, const fs::path& out, const std::vector<ShardEntry>& shards,
                 const PackOptions& options, PackResult& result) {
  std::unique_ptr<Reader> reader;
  if (options.format.empty())
    reader = std::make_unique<TarReader>(out, shards, source.extra_columns(), result);
  else
    reader = std::make_unique<FormatReader>(out, shards, columns_for(source, options));
  PackedSamples samples(source, options, 0);
  try {
    for (int64_t i = 0; i < source.count(); ++i) {
      const PackedSample sample = samples.next();
      for (const PackedRow& row : sample.rows)
        if (const std::string why = reader->compare(row); !why.empty())
          differs(result, fmt::format("{} (of {})", why, source.set().name(i)));
      if (options.stop && options.stop()) return;
      if (options.progress) options.progress(i + 1, source.count());
    }
    if (const std::string why = reader->rest(); !why.empty()) differs(result, why);
  } catch (const InputError& error) {  // what was written cannot even be read
    differs(result, error.what());
  }
}

}  // namespace millrace::data
