// What is going to be read of remote files, told in time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "data/io/merge_ranges.h"
#include "data/io/remote_cache.h"
#include "data/io/remote_object.h"

namespace millrace::data {

/// The plan of one who reads here and there, in an order that is known: a feed of samples, say. It goes
/// window by window; while one is read the next is on its way. What a window needs is fetched once, and
/// stays until the window is over. Local files need no plan. Not thread-safe; the cache must stay.
class ReadAhead {
 public:
  /// While it lives, RandomAccessFile::will_read() of remote files (and so Dataset::will_read()) of this
  /// thread only adds to it, in the order of reading.
  class Window {
   public:
    Window();
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    /// The innermost of this thread; null where there is none.
    static Window* current();
    /// What was told so far.
    uint64_t bytes() const { return bytes_; }
    size_t parts() const { return ranges_.size(); }
    /// Where that lies; null while nothing of it is remote.
    RemoteCache* cache() const { return cache_; }

    /// What it costs where nothing of it is kept.
    struct Cost {
      uint64_t requests = 0, bytes = 0;
    };
    Cost cost() const;

   private:
    friend class ReadAhead;
    friend class RemoteFile;
    void add(RemoteCache& cache, const std::shared_ptr<const RemoteObject>& object, WantedRange range);

    RemoteCache* cache_ = nullptr;
    std::map<uint64_t, std::shared_ptr<const RemoteObject>> objects_;
    std::vector<WantedRange> ranges_;
    uint64_t bytes_ = 0;
    Window* outer_;
  };

  explicit ReadAhead(RemoteCache& cache);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// What a window should have, so that three of them (of one the last parts are still being read), and those
  /// of other plans, fit into memory.
  uint64_t window_bytes() const;
  /// Begins to fetch a window.
  void begin(const Window& window);
  /// The oldest window has been read.
  void end();
  /// Nothing of it will be read.
  void clear();

 private:
  struct Held;
  RemoteCache& cache_;
  std::deque<std::unique_ptr<Held>> windows_;
};

}  // namespace millrace::data
