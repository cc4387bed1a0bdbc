#include "data/feed/traffic.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/size_text.h"
#include "data/io/read_ahead.h"
#include "data/order/order.h"

namespace millrace::data {
namespace {

/// Of an epoch.
struct Traffic {
  double requests = 0, bytes = 0, wanted = 0;
  double sample_bytes = 0;
};

/// As the windows of some places of the epoch say. `plan` may be moved on in their order alone.
Traffic traffic_of(const Dataset& samples, const RowPlan& plan, uint64_t seed, int64_t rows,
                   uint64_t window_bytes) {
  constexpr int64_t windows = 4, run = 64;
  Traffic traffic;
  int64_t seen = 0;
  for (int64_t w = 0; w < windows; ++w) {
    const ReadAhead::Window window;
    const int64_t first = w * rows / windows, end = (w + 1) * rows / windows;
    std::vector<RowPick> picks;
    for (int64_t at = first; at < end && window.bytes() < window_bytes && window.parts() < 1 << 16;
         at += run) {
      picks.resize(static_cast<size_t>(std::min(run, end - at)));
      Cursor cursor{seed, 0, at};
      plan.complete(cursor);
      plan.take(cursor, picks);
      for (const RowPick& row : picks)
        if (row.pick.index >= 0) samples.will_read(row.pick.index);
      seen += std::ssize(picks);
    }
    const auto cost = window.cost();
    traffic.requests += static_cast<double>(cost.requests);
    traffic.bytes += static_cast<double>(cost.bytes);
    traffic.wanted += static_cast<double>(window.bytes());
  }
  if (seen == 0) return traffic;
  traffic.sample_bytes = traffic.wanted / static_cast<double>(seen);
  const double scale = static_cast<double>(rows) / static_cast<double>(seen);
  traffic.requests *= scale;
  traffic.bytes *= scale;
  traffic.wanted *= scale;
  return traffic;
}

std::string size_of(double bytes) {
  return bytes < 1e9 ? memory_text(static_cast<int64_t>(bytes)) : fmt::format("{:.1f} GB", bytes * 1e-9);
}

}  // namespace

std::string traffic_advice(const Dataset& samples, RemoteCache& cache, const RowPlan& plan, uint64_t seed,
                           int64_t rows) {
  if (cache.open_bytes() <= cache.room()) return {};
  const uint64_t window = ReadAhead(cache).window_bytes();
  const Traffic now = traffic_of(samples, plan, seed, rows, window);
  if (now.sample_bytes < 1) return {};
  // Blocks as large as a request that is worth its way, as many as a window holds.
  constexpr double worth = 1e6, least_gain = 4;
  const int64_t count = samples.count(),
                block = std::min(count, std::max<int64_t>(1, static_cast<int64_t>(worth / now.sample_bytes))),
                blocks = std::clamp<int64_t>(
                    static_cast<int64_t>(static_cast<double>(window) / now.sample_bytes) / block, 1, count);
  const std::string order = fmt::format("block-shuffle {} {}", block, blocks);
  const auto by_blocks = ordered_rows(parse_order(order).make(Population{count, {}, {}, {}}));
  const Traffic then = traffic_of(samples, *by_blocks, seed, std::min(rows, count), window);
  if (now.requests < least_gain * then.requests) return {};
  return fmt::format(
      "{}: of its {} no more than {} stays in memory or on disk, so that each epoch fetches {} in {:.0f} "
      "requests "
      "of {}; data.order = \"{}\" would fetch {} in {:.0f}; so would MILLRACE_DATA_CACHE={:.0f}GB once, and "
      "nothing later",
      samples.path(), size_of(static_cast<double>(cache.open_bytes())),
      size_of(static_cast<double>(cache.room())), size_of(now.bytes), now.requests,
      size_of(now.bytes / now.requests), order, size_of(then.bytes), then.requests,
      static_cast<double>(cache.open_bytes()) * 1.01e-9 + 1);
}

}  // namespace millrace::data
