#include "eval/binned_scores.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace millrace::eval {
namespace {

constexpr int64_t kRoom = 1 << 16, kLeast = 128, kMost = 1 << 14;  // bins: of all curves, of one

/// Where a number stands among all doubles, of which those of two signs meet at 0.
int64_t place_of(double score) {
  const auto bits = std::bit_cast<int64_t>(score + 0.0);  // −0 is 0
  return bits >= 0 ? bits : std::numeric_limits<int64_t>::min() - bits;
}

}  // namespace

BinnedScores::BinnedScores(int64_t curves)
    : room_(static_cast<size_t>(std::clamp(kRoom / std::max<int64_t>(curves, 1), kLeast, kMost))) {}

void BinnedScores::settle() {
  const auto lower = [](const Bin& a, const Bin& b) { return a.at < b.at; };
  const auto middle = bins_.begin() + static_cast<std::ptrdiff_t>(settled_);
  std::sort(middle, bins_.end(), lower);
  std::inplace_merge(bins_.begin(), middle, bins_.end(), lower);
  const auto join = [&] {
    size_t count = 0;
    for (const Bin& bin : bins_)
      if (count > 0 && bins_[count - 1].at == bin.at)
        bins_[count - 1].tally += bin.tally;
      else
        bins_[count++] = bin;
    bins_.resize(count);
  };
  for (join(); bins_.size() > room_; join()) {
    ++shift_;
    for (Bin& bin : bins_) bin.at >>= 1;
  }
  settled_ = bins_.size();
}

void BinnedScores::settle_full() {
  if (bins_.size() - settled_ >= room_) settle();
}

void BinnedScores::add(double score, bool positive) {
  if (std::isnan(score)) {
    nan_ = true;
    return;
  }
  bins_.push_back({place_of(score) >> shift_, {positive ? 1 : 0, positive ? 0 : 1}});
  settle_full();
}

void BinnedScores::merge(const BinnedScores& other) {
  nan_ |= other.nan_;
  for (const int wider = std::max(shift_, other.shift_); shift_ < wider; ++shift_)
    for (Bin& bin : bins_) bin.at >>= 1;
  for (const Bin& bin : other.bins_) {
    bins_.push_back({bin.at >> (shift_ - other.shift_), bin.tally});
    settle_full();
  }
}

std::vector<Tally> BinnedScores::descending() const {
  std::vector<Tally> tallies;
  if (nan_) return tallies;
  BinnedScores all = *this;
  all.settle();
  for (auto bin = all.bins_.rbegin(); bin != all.bins_.rend(); ++bin) tallies.push_back(bin->tally);
  return tallies;
}

bool BinnedScores::told_apart() const {
  BinnedScores all = *this;
  all.settle();
  return all.shift_ == 0;
}

}  // namespace millrace::eval
