// Samples on their way from a source into shards: what pack writes and verify compares.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/codecs/pictures/stored_picture.h"
#include "data/formats/shard_writer.h"
#include "data/tools/pack/ordered.h"
#include "data/tools/pack/pack_options.h"
#include "data/tools/pack/pack_source.h"

namespace millrace::data {

/// One row of a shard.
struct PackedRow {
  std::string key;
  int64_t label = -1;     // -1: there are no classes
  StoredPicture picture;  // without bytes: there is none
  std::vector<Value> extra;
};

/// What becomes of a sample of the source: a row, several where its picture has versions, or why it is left
/// out.
struct PackedSample {
  std::vector<PackedRow> rows;
  std::string bad;
};

/// Makes samples [first, count) by threads. Source and options must stay.
class PackedSamples {
 public:
  PackedSamples(const PackSource& source, const PackOptions& options, int64_t first);
  /// InputError when the options ask for changes of pictures that the source has not, or cannot make them.
  static void check(const PackSource& source, const PackOptions& options);
  PackedSample next() { return ordered_->next(); }

 private:
  PackedSample make(int64_t index) const;

  const PackSource& source_;
  const PackOptions& options_;
  size_t extra_ = 0;
  std::vector<size_t> pictures_;  // of the extra columns, where there are no classes
  PictureMaker maker_;
  std::unique_ptr<Ordered<PackedSample>> ordered_;
};

/// A row as members of a tar, sorted; they point into the row or `made`. InputError when two would have the
/// same name.
std::vector<ShardMember> members_of(const PackedRow& row, const std::vector<Column>& columns,
                                    std::vector<std::vector<uint8_t>>& made);
/// The columns of a format other than WebDataset, and a row's values in them; the values may point into the
/// row.
std::vector<Column> columns_for(const PackSource& source, const PackOptions& options);
std::vector<Value> values_of(const PackedRow& row, const std::vector<Column>& columns);

/// One shard being written.
class PackSink {
 public:
  virtual ~PackSink() = default;
  /// `limits`: true when the row belongs into the next shard.
  virtual bool full(const PackedRow& row, const ShardLimits& limits) = 0;
  virtual void add(const PackedRow& row) = 0;
  virtual int64_t samples() const = 0;
  /// Then it is in its place.
  virtual ShardEntry finish() = 0;
};
std::unique_ptr<PackSink> create_sink(const std::filesystem::path& path, const PackSource& source,
                                      const PackOptions& options);

/// OUT/NAME-000000.tar, or with the extension of the format.
std::filesystem::path shard_path(const std::filesystem::path& out, const std::string& name, size_t number,
                                 const PackOptions& options);

/// Compares what lies in the shards with the source; differences go into `result`.
void verify_pack(const PackSource& source, const std::filesystem::path& out,
                 const std::vector<ShardEntry>& shards, const PackOptions& options, PackResult& result);

}  // namespace millrace::data
