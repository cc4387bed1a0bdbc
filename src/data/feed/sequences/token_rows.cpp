#include "data/feed/sequences/token_rows.h"

#include <algorithm>
#include <deque>
#include <mutex>

namespace millrace::data {
namespace {

using Layout = TokenOptions::Layout;

std::unique_ptr<Plan> plan_of(Layout layout, const Texts& texts, const PlanOptions& options) {
  if (layout == Layout::windows) return window_plan(texts, options);
  return layout == Layout::packed ? packed_plan(texts, options) : bucket_plan(texts, options);
}

class TokenRows final : public RowPlan {
 public:
  /// `samples`: a row is one of the texts, whole.
  TokenRows(std::shared_ptr<const Lengths> texts, std::unique_ptr<Plan> plan, bool samples, bool same_order)
      : texts_(std::move(texts)),
        samples_(samples),
        same_order_(same_order),
        plan_(std::move(plan)),
        lengths_(plan_->lengths()) {}

  int64_t count() const override { return plan_->rows(); }

  void take(const Cursor& at, std::span<RowPick> rows) const override {
    const auto epoch = begun(at);
    for (size_t i = 0; i < rows.size(); ++i) {
      RowPick& row = rows[i];
      epoch->row(at.position + static_cast<int64_t>(i), row.extracts);
      if (!samples_) continue;
      row.pick.index = texts_->indices[static_cast<size_t>(row.extracts.at(0).text)];
      row.extracts.clear();
    }
  }

  int64_t length(const Cursor& at) const override {
    return lengths_.size() == 1 ? lengths_[0] : begun(at)->length(at.position);
  }
  std::vector<int64_t> lengths() const override { return lengths_; }
  bool whole_batches() const override { return lengths_.size() > 1; }
  std::vector<std::string> describe() const override { return plan_->describe(); }

 private:
  using Epoch = std::shared_ptr<const Plan::Epoch>;
  struct Begun {
    uint64_t seed;
    int64_t epoch;
    Epoch rows;
  };

  /// The rows of the cursor's epoch. Threads work on two neighbouring ones at the most; a third is for who
  /// looks back.
  Epoch begun(const Cursor& at) const {
    constexpr size_t most = 3;
    const int64_t number = same_order_ ? 0 : at.epoch;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(begun_.begin(), begun_.end(), [&](const Begun& each) {
      return each.seed == at.seed && each.epoch == number;
    });
    if (found != begun_.end()) return found->rows;
    if (begun_.size() == most) begun_.pop_front();
    begun_.push_back({at.seed, number, plan_->epoch(at.seed, number)});
    return begun_.back().rows;
  }

  std::shared_ptr<const Lengths> texts_;
  bool samples_, same_order_;
  std::unique_ptr<Plan> plan_;
  std::vector<int64_t> lengths_;
  mutable std::mutex mutex_;
  mutable std::deque<Begun> begun_;  // the latest last
};

}  // namespace

std::unique_ptr<RowPlan> token_rows(std::shared_ptr<const Texts> texts, const TokenOptions& options,
                                    PlanOptions plan) {
  plan.length = options.length;
  plan.next_token = options.learn == TokenOptions::Learn::next;
  auto rows = plan_of(options.layout, *texts, plan);
  return std::make_unique<TokenRows>(std::move(texts), std::move(rows), options.layout == Layout::padded,
                                     !plan.whole_batches);
}

std::unique_ptr<RowPlan> bucket_rows(std::shared_ptr<const Lengths> samples, const PlanOptions& plan) {
  auto rows = bucket_plan(*samples, plan);
  return std::make_unique<TokenRows>(std::move(samples), std::move(rows), true, !plan.whole_batches);
}

}  // namespace millrace::data
