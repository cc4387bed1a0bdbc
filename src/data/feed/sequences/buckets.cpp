#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/format.h"
#include "data/feed/sequences/plan.h"
#include "data/order/order.h"
#include "data/order/permutation.h"

namespace millrace::data {
namespace {

class Buckets : public EpochRows {
 public:
  Buckets(std::shared_ptr<const Lengths> given, const PlanOptions& options)
      : EpochRows(options, options.buckets.empty() ? std::vector{options.length} : options.buckets,
                  std::move(given)) {
    const Lengths& texts = *samples_;
    const OrderText text = parse_order(options.order);
    if (text.kind->by_column)
      fail<InputError>("data.order = \"{}\": {} have no columns to weigh them by", options.order, texts.unit);
    order_ = text.make({texts.count(), texts.labels, texts.classes, {}});
    rows_ = options.whole_batches ? order_->length() / options.batch * options.batch : order_->length();
    if (rows_ < 1)
      fail<InputError>("{}: its {} {} do not fill a batch of {}; make the batch smaller", texts.path,
                       order_->length(), texts.unit, options.batch);
    const BucketsEpoch first(*this, 1, 0);
    int64_t tokens = 0;
    std::vector<Extract> pieces;
    for (int64_t at = 0; at < rows_; ++at) {
      first.row(at, pieces);
      tokens += pieces[0].size;
      if (at % options.batch == 0) places_ += first.length(at) * std::min(options.batch, rows_ - at);
    }
    waste_ = 1 - static_cast<double>(tokens) / static_cast<double>(std::max<int64_t>(places_, 1));
    plain_ = 1 - static_cast<double>(tokens) / static_cast<double>(rows_ * options.length);
  }

  std::unique_ptr<const Epoch> epoch(uint64_t seed, int64_t epoch) const override {
    return std::make_unique<BucketsEpoch>(*this, seed, epoch);
  }

  std::vector<std::string> describe() const override {
    return {fmt::format("{} {}, padded to {} {}: {:.1f} % of the places are padding{}", samples_->count(),
                        samples_->unit, fmt::join(lengths_, ", "), samples_->items, 100 * waste_,
                        lengths_.size() > 1 ? fmt::format(" ({:.1f} % without buckets)", 100 * plain_) : "")};
  }

 private:
  struct BucketsEpoch final : Epoch {
    BucketsEpoch(const Buckets& of, uint64_t seed, int64_t epoch) : plan(of) {
      std::vector<Pick> picks(static_cast<size_t>(plan.rows_));
      plan.order_->run(seed, epoch, 0, picks);
      for (const Pick& pick : picks) chosen.push_back(pick.index);
      if (plan.lengths_.size() == 1) return;
      // Of texts of one length the order decides who is with whom.
      std::stable_sort(chosen.begin(), chosen.end(),
                       [&](int64_t a, int64_t b) { return plan.size(a) < plan.size(b); });
      if (plan.options_.order != "sequential")
        batches.emplace(plan.rows_ / plan.options_.batch, seed ^ 0x62617463, epoch);
    }
    void row(int64_t at, std::vector<Extract>& pieces) const override {
      const int64_t text = chosen[static_cast<size_t>(place(at))];
      pieces.assign(1, {plan.samples_->begins[static_cast<size_t>(text)], plan.size(text), text});
    }
    int64_t length(int64_t at) const override {
      const int64_t batch = plan.options_.batch, first = place(at / batch * batch);
      int64_t longest = 0;
      for (int64_t i = first; i < std::min(first + batch, plan.rows_); ++i)
        longest = std::max(longest, plan.size(chosen[static_cast<size_t>(i)]));
      const std::vector<int64_t>& buckets = plan.lengths_;
      return *std::lower_bound(buckets.begin(), buckets.end() - 1, longest);
    }
    /// Where the row stands in `chosen`. Rows that fill no batch stay last.
    int64_t place(int64_t at) const {
      const int64_t size = plan.options_.batch, batch = at / size;
      if (!batches || batch >= plan.rows_ / size) return at;
      return (*batches)(batch)*size + at % size;
    }
    const Buckets& plan;
    std::vector<int64_t> chosen;
    std::optional<Permutation> batches;
  };

  int64_t behind() const { return options_.next_token ? 1 : 0; }
  int64_t size(int64_t text) const {
    return std::clamp<int64_t>(samples_->length(text) - behind(), 0, options_.length);
  }

  std::unique_ptr<Order> order_;
  int64_t places_ = 0;
  double waste_ = 0, plain_ = 0;
};

}  // namespace

std::unique_ptr<EpochRows> bucket_plan(std::shared_ptr<const Lengths> texts, const PlanOptions& options) {
  return std::make_unique<Buckets>(std::move(texts), options);
}

std::vector<int64_t> best_buckets(const std::vector<int64_t>& lengths, int64_t most, int64_t count) {
  int64_t longest = 1;
  for (const int64_t length : lengths) longest = std::max(longest, std::min(length, most));
  // Candidates are multiples of `step`, so that there are at most 512; 8 suits the kernels.
  const int64_t step = std::max<int64_t>(8, (longest + 511) / 512), steps = (longest + step - 1) / step;
  std::vector<double> texts(static_cast<size_t>(steps) + 1);
  for (const int64_t length : lengths)
    ++texts[static_cast<size_t>((std::min(length, most) + step - 1) / step)];
  texts[1] += texts[0];  // empty ones
  texts[0] = 0;
  std::partial_sum(texts.begin(), texts.end(), texts.begin());
  // least[k][j]: places that the texts of up to j steps take in k buckets, the last one of j steps.
  const auto buckets = static_cast<size_t>(std::min(count, steps)), n = static_cast<size_t>(steps);
  std::vector<std::vector<double>> least(buckets + 1,
                                         std::vector<double>(n + 1, std::numeric_limits<double>::max()));
  std::vector<std::vector<size_t>> before(buckets + 1, std::vector<size_t>(n + 1));
  least[0][0] = 0;
  for (size_t k = 1; k <= buckets; ++k)
    for (size_t j = k; j <= n; ++j)
      for (size_t i = k - 1; i < j; ++i) {
        if (least[k - 1][i] == std::numeric_limits<double>::max()) continue;
        const double places = least[k - 1][i] + static_cast<double>(j) * (texts[j] - texts[i]);
        if (places < least[k][j]) {
          least[k][j] = places;
          before[k][j] = i;
        }
      }
  std::vector<int64_t> result;
  size_t k = buckets;
  while (k > 1 && least[k - 1][n] <= least[k][n]) --k;
  for (size_t j = n; k > 0; j = before[k--][j])
    result.insert(result.begin(), std::min(static_cast<int64_t>(j) * step, most));
  return result;
}

}  // namespace millrace::data
