#include "data/pack.h"

#include <optional>

#include "base/format.h"
#include "data/netpbm.h"
#include "data/shard_index.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

/// The bytes to store for a sample and their extension.
std::pair<std::span<const uint8_t>, const char*> stored_form(const Sample& sample,
                                                             std::vector<uint8_t>& storage) {
  if (sample.height > 0) {
    storage = encode_netpbm(
        {sample.height, sample.width, sample.channels, {sample.bytes.begin(), sample.bytes.end()}});
    return {storage, sample.channels == 1 ? "pgm" : "ppm"};
  }
  const bool netpbm = sample.bytes.size() > 1 && sample.bytes[0] == 'P';
  return {sample.bytes, !netpbm ? "jpg" : sample.bytes[1] == '5' ? "pgm" : "ppm"};
}

fs::path shard_path(const fs::path& out, const std::string& name, size_t number) {
  return out / fmt::format("{}-{:06}.tar", name, number);
}

}  // namespace

PackResult pack(const Source& source, const fs::path& out, const std::string& name,
                const PackOptions& options) {
  if (name.empty() || name.find_first_of("/.{}*?[]") != std::string::npos)
    fail<InputError>("\"{}\" is no name for shards; use letters, digits, - and _", name);
  if (options.shard_samples < 1)
    fail<InputError>("{} samples a shard: at least one is needed", options.shard_samples);
  const fs::path index_path = shard_index_path(shard_path(out, name, 0));
  const std::optional<ShardIndex> old = read_shard_index(index_path);

  ShardIndex index;
  index.classes = source.classes();
  PackResult result;
  std::optional<ShardWriter> shard;
  const auto finish = [&] {
    index.shards.push_back(shard->finish());
    result.bytes += index.shards.back().bytes;
    shard.reset();
  };
  std::vector<uint8_t> storage;
  for (int64_t i = 0; i < source.count(); ++i) {
    const Sample sample = source.read(i);
    const auto [content, extension] = stored_form(sample, storage);
    const std::string label = std::to_string(source.label(i)), key = fmt::format("{:08}", i);
    if (shard && shard->full({options.shard_samples, options.shard_bytes}, content.size())) finish();
    if (!shard) shard.emplace(shard_path(out, name, index.shards.size()));
    shard->add(
        key, {{"cls", {reinterpret_cast<const uint8_t*>(label.data()), label.size()}}, {extension, content}});
    ++result.samples;
    if (options.progress && (result.samples % 1000 == 0 || result.samples == source.count()))
      options.progress(result.samples, source.count());
  }
  if (shard) finish();
  write_shard_index(index_path, index);
  if (old)
    for (size_t i = index.shards.size(); i < old->shards.size(); ++i) {
      std::error_code ignored;
      fs::remove(shard_path(out, name, i), ignored);
    }

  result.shards = static_cast<int64_t>(index.shards.size());
  const std::string first = shard_path(out, name, 0).string();
  result.pattern = result.shards == 1
                       ? first
                       : (out / fmt::format("{}-{{000000..{:06}}}.tar", name, result.shards - 1)).string();
  return result;
}

}  // namespace millrace::data
