// Inside of the cache of remote objects: what lies in memory or is on its way. Part of remote_cache.cpp and
// read_ahead.cpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "data/io/byte_arena.h"
#include "data/io/disk_blocks.h"
#include "data/io/merge_ranges.h"
#include "data/io/remote_cache.h"
#include "data/io/remote_object.h"

namespace millrace::data {

using ObjectPointer = std::shared_ptr<const RemoteObject>;

struct RemotePiece {
  enum class What { queued, fetching, ready, gone };
  ObjectPointer object;
  uint64_t id = 0, begin = 0, end = 0;
  bool block = false;
  bool on_disk = false;  // it is there, or room for it is
  What what = What::queued;
  uint8_t* memory = nullptr;
  int pins = 0;  // who reads it, waits for it or will read it: it stays
  int held = 0;  // windows of plans among these
  std::optional<std::list<RemotePiece*>::iterator> idle = {};
  std::exception_ptr error = {};
};
using PiecePointer = std::shared_ptr<RemotePiece>;

struct RemoteCache::State {
  explicit State(RemoteCacheOptions given);
  ~State();
  static uint64_t id_of(const RemoteObject& object);

  void opened(uint64_t id, uint64_t size);
  void closed(uint64_t id, uint64_t size);

  /// Fills `out`. `on`: the thread reads on where it was.
  void read(const ObjectPointer& object, uint64_t id, uint64_t offset, std::span<uint8_t> out, bool on);
  /// Begins to fetch what a thread that reads on comes to.
  void fetch_ahead(const ObjectPointer& object, uint64_t id, uint64_t offset, uint64_t size);

  using Objects = std::map<uint64_t, ObjectPointer>;
  /// Begins to fetch these, in the order of their ranks; what must stay until it was read is pinned.
  std::vector<PiecePointer> plan(const Objects& objects, const std::vector<WantedRange>& ranges);
  void release(const std::vector<PiecePointer>& pieces);

  // ---- all below with the mutex held

  using Lock = std::unique_lock<std::mutex>;
  using Pieces = std::map<std::pair<uint64_t, uint64_t>, PiecePointer>;  // by object and begin; none overlap

  static PiecePointer covering(const Pieces& pieces, uint64_t id, uint64_t offset);
  PiecePointer covering(uint64_t id, uint64_t offset) const;
  bool all_fit() const { return open_bytes <= options.memory_bytes / 4 * 3; }
  uint64_t block_size(const RemoteObject& object, uint64_t number) const;
  /// The block as a piece where it is worth its fetch; null where it would not stay. `on`: fetch it anyway.
  PiecePointer add_block(const ObjectPointer& object, uint64_t id, uint64_t number, bool on);
  PiecePointer add_exact(const ObjectPointer& object, uint64_t id, uint64_t begin, uint64_t end);
  /// What a reader that told nothing gets: a page or more.
  PiecePointer add_unplanned(const ObjectPointer& object, uint64_t id, uint64_t offset, uint64_t size);
  void queue_blocks(const ObjectPointer& object, uint64_t id, uint64_t offset, uint64_t end);
  /// The parts of a range that no exact piece covers; those that do are added to `held`.
  std::vector<std::pair<uint64_t, uint64_t>> uncovered(uint64_t id, uint64_t begin, uint64_t end,
                                                       std::vector<PiecePointer>& held);

  void pin(RemotePiece& piece);
  void hold(const PiecePointer& piece, std::vector<PiecePointer>& held);
  /// Is there memory that will soon be free by itself?
  bool passing() const;
  void unpin(const PiecePointer& piece);
  void room_made();
  bool make_room(RemotePiece& piece);
  void fetch(Lock& lock, const PiecePointer& piece);
  void load(RemotePiece& piece);
  void drop(RemotePiece& piece);
  void enqueue(PiecePointer piece);
  void download();
  /// Reads of `out` what one piece, or the disk, has; how much that was. `until`: the reader goes on to
  /// there.
  uint64_t read_some(Lock& lock, const ObjectPointer& object, uint64_t id, uint64_t offset,
                     std::span<uint8_t> out, uint64_t until);
  uint64_t read_piece(Lock& lock, const PiecePointer& piece, uint64_t offset, std::span<uint8_t> out);
  uint64_t read_past(Lock& lock, const PiecePointer& piece, uint64_t offset, std::span<uint8_t> out);
  uint64_t read_disk(Lock& lock, const BlockKey& key, uint64_t size, uint64_t offset, std::span<uint8_t> out);

  RemoteCacheOptions options;
  mutable std::mutex mutex;  // guards all below
  ByteArena arena;
  Pieces blocks, exact;
  std::list<RemotePiece*> idle;  // ready and not pinned; used least lately first
  std::map<uint64_t, int> open;
  uint64_t open_bytes = 0;
  int plans = 0;
  DiskBlocks disk;

  std::condition_variable changed, work;
  std::deque<PiecePointer> queue;
  bool starved = false;  // the first of the queue finds no room
  int waiting = 0;       // readers who find none
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
};

}  // namespace millrace::data
