#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "base/format.h"
#include "data/feed/sequences/plan.h"
#include "data/order/permutation.h"

namespace millrace::data {
namespace {

class Packed : public EpochRows {
 public:
  Packed(const Texts& texts, const PlanOptions& options) : EpochRows(options, {options.length}) {
    if (options.order != "shuffle" && options.order != "sequential")
      fail<InputError>("data.order = \"{}\": packed texts take \"shuffle\" or \"sequential\"", options.order);
    cut(texts);
    place();
    bins_ = static_cast<int64_t>(begins_.size()) - 1;
    rows_ = options.whole_batches ? bins_ / options.batch * options.batch : bins_;
    if (rows_ < 1)
      fail<InputError>(
          "{}: its {} texts fill {} rows of input.length = {}, but no batch of {}: make length or batch "
          "smaller",
          texts.path, texts.count(), bins_, options.length, options.batch);
  }

  std::unique_ptr<const Epoch> epoch(uint64_t seed, int64_t epoch) const override {
    return std::make_unique<PackedEpoch>(*this, seed, epoch);
  }

  std::vector<std::string> describe() const override {
    const double places = static_cast<double>(bins_ * options_.length);
    std::vector<std::string> lines = {fmt::format(
        "{} texts packed into {} rows of {} tokens: {:.2f} % of the places are padding ({:.1f} % with a text "
        "a row)",
        texts_, bins_, options_.length, 100 * (1 - static_cast<double>(tokens_) / places),
        100 * (1 - static_cast<double>(tokens_) /
                       static_cast<double>(options_.length * static_cast<int64_t>(pieces_.size()))))};
    if (cut_ > 0)
      lines.push_back(fmt::format("{} texts are longer than input.length = {} and go on in further rows",
                                  cut_, options_.length));
    if (left_out_ > 0) lines.push_back(fmt::format("{} texts have too few tokens to learn from", left_out_));
    return lines;
  }

 private:
  struct PackedEpoch final : Epoch {
    PackedEpoch(const Packed& of, uint64_t seed, int64_t epoch) : plan(of) {
      if (plan.options_.order == "sequential") return;
      order.emplace(plan.bins_, seed, epoch);
      const std::vector<int64_t>& begins = plan.group_begins_;
      for (size_t g = 0; g + 1 < begins.size(); ++g)
        groups.emplace_back(begins[g + 1] - begins[g], seed ^ (0x9e3779b97f4a7c15 * (g + 1)), epoch);
    }
    void row(int64_t at, std::vector<Extract>& pieces) const override {
      const auto bin = static_cast<size_t>(order ? (*order)(at) : at);
      const std::vector<int64_t>& begins = plan.group_begins_;
      pieces.clear();
      for (int64_t i = plan.begins_[bin]; i < plan.begins_[bin + 1]; ++i) {
        // Among the pieces of this length any one will do.
        int64_t rank = plan.ranks_[static_cast<size_t>(i)];
        if (order) {
          const auto group = std::upper_bound(begins.begin(), begins.end(), rank) - 1;
          rank = *group + groups[static_cast<size_t>(group - begins.begin())](rank - *group);
        }
        pieces.push_back(plan.pieces_[static_cast<size_t>(rank)]);
      }
    }
    int64_t length(int64_t) const override { return plan.options_.length; }
    const Packed& plan;
    std::optional<Permutation> order;  // of the rows
    std::vector<Permutation> groups;   // of the pieces of one length
  };

  /// Pieces of at most a row, longest first.
  void cut(const Texts& texts) {
    const int64_t behind = options_.next_token ? 1 : 0;
    for (int64_t t = 0; t < texts.count(); ++t) {
      int64_t at = texts.begins[static_cast<size_t>(t)];
      const int64_t end = texts.begins[static_cast<size_t>(t) + 1] - behind;
      if (end - at < 1) {
        ++left_out_;
        continue;
      }
      ++texts_;
      cut_ += end - at > options_.length;
      for (; at < end; at += options_.length) {
        pieces_.push_back({at, std::min(options_.length, end - at), t});
        tokens_ += pieces_.back().size;
      }
    }
    std::stable_sort(pieces_.begin(), pieces_.end(),
                     [](const Extract& a, const Extract& b) { return a.size > b.size; });
    for (size_t i = 0; i < pieces_.size(); ++i)
      if (i == 0 || pieces_[i].size != pieces_[i - 1].size) group_begins_.push_back(static_cast<int64_t>(i));
    group_begins_.push_back(static_cast<int64_t>(pieces_.size()));
  }

  /// Best fit: bins by the room that is left in them.
  void place() {
    std::vector<std::vector<int64_t>> bins, by_room(static_cast<size_t>(options_.length) + 1);
    std::set<int64_t> rooms;  // that some bin has
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const int64_t size = pieces_[i].size;
      const auto fits = rooms.lower_bound(size);
      int64_t room = options_.length, bin = static_cast<int64_t>(bins.size());
      if (fits == rooms.end()) {
        bins.emplace_back();
      } else {
        room = *fits;
        auto& list = by_room[static_cast<size_t>(room)];
        bin = list.back();
        list.pop_back();
        if (list.empty()) rooms.erase(fits);
      }
      bins[static_cast<size_t>(bin)].push_back(static_cast<int64_t>(i));
      if (room -= size; room > 0) {
        by_room[static_cast<size_t>(room)].push_back(bin);
        rooms.insert(room);
      }
    }
    begins_ = {0};
    for (const auto& bin : bins) {
      ranks_.insert(ranks_.end(), bin.begin(), bin.end());
      begins_.push_back(static_cast<int64_t>(ranks_.size()));
    }
  }

  std::vector<Extract> pieces_;          // longest first
  std::vector<int64_t> group_begins_;    // of pieces of one length
  std::vector<int64_t> begins_, ranks_;  // bin b holds the pieces ranks_[begins_[b]] …
  int64_t bins_ = 0, tokens_ = 0, texts_ = 0, cut_ = 0, left_out_ = 0;
};

}  // namespace

std::unique_ptr<EpochRows> packed_plan(const Texts& texts, const PlanOptions& options) {
  return std::make_unique<Packed>(texts, options);
}

}  // namespace millrace::data
