#include "data/feed/sequences/token_rows.h"

#include <algorithm>

namespace millrace::data {

void EpochRows::take(const Cursor& at, std::span<RowPick> rows) const {
  const auto planned = begun(at);
  for (size_t i = 0; i < rows.size(); ++i) {
    RowPick& row = rows[i];
    planned->row(at.position + static_cast<int64_t>(i), row.extracts);
    if (!samples_) continue;
    row.pick.index = samples_->indices[static_cast<size_t>(row.extracts.at(0).text)];
    row.extracts.clear();
  }
}

int64_t EpochRows::length(const Cursor& at) const {
  return lengths_.size() == 1 ? lengths_[0] : begun(at)->length(at.position);
}

/// The rows of the cursor's epoch. Threads work on two neighbouring ones at the most; a third is for who
/// looks back.
std::shared_ptr<const EpochRows::Epoch> EpochRows::begun(const Cursor& at) const {
  constexpr size_t most = 3;
  const int64_t number = options_.whole_batches ? at.epoch : 0;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(begun_.begin(), begun_.end(), [&](const Begun& each) {
    return each.seed == at.seed && each.epoch == number;
  });
  if (found != begun_.end()) return found->rows;
  if (begun_.size() == most) begun_.pop_front();
  begun_.push_back({at.seed, number, epoch(at.seed, number)});
  return begun_.back().rows;
}

std::unique_ptr<RowPlan> token_rows(std::shared_ptr<const Texts> texts, const TokenOptions& options,
                                    PlanOptions plan) {
  using Layout = TokenOptions::Layout;
  plan.length = options.length;
  plan.next_token = options.learn == TokenOptions::Learn::next;
  if (options.layout == Layout::windows) return window_plan(*texts, plan);
  if (options.layout == Layout::packed) return packed_plan(*texts, plan);
  return bucket_plan(std::move(texts), plan);
}

}  // namespace millrace::data
