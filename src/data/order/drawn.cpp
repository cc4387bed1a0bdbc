#include "data/order/drawn.h"

#include <cmath>

#include <millrace/random.h>

#include "base/format.h"

namespace millrace::data {
namespace {

class Drawn final : public Order {
 public:
  Drawn(const std::vector<double>& values, double sum, bool importance)
      : keep_(values.size()), other_(values.size()), weight_(importance ? values.size() : 0) {
    const auto n = static_cast<double>(values.size());
    std::vector<size_t> small, large;
    for (size_t i = 0; i < values.size(); ++i) {
      keep_[i] = values[i] / sum * n;
      other_[i] = static_cast<int64_t>(i);
      if (importance) weight_[i] = values[i] > 0 ? sum / (n * values[i]) : 0;
      (keep_[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const size_t less = small.back(), more = large.back();
      small.pop_back();
      other_[less] = static_cast<int64_t>(more);
      keep_[more] -= 1 - keep_[less];
      if (keep_[more] < 1) {
        large.pop_back();
        small.push_back(more);
      }
    }
    // What rounding left over keeps itself.
    for (const auto& rest : {small, large})
      for (const size_t i : rest)
        if (values[i] > 0) keep_[i] = 1;
  }
  int64_t length() const override { return static_cast<int64_t>(keep_.size()); }

  Pick at(uint64_t seed, int64_t epoch, int64_t position) const override {
    const auto words = philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                               static_cast<uint32_t>(epoch), 0x64726177 ^ static_cast<uint32_t>(epoch >> 32)},
                              {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    const uint64_t wide = uint64_t{words[0]} << 32 | words[1];
    const auto slot = static_cast<size_t>((static_cast<unsigned __int128>(wide) * keep_.size()) >> 64);
    const double coin = static_cast<double>(uint64_t{words[2]} << 21 | words[3] >> 11) * 0x1p-53;
    const int64_t index = coin < keep_[slot] ? static_cast<int64_t>(slot) : other_[slot];
    return {index, weight_.empty() ? 1 : weight_[static_cast<size_t>(index)]};
  }

 private:
  std::vector<double> keep_;
  std::vector<int64_t> other_;
  std::vector<double> weight_;
};

}  // namespace

std::unique_ptr<Order> drawn_order(const OrderText& text, const Population& population) {
  double sum = 0;
  for (size_t i = 0; i < population.values.size(); ++i) {
    const double value = population.values[i];
    if (!std::isfinite(value) || value < 0)
      text.wrong(fmt::format("sample {} has {} there; wanted are numbers from 0 on", i, value));
    sum += value;
  }
  if (!(sum > 0) || !std::isfinite(sum)) text.wrong("the column's numbers are all 0, or too large");
  return std::make_unique<Drawn>(population.values, sum, text.kind->weighs);
}

}  // namespace millrace::data
