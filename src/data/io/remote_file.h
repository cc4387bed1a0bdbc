// A remote object as a file.
#pragma once

#include <memory>

#include <millrace/file.h>

#include "data/io/remote_cache.h"
#include "data/io/remote_object.h"

namespace millrace::data {

/// Read through the cache, which must stay. Reading on where the last read of the thread ended fetches
/// ahead; will_read() does, too, or belongs to a plan that the thread is making (read_ahead.h).
class RemoteFile final : public RandomAccessFile {
 public:
  RemoteFile(std::shared_ptr<const RemoteObject> object, RemoteCache& cache);
  ~RemoteFile() override;
  uint64_t size() const override { return object_->size(); }
  int64_t version() const override;
  Bytes read(uint64_t offset, uint64_t size) const override;
  void will_read(uint64_t offset, uint64_t size) const override;

 private:
  std::shared_ptr<const RemoteObject> object_;
  RemoteCache& cache_;
  uint64_t id_;
};

}  // namespace millrace::data
