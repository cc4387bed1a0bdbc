#include "data/io/read_ahead.h"

#include <algorithm>

#include "data/io/remote_pieces.h"

namespace millrace::data {
namespace {

thread_local ReadAhead::Window* innermost = nullptr;

}  // namespace

ReadAhead::Window::Window() : outer_(innermost) { innermost = this; }
ReadAhead::Window::~Window() { innermost = outer_; }
ReadAhead::Window* ReadAhead::Window::current() { return innermost; }

void ReadAhead::Window::add(RemoteCache& cache, const std::shared_ptr<const RemoteObject>& object,
                            WantedRange range) {
  cache_ = &cache;
  objects_.try_emplace(range.object, object);
  range.rank = static_cast<int64_t>(ranges_.size());
  ranges_.push_back(range);
  bytes_ += range.end - range.begin;
}

ReadAhead::Window::Cost ReadAhead::Window::cost() const {
  Cost cost;
  if (!cache_) return cost;
  for (const WantedRange& request : merge_ranges(ranges_, cache_->state_->options.block_bytes)) {
    ++cost.requests;
    cost.bytes += request.end - request.begin;
  }
  return cost;
}

/// The pieces of a window.
struct ReadAhead::Held {
  Held(RemoteCache::State& of, const Window& window)
      : state(of), pieces(of.plan(window.objects_, window.ranges_)) {}
  ~Held() { state.release(pieces); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  RemoteCache::State& state;
  std::vector<PiecePointer> pieces;
};

ReadAhead::ReadAhead(RemoteCache& cache) : cache_(cache) {
  const std::lock_guard lock(cache_.state_->mutex);
  ++cache_.state_->plans;
}

ReadAhead::~ReadAhead() {
  clear();
  const std::lock_guard lock(cache_.state_->mutex);
  --cache_.state_->plans;
}

uint64_t ReadAhead::window_bytes() const {
  const std::lock_guard lock(cache_.state_->mutex);
  return cache_.state_->options.memory_bytes / (4 * static_cast<uint64_t>(cache_.state_->plans));
}

void ReadAhead::begin(const Window& window) {
  windows_.push_back(std::make_unique<Held>(*cache_.state_, window));
}

void ReadAhead::end() { windows_.pop_front(); }

void ReadAhead::clear() { windows_.clear(); }

// ---- the cache's side

std::vector<std::pair<uint64_t, uint64_t>> RemoteCache::State::uncovered(uint64_t id, uint64_t begin,
                                                                         uint64_t end,
                                                                         std::vector<PiecePointer>& held) {
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  while (begin < end) {
    if (const PiecePointer piece = covering(exact, id, begin)) {
      hold(piece, held);
      begin = piece->end;
      continue;
    }
    const auto next = exact.upper_bound({id, begin});
    const bool near = next != exact.end() && next->first.first == id && next->second->begin < end;
    const uint64_t stop_at = near ? next->second->begin : end;
    parts.emplace_back(begin, stop_at);
    begin = stop_at;
  }
  return parts;
}

std::vector<PiecePointer> RemoteCache::State::plan(const Objects& objects,
                                                   const std::vector<WantedRange>& ranges) {
  const std::lock_guard lock(mutex);
  std::vector<PiecePointer> held;
  std::vector<WantedRange> few;
  std::vector<std::pair<int64_t, PiecePointer>> fresh;
  for (const WantedRange& range : ranges) {
    const ObjectPointer& object = objects.at(range.object);
    for (uint64_t at = range.begin, stop_at = 0; at < range.end; at = stop_at) {
      const uint64_t number = at / options.block_bytes;
      stop_at = std::min(range.end, (number + 1) * options.block_bytes);
      PiecePointer block = covering(blocks, range.object, at);
      if (!block && disk.has({range.object, number})) continue;
      if (!block && (block = add_block(object, range.object, number, false)))
        fresh.emplace_back(range.rank, block);
      if (!block) {
        for (const auto& [begin, end] : uncovered(range.object, at, stop_at, held))
          few.push_back({range.object, begin, end, range.rank});
      } else if (!block->on_disk) {
        hold(block, held);
      }
    }
  }
  for (const WantedRange& request : merge_ranges(std::move(few), options.block_bytes))
    for (const auto& [begin, end] : uncovered(request.object, request.begin, request.end, held)) {
      fresh.emplace_back(request.rank, add_exact(objects.at(request.object), request.object, begin, end));
      hold(fresh.back().second, held);
    }
  std::stable_sort(fresh.begin(), fresh.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [rank, piece] : fresh) enqueue(std::move(piece));
  return held;
}

void RemoteCache::State::release(const std::vector<PiecePointer>& pieces) {
  const std::lock_guard lock(mutex);
  for (const PiecePointer& piece : pieces) {
    --piece->held;
    unpin(piece);
  }
}

}  // namespace millrace::data
