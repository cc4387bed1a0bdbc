#include <algorithm>
#include <numeric>
#include <set>

#include "base/contains.h"
#include "plan/plan.h"
#include "target/slot.h"

namespace millrace {
namespace {

// Of all tensors of a chunk: what stays in a core's own cache.
constexpr int64_t kChunkBytes = 192 << 10, kMostBytes = 2 << 20;
// Work of a chunk that is not worth handing to another thread, in nanoseconds.
constexpr double kChunkTime = 3000;
constexpr double kMostChunks = 64;
// What takes longer is no chain where so few chunks would leave threads without work: by itself a product is
// cut along its columns, too.
constexpr double kLong = 50e3;
constexpr int64_t kLeastChunks = 8;
constexpr int kFarthest = 64;  // launches looked at behind the first

class ChainFinder {
 public:
  ChainFinder(Plan& plan, const std::vector<std::vector<int>>& after)
      : plan_(plan), launches_(plan.launches), before_(plan.launches.size()) {
    for (size_t l = 0; l < after.size(); ++l)
      for (const int later : after[l]) before_[later].push_back(static_cast<int>(l));
  }

  void run() {
    const int count = static_cast<int>(launches_.size());
    for (int head = 0; head < count; ++head) {
      const RowKernel* const kernel = row_kernel(launches_[head]);
      if (launches_[head].chain >= 0 || !kernel || kernel->most_rows() < 2) continue;
      members_ = {head};
      rows_ = kernel->most_rows();
      for (int l = head + 1; l < std::min(count, head + kFarthest); ++l)
        if (launches_[l].chain < 0) try_member(l);
      const int64_t chunk = members_.size() < 2 ? 0 : chunk_rows();
      if (chunk == 0) continue;
      for (const int l : members_) launches_[l].chain = static_cast<int>(plan_.chains.size());
      Chain& chain = plan_.chains.emplace_back(Chain{rows_, chunk, 0});
      chain.slots = Slots(chain.chunks()).count();
    }
  }

 private:
  /// Whether all that `reader` reads of a storage are rows.
  bool takes_rows(const PlannedLaunch& reader, int storage) const {
    for (size_t k = 0; k < reader.operands.size(); ++k)
      if (plan_.same_memory(reader.operands[k], storage) &&
          !row_kernel(reader)->takes_row(static_cast<int>(k)))
        return false;
    return true;
  }

  void try_member(int l) {
    const PlannedLaunch& launch = launches_[l];
    const RowKernel* const kernel = row_kernel(launch);
    if (!kernel || kernel->most_rows() < 2) return;
    // Everything else that it waits for stands before the chain.
    bool linked = false;
    for (const int earlier : before_[l]) {
      const bool member = contains(members_, earlier);
      if (!member && earlier > members_[0]) return;
      linked = linked || member;
    }
    const int64_t rows = std::min(rows_, kernel->most_rows());
    if (!linked || rows_ % rows != 0 || kernel->row_grain(rows) == 0) return;
    for (const int m : members_) {
      const PlannedLaunch& member = launches_[m];
      if (row_kernel(member)->row_grain(rows) == 0) return;
      if (kernel->rereads_weights() && row_kernel(member)->rereads_weights()) return;
      for (const int s : member.results)
        if (!takes_rows(launch, s)) return;
      // What it overwrites has been read as far as its rows go.
      for (const int s : launch.results)
        if (!takes_rows(member, s)) return;
    }
    members_.push_back(l);
    rows_ = rows;
  }

  /// Rows of a chunk: all its tensors fit the cache, and there are enough chunks for some threads; 0 when
  /// that cannot be.
  int64_t chunk_rows() const {
    int64_t row_bytes = 0, grain = 1;
    double time = 0;
    std::set<int> counted;
    for (const int l : members_) {
      const PlannedLaunch& launch = launches_[l];
      const RowKernel* const kernel = row_kernel(launch);
      grain = std::lcm(grain, kernel->row_grain(rows_));
      if (const auto* chunked = dynamic_cast<const ChunkedKernel*>(launch.kernel.get()))
        time += chunked->nanoseconds();
      std::set<int> cut(launch.results.begin(), launch.results.end());
      for (size_t k = 0; k < launch.operands.size(); ++k)
        if (kernel->takes_row(static_cast<int>(k))) cut.insert(launch.operands[k]);
      for (const int s : cut)
        if (counted.insert(s).second) row_bytes += plan_.storages[s].bytes / rows_;
    }
    const auto up = [&](int64_t rows) { return (std::max<int64_t>(rows, 1) + grain - 1) / grain * grain; };
    const auto wanted = static_cast<int64_t>(std::clamp(time / kChunkTime, 1.0, kMostChunks));
    const int64_t fit =
        std::max<int64_t>(kChunkBytes / std::max<int64_t>(row_bytes, 1) / grain * grain, grain);
    const int64_t chunk = std::min(fit, up((rows_ + wanted - 1) / wanted));
    if (time > kLong && (rows_ + chunk - 1) / chunk < kLeastChunks) return 0;
    return chunk * row_bytes > kMostBytes ? 0 : chunk;
  }

  Plan& plan_;
  std::vector<PlannedLaunch>& launches_;
  std::vector<std::vector<int>> before_;
  std::vector<int> members_;
  int64_t rows_ = 0;
};

/// Whether launch l is the second member of its chain that reads a storage, and no member writes it: the
/// first waits for the memory, the second has time to fetch the next rows while it computes.
bool reads_second(const Plan& plan, size_t l, int s) {
  int before = 0;
  for (size_t j = 0; j < plan.launches.size(); ++j) {
    const PlannedLaunch& member = plan.launches[j];
    if (member.chain != plan.launches[l].chain) continue;
    if (contains(member.results, s)) return false;
    before += j < l && contains(member.operands, s);
  }
  return before == 1;
}

RowUse use_of(const Plan& plan, size_t l, int threads) {
  const PlannedLaunch& launch = plan.launches[l];
  const Chain& chain = plan.chains[launch.chain];
  RowUse use;
  for (size_t j = l + 1; j < plan.launches.size() && plan.launches[j].chain == launch.chain; ++j)
    for (const int s : launch.results)
      use.read_soon = use.read_soon || contains(plan.launches[j].operands, s);
  for (size_t k = 0; k < launch.operands.size(); ++k) {
    const int s = launch.operands[k];
    const Storage& storage = plan.storages[s];
    const bool far = storage.row_bytes == 0 && storage.bytes >= kFarBytes && chain.chunks() > threads;
    const bool fetches =
        far && row_kernel(launch)->takes_row(static_cast<int>(k)) && reads_second(plan, l, s);
    use.ahead.push_back(fetches ? storage.bytes / chain.rows * chain.chunk * threads : 0);
  }
  return use;
}

}  // namespace

RowKernel* row_kernel(const PlannedLaunch& launch) {
  if (launch.operands.size() + launch.results.size() > kMostPointers) return nullptr;
  return dynamic_cast<RowKernel*>(launch.kernel.get());
}

void prepare_chains(Plan& plan, int threads) {
  for (size_t l = 0; l < plan.launches.size(); ++l)
    if (plan.launches[l].chain >= 0) row_kernel(plan.launches[l])->prepare_rows(use_of(plan, l, threads));
}

void form_chains(Plan& plan, const std::vector<std::vector<int>>& after) { ChainFinder(plan, after).run(); }

}  // namespace millrace
