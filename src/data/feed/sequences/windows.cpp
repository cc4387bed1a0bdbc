#include <algorithm>

#include <millrace/random.h>

#include "base/format.h"
#include "data/feed/sequences/plan.h"
#include "data/order/order.h"

namespace millrace::data {
namespace {

class Windows : public EpochRows {
 public:
  Windows(const Texts& texts, const PlanOptions& options)
      : EpochRows(options, {options.length}), sequential_(options.order == "sequential") {
    // Every window's targets must be there.
    places_ = texts.tokens.size() - (options.next_token ? 1 : 0);
    const int64_t whole = places_ / options.length;
    // One window less than fit, so that offsets of up to a whole window are possible.
    windows_ = options.whole_batches
                   ? std::max<int64_t>(sequential_ ? whole : whole - 1, std::min<int64_t>(whole, 1))
               : options.whole_windows ? whole
                                       : (places_ + options.length - 1) / options.length;
    rows_ = options.whole_batches ? windows_ / options.batch * options.batch : windows_;
    if (rows_ < 1)
      fail<InputError>(
          "{}: its {} tokens give {} windows of input.length = {}, which fill no batch of {}: make length or "
          "batch smaller",
          texts.path, texts.tokens.size(), windows_, options.length, options.batch);
    order_ = [&] {
      const OrderText text = parse_order(options.order);
      Population population;
      population.count = windows_;
      return text.make(population);
    }();
  }

  std::unique_ptr<const Epoch> epoch(uint64_t seed, int64_t epoch) const override {
    return std::make_unique<WindowsEpoch>(*this, seed, epoch);
  }
  std::vector<std::string> describe() const override {
    return {fmt::format("{} windows of {} tokens{}", windows_, options_.length,
                        sequential_ ? "" : ", from another offset on each epoch")};
  }

 private:
  struct WindowsEpoch final : Epoch {
    WindowsEpoch(const Windows& of, uint64_t with_seed, int64_t number)
        : plan(of), seed(with_seed), epoch(number), offset(of.offset(with_seed, number)) {}
    void row(int64_t at, std::vector<Extract>& pieces) const override {
      const int64_t most = plan.options_.length;
      const int64_t begin = offset + plan.order_->at(seed, epoch, at).index * most;
      pieces.assign(1, {begin, std::min(most, plan.places_ - begin), -1});
    }
    int64_t length(int64_t) const override { return plan.options_.length; }
    const Windows& plan;
    uint64_t seed;
    int64_t epoch, offset;
  };

  int64_t offset(uint64_t seed, int64_t epoch) const {
    const int64_t room = places_ - windows_ * options_.length;
    if (sequential_ || room <= 0) return 0;
    const auto words =
        philox({static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), 0, 0x77696e64},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    return static_cast<int64_t>((uint64_t{words[0]} * static_cast<uint64_t>(room + 1)) >> 32);
  }

  bool sequential_;
  int64_t places_ = 0, windows_ = 0;
  std::unique_ptr<Order> order_;
};

}  // namespace

std::unique_ptr<EpochRows> window_plan(const Texts& texts, const PlanOptions& options) {
  return std::make_unique<Windows>(texts, options);
}

}  // namespace millrace::data
