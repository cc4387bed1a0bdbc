#include "data/io/remote_file.h"

#include "base/fnv.h"
#include "data/io/read_ahead.h"
#include "data/io/remote_pieces.h"

namespace millrace::data {
namespace {

/// Where a thread's last read of a remote file ended.
struct LastRead {
  uint64_t id = 0, end = 0;
};
thread_local LastRead last_read;

}  // namespace

RemoteFile::RemoteFile(std::shared_ptr<const RemoteObject> object, RemoteCache& cache)
    : RandomAccessFile(object->url()),
      object_(std::move(object)),
      cache_(cache),
      id_(RemoteCache::State::id_of(*object_)) {
  cache_.state_->opened(id_, object_->size());
}

RemoteFile::~RemoteFile() { cache_.state_->closed(id_, object_->size()); }

int64_t RemoteFile::version() const { return static_cast<int64_t>(fnv1a(object_->version()) >> 1); }

Bytes RemoteFile::read(uint64_t offset, uint64_t size) const {
  require_range(offset, size);
  if (size == 0) return {};
  // What goes through the headers of a tar leaves some out, but not much.
  const uint64_t near = cache_.state_->options.block_bytes / 4;
  const bool on = last_read.id == id_ && offset >= last_read.end && offset - last_read.end <= near;
  last_read = {id_, offset + size};
  std::vector<uint8_t> own(size);
  cache_.state_->read(object_, id_, offset, own, on);
  return Bytes(std::move(own));
}

void RemoteFile::will_read(uint64_t offset, uint64_t size) const {
  if (offset >= object_->size()) return;
  size = std::min(size, object_->size() - offset);
  if (ReadAhead::Window* window = ReadAhead::Window::current())
    window->add(cache_, object_, {id_, offset, offset + size});
  else
    cache_.state_->fetch_ahead(object_, id_, offset, size);
}

}  // namespace millrace::data
