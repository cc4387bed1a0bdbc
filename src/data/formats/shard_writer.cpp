#include "data/formats/shard_writer.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/format.h"
#include "data/formats/tar_members.h"

namespace millrace::data {
namespace {

constexpr char zeros[1024] = {};

}  // namespace

ShardWriter::ShardWriter(const std::filesystem::path& path)
    : file_(path, 0444), name_(path.filename().string()) {}

void ShardWriter::add(const std::string& key, std::vector<ShardMember> members) {
  std::sort(members.begin(), members.end(),
            [](const ShardMember& a, const ShardMember& b) { return a.extension < b.extension; });
  for (const ShardMember& member : members) {
    const std::string header = tar_header(fmt::format("{}.{}", key, member.extension), member.content.size());
    write(header.data(), header.size());
    write(member.content.data(), member.content.size());
    write(zeros, tar_padding(member.content.size()));
  }
  ++samples_;
}

bool ShardWriter::full(const ShardLimits& limits, uint64_t content) const {
  return samples_ >= limits.samples || (samples_ > 0 && file_.size() + content > limits.bytes);
}

ShardEntry ShardWriter::finish() {
  write(zeros, sizeof zeros);  // the end mark
  const uint64_t size = file_.size();
  file_.commit();
  return {name_, samples_, size, crc_};
}

void ShardWriter::rename(const std::filesystem::path& path) {
  file_.rename(path);
  name_ = path.filename().string();
}

void ShardWriter::write(const void* data, size_t size) {
  file_.write(data, size);
  crc_ = crc32c(data, size, crc_);
}

}  // namespace millrace::data
