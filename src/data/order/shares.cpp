#include "data/order/shares.h"

#include <algorithm>
#include <cmath>

#include <millrace/random.h>

#include "base/format.h"

namespace millrace::data {

void Shares::set(std::span<const double> shares) {
  if (shares.size() != sources_)
    fail<InputError>("{} weights for {} sources: each needs one", shares.size(), sources_);
  double sum = 0;
  for (const double share : shares) {
    if (!(share >= 0) || !std::isfinite(share))
      fail<InputError>("the weight of a source is {}: it is a number from 0 on", share);
    sum += share;
  }
  if (!(sum > 0) || !std::isfinite(sum))
    fail<InputError>("the weights of the sources are all 0: one must be more");
  limits_.clear();
  double below = 0;
  for (const double share : shares) limits_.push_back((below += share) / sum);
  // Rounding must not leave a gap at the end, nor give it to a source of share 0.
  for (size_t i = limits_.size(); i-- > 0;) {
    limits_[i] = 1;
    if (shares[i] > 0) break;
  }
}

size_t Shares::source_at(uint64_t seed, int64_t place) const {
  const auto words = philox({static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), 0, 0x6d69786f},
                            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const double drawn = static_cast<double>((uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
  return static_cast<size_t>(std::upper_bound(limits_.begin(), limits_.end(), drawn) - limits_.begin());
}

}  // namespace millrace::data
