#include "data/io/remote_cache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/cache_folder.h"
#include "base/contains.h"
#include "base/fnv.h"
#include "base/format.h"
#include "base/size_text.h"
#include "data/io/http_client.h"
#include "data/io/remote_pieces.h"

namespace millrace::data {
namespace {

/// What is read here and there without a word ahead, as by those who look into a file.
constexpr uint64_t unplanned_page = 64 << 10;
constexpr size_t most_queued_blocks = 64;

}  // namespace

RemoteCache::State::State(RemoteCacheOptions given)
    : options(std::move(given)), arena(options.memory_bytes), disk(options.folder, options.disk_bytes) {}

RemoteCache::State::~State() {
  {
    const std::lock_guard lock(mutex);
    stop = true;
  }
  work.notify_all();
  for (std::thread& thread : threads) thread.join();
}

uint64_t RemoteCache::State::id_of(const RemoteObject& object) {
  return fnv1a(object.url() + "\n" + object.version());
}

void RemoteCache::State::opened(uint64_t id, uint64_t size) {
  const std::lock_guard lock(mutex);
  if (open[id]++ == 0) open_bytes += size;
  disk.opened(id);
}

void RemoteCache::State::closed(uint64_t id, uint64_t size) {
  const std::lock_guard lock(mutex);
  disk.closed(id);
  if (--open[id] > 0) return;
  open.erase(id);
  open_bytes -= size;
}

uint64_t RemoteCache::State::block_size(const RemoteObject& object, uint64_t number) const {
  return std::min(options.block_bytes, object.size() - number * options.block_bytes);
}

// ---- pieces

PiecePointer RemoteCache::State::covering(const Pieces& pieces, uint64_t id, uint64_t offset) {
  auto at = pieces.upper_bound({id, offset});
  if (at == pieces.begin()) return nullptr;
  --at;
  return at->first.first == id && offset < at->second->end ? at->second : nullptr;
}

PiecePointer RemoteCache::State::covering(uint64_t id, uint64_t offset) const {
  const PiecePointer block = covering(blocks, id, offset);
  if (block && block->what == RemotePiece::What::ready) return block;
  const PiecePointer piece = covering(exact, id, offset);
  return piece ? piece : block;
}

void RemoteCache::State::pin(RemotePiece& piece) {
  ++piece.pins;
  if (piece.idle) idle.erase(*std::exchange(piece.idle, std::nullopt));
}

void RemoteCache::State::hold(const PiecePointer& piece, std::vector<PiecePointer>& held) {
  pin(*piece);
  ++piece->held;
  held.push_back(piece);
}

bool RemoteCache::State::passing() const {
  const auto passes = [](const auto& each) {
    const RemotePiece& piece = *each.second;
    return piece.held == 0 && piece.memory &&
           (piece.what == RemotePiece::What::fetching || piece.what == RemotePiece::What::ready);
  };
  return std::any_of(blocks.begin(), blocks.end(), passes) || std::any_of(exact.begin(), exact.end(), passes);
}

void RemoteCache::State::room_made() {
  if (std::exchange(starved, false)) work.notify_all();
  if (waiting > 0) changed.notify_all();
}

void RemoteCache::State::unpin(const PiecePointer& piece) {
  if (--piece->pins > 0) return;
  if (piece->what == RemotePiece::What::ready) {
    piece->idle = idle.insert(idle.end(), piece.get());
    room_made();
  } else if (piece->what == RemotePiece::What::queued && !piece->block) {
    piece->what = RemotePiece::What::gone;  // nobody wants it any more
    exact.erase({piece->id, piece->begin});
  }
}

/// Gives its memory back. It is no longer found.
void RemoteCache::State::drop(RemotePiece& piece) {
  if (piece.idle) idle.erase(*std::exchange(piece.idle, std::nullopt));
  if (piece.memory) arena.give_back(std::exchange(piece.memory, nullptr), piece.end - piece.begin);
  piece.what = RemotePiece::What::gone;
  room_made();
  (piece.block ? blocks : exact).erase({piece.id, piece.begin});
}

bool RemoteCache::State::make_room(RemotePiece& piece) {
  while (!(piece.memory = arena.take(piece.end - piece.begin))) {
    if (idle.empty()) return false;
    drop(*idle.front());
  }
  return true;
}

PiecePointer RemoteCache::State::add_block(const ObjectPointer& object, uint64_t id, uint64_t number,
                                           bool on) {
  const uint64_t size = block_size(*object, number), begin = number * options.block_bytes;
  const BlockKey key{id, number};
  const bool on_disk = disk.has(key) || disk.admit(key, size);
  if (!on_disk && !on && !all_fit()) return nullptr;
  const auto piece = std::make_shared<RemotePiece>(RemotePiece{
      .object = object, .id = id, .begin = begin, .end = begin + size, .block = true, .on_disk = on_disk});
  blocks[{id, begin}] = piece;
  return piece;
}

PiecePointer RemoteCache::State::add_exact(const ObjectPointer& object, uint64_t id, uint64_t begin,
                                           uint64_t end) {
  const auto piece =
      std::make_shared<RemotePiece>(RemotePiece{.object = object, .id = id, .begin = begin, .end = end});
  exact[{id, begin}] = piece;
  return piece;
}

PiecePointer RemoteCache::State::add_unplanned(const ObjectPointer& object, uint64_t id, uint64_t offset,
                                               uint64_t size) {
  const uint64_t page = std::min(unplanned_page, options.block_bytes);
  uint64_t begin = offset / page * page, end = (offset + size + page - 1) / page * page;
  end = std::min({end, begin + options.block_bytes, object->size()});
  const auto next = exact.upper_bound({id, offset});
  if (next != exact.end() && next->first.first == id) end = std::min(end, next->second->begin);
  if (next != exact.begin())
    if (const auto before = std::prev(next); before->first.first == id)
      begin = std::max(begin, before->second->end);
  return add_exact(object, id, begin, end);
}

// ---- fetching

/// Its bytes, from the disk or the server, without the mutex.
void RemoteCache::State::load(RemotePiece& piece) {
  const std::span<uint8_t> bytes(piece.memory, piece.end - piece.begin);
  const BlockKey key{piece.id, piece.begin / options.block_bytes};
  std::filesystem::path path;
  if (piece.on_disk) {
    const std::lock_guard lock(mutex);
    if (disk.on()) path = disk.path(key);
  }
  if (path.empty()) return piece.object->fetch(piece.begin, bytes);
  if (DiskBlocks::read_pages(path, bytes.size(), 0, bytes)) {
    const std::lock_guard lock(mutex);
    disk.used(key, bytes.size());
    return;
  }
  piece.object->fetch(piece.begin, bytes);
  {
    const std::lock_guard lock(mutex);
    if (disk.has(key) && !disk.admit(key, bytes.size())) return;  // a damaged one
  }
  try {
    DiskBlocks::write(path, bytes);
    const std::lock_guard lock(mutex);
    disk.written(key);
  } catch (const Error& error) {
    const std::lock_guard lock(mutex);
    disk.forget(key);
    if (disk.on()) fmt::print(stderr, "warning: {}\n", disk.give_up(error.what()));
  }
}

/// A pinned piece that has room. Its error is kept for all who wait.
void RemoteCache::State::fetch(Lock& lock, const PiecePointer& piece) {
  piece->what = RemotePiece::What::fetching;
  lock.unlock();
  std::exception_ptr error;
  try {
    load(*piece);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error) {
    piece->error = error;
    if (const BlockKey key{piece->id, piece->begin / options.block_bytes}; piece->on_disk && !disk.has(key))
      disk.forget(key);
    drop(*piece);
  } else {
    piece->what = RemotePiece::What::ready;
  }
  changed.notify_all();
}

void RemoteCache::State::enqueue(PiecePointer piece) {
  constexpr int downloads = 8;
  if (threads.empty())
    for (int i = 0; i < downloads; ++i) threads.emplace_back([this] { download(); });
  queue.push_back(std::move(piece));
  work.notify_one();
}

void RemoteCache::State::download() {
  stop_http_when(&stop);
  Lock lock(mutex);
  while (true) {
    work.wait(lock, [&] { return stop || (!queue.empty() && !starved); });
    if (stop) return;
    const PiecePointer piece = queue.front();
    if (piece->what == RemotePiece::What::queued && !make_room(*piece)) {
      starved = true;  // until a piece is no longer needed
      continue;
    }
    queue.pop_front();
    if (piece->what != RemotePiece::What::queued) continue;  // a reader was faster
    pin(*piece);
    fetch(lock, piece);  // who needs it is told of errors
    unpin(piece);
  }
}

void RemoteCache::State::queue_blocks(const ObjectPointer& object, uint64_t id, uint64_t offset,
                                      uint64_t end) {
  constexpr uint64_t most_ahead = 4;
  const uint64_t block = options.block_bytes,
                 ahead = std::clamp<uint64_t>(options.memory_bytes / 8 / block, 1, most_ahead);
  uint64_t number = offset / block;
  for (const uint64_t stop_at = number + ahead; number < stop_at && number * block < end; ++number) {
    if (blocks.contains({id, number * block}) || disk.has({id, number})) continue;
    if (queue.size() >= most_queued_blocks) return;
    enqueue(add_block(object, id, number, true));
  }
}

void RemoteCache::State::fetch_ahead(const ObjectPointer& object, uint64_t id, uint64_t offset,
                                     uint64_t size) {
  const std::lock_guard lock(mutex);
  queue_blocks(object, id, offset, offset + size);
}

// ---- reading

void RemoteCache::State::read(const ObjectPointer& object, uint64_t id, uint64_t offset,
                              std::span<uint8_t> out, bool on) {
  const uint64_t until = on ? object->size() : out.size() >= options.block_bytes ? offset + out.size() : 0;
  Lock lock(mutex);
  while (!out.empty()) {
    const uint64_t got = read_some(lock, object, id, offset, out, until);
    if (!lock.owns_lock()) lock.lock();
    offset += got;
    out = out.subspan(got);
  }
}

uint64_t RemoteCache::State::read_some(Lock& lock, const ObjectPointer& object, uint64_t id, uint64_t offset,
                                       std::span<uint8_t> out, uint64_t until) {
  PiecePointer piece = covering(id, offset);
  if (!piece) {
    const uint64_t number = offset / options.block_bytes;
    if (until == 0 && disk.has({id, number}))
      return read_disk(lock, {id, number}, block_size(*object, number), offset, out);
    piece = add_block(object, id, number, until > 0);
    if (!piece) piece = add_unplanned(object, id, offset, out.size());
  }
  // Who has a plan needs no guess: what it brings is no block, or one that stays.
  if (piece->block && piece->end < until) queue_blocks(object, id, piece->end, until);
  return read_piece(lock, piece, offset, out);
}

uint64_t RemoteCache::State::read_piece(Lock& lock, const PiecePointer& piece, uint64_t offset,
                                        std::span<uint8_t> out) {
  using What = RemotePiece::What;
  const uint64_t size = std::min<uint64_t>(out.size(), piece->end - offset);
  pin(*piece);
  while (piece->what == What::queued) {
    if (make_room(*piece)) {
      fetch(lock, piece);
    } else if (passing()) {
      ++waiting;
      changed.wait_for(lock, std::chrono::milliseconds(50));  // it may have been taken by a plan meanwhile
      --waiting;
    } else {
      return read_past(lock, piece, offset, out.first(size));
    }
  }
  changed.wait(lock, [&] { return piece->what != What::fetching && piece->what != What::queued; });
  if (piece->what == What::gone) {
    const std::exception_ptr error = piece->error;
    unpin(piece);
    if (error) std::rethrow_exception(error);
    return 0;  // look again
  }
  lock.unlock();
  std::memcpy(out.data(), piece->memory + (offset - piece->begin), size);
  lock.lock();
  unpin(piece);
  return size;
}

/// All memory is needed by others: what a pinned piece would bring comes past it.
uint64_t RemoteCache::State::read_past(Lock& lock, const PiecePointer& piece, uint64_t offset,
                                       std::span<uint8_t> out) {
  const BlockKey key{piece->id, piece->begin / options.block_bytes};
  unpin(piece);
  if (piece->block && disk.has(key)) return read_disk(lock, key, piece->end - piece->begin, offset, out);
  if (piece->block && !contains(queue, piece)) {
    if (piece->on_disk) disk.forget(key);
    drop(*piece);
  }
  lock.unlock();
  piece->object->fetch(offset, out);
  return out.size();
}

uint64_t RemoteCache::State::read_disk(Lock& lock, const BlockKey& key, uint64_t size, uint64_t offset,
                                       std::span<uint8_t> out) {
  const std::filesystem::path path = disk.path(key);
  const uint64_t inside = offset - key.second * options.block_bytes,
                 wanted = std::min<uint64_t>(out.size(), size - inside);
  lock.unlock();
  const bool good = DiskBlocks::read_pages(path, size, inside, out.first(wanted));
  lock.lock();
  if (!good) {
    disk.forget(key);
    return 0;
  }
  disk.used(key, size);
  return wanted;
}

// ---- the cache

RemoteCache::RemoteCache(RemoteCacheOptions options) : state_(std::make_unique<State>(std::move(options))) {}
RemoteCache::~RemoteCache() = default;

RemoteCache& RemoteCache::global() {
  static RemoteCache cache([] {
    RemoteCacheOptions options;
    if (const auto folder = cache_folder("data")) options.folder = *folder;
    if (const char* limit = std::getenv("MILLRACE_DATA_CACHE"); limit && *limit)
      options.disk_bytes = std::string_view(limit) == "0"
                               ? 0
                               : static_cast<uint64_t>(parse_bytes("MILLRACE_DATA_CACHE", limit));
    constexpr uint64_t least = 16'000'000;  // some blocks
    if (const char* limit = std::getenv("MILLRACE_DATA_CACHE_MEMORY"); limit && *limit)
      options.memory_bytes = static_cast<uint64_t>(parse_bytes("MILLRACE_DATA_CACHE_MEMORY", limit));
    if (options.memory_bytes < least)
      fail<InputError>("MILLRACE_DATA_CACHE_MEMORY takes 16MB at least, not {}",
                       memory_text(static_cast<int64_t>(options.memory_bytes)));
    return options;
  }());
  return cache;
}

RemoteCache::Counts RemoteCache::counts() const {
  const std::lock_guard lock(state_->mutex);
  return {state_->disk.bytes(), state_->arena.used()};
}

uint64_t RemoteCache::room() const {
  const std::lock_guard lock(state_->mutex);
  return std::max(state_->disk.limit(), state_->options.memory_bytes / 4 * 3);
}

uint64_t RemoteCache::open_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->open_bytes;
}

}  // namespace millrace::data
