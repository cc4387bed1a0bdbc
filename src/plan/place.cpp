#include <algorithm>
#include <numeric>

#include "plan/plan.h"

namespace millrace {

// Greedy by size: the largest first, each at the lowest gap left by those placed before it that live at the
// same time.
int64_t place_storages(std::vector<Storage>& storages) {
  std::vector<int> order;
  for (size_t s = 0; s < storages.size(); ++s)
    if (storages[s].kind == StorageKind::arena && storages[s].first >= 0 && storages[s].bytes > 0)
      order.push_back(static_cast<int>(s));
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return storages[a].bytes > storages[b].bytes; });
  std::vector<int> placed;  // by offset
  int64_t size = 0;
  for (int s : order) {
    Storage& storage = storages[s];
    const int64_t bytes = (storage.bytes + 63) / 64 * 64;
    int64_t offset = 0, best = -1, best_gap = INT64_MAX;
    for (int p : placed) {
      const Storage& other = storages[p];
      if (other.last < storage.first || storage.last < other.first) continue;
      const int64_t gap = other.offset - offset;
      if (gap >= bytes && gap < best_gap) {
        best = offset;
        best_gap = gap;
      }
      offset = std::max(offset, other.offset + (other.bytes + 63) / 64 * 64);
    }
    storage.offset = best >= 0 ? best : offset;
    size = std::max(size, storage.offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), s,
                                   [&](int a, int b) { return storages[a].offset < storages[b].offset; }),
                  s);
  }
  return size;
}

int fullest_launch(const std::vector<Storage>& storages, size_t launches) {
  std::vector<int64_t> change(launches + 2, 0);
  for (const Storage& s : storages)
    if (s.kind == StorageKind::arena && s.first >= 0) {
      change[static_cast<size_t>(s.first)] += s.bytes;
      change[static_cast<size_t>(s.last) + 1] -= s.bytes;
    }
  std::partial_sum(change.begin(), change.end(), change.begin());
  const auto end = change.end() - 2;
  return end == change.begin() ? -1
                               : static_cast<int>(std::max_element(change.begin(), end) - change.begin());
}

}  // namespace millrace
