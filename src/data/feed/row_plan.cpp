#include "data/feed/row_plan.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "data/order/shares.h"

namespace millrace::data {
namespace {

class OrderedRows final : public RowPlan {
 public:
  explicit OrderedRows(std::unique_ptr<Order> order) : order_(std::move(order)) {}
  int64_t count() const override { return order_->length(); }
  void take(const Cursor& at, std::span<RowPick> rows) const override {
    std::vector<Pick> picks(rows.size());
    order_->run(at.seed, at.epoch, at.position, picks);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].pick = picks[i];
  }

 private:
  std::unique_ptr<Order> order_;
};

/// Sources that lie one after the other in a data set. The source of the row at place g, counted over all
/// epochs, is drawn by its share from (seed, g); each source goes through its own order, epoch after epoch.
/// So the place in a mixture is how many samples were drawn of each source so far (they add up to g): with it
/// any batch can be made again, also when the shares have changed on the way. It is the state of a cursor:
/// {1, 1, samples drawn of each source}.
class MixedRows final : public RowPlan {
 public:
  MixedRows(std::vector<int64_t> first, std::vector<std::unique_ptr<Order>> orders,
            std::span<const double> shares, std::string path)
      : first_(std::move(first)),
        orders_(std::move(orders)),
        shares_(orders_.size(), shares),
        path_(std::move(path)) {
    for (const auto& order : orders_) length_ += order->length();
    epoch_ = length_;
  }
  int64_t count() const override { return length_; }
  void set_epoch(int64_t rows) override { epoch_ = rows; }
  void take(const Cursor& at, std::span<RowPick> rows) const override {
    std::vector<int64_t> drawn(at.state.begin() + 2, at.state.end());
    int64_t place = std::accumulate(drawn.begin(), drawn.end(), int64_t{0});
    for (RowPick& row : rows) {
      const size_t source = shares_.source_at(at.seed, place++);
      const int64_t number = drawn[source]++, length = orders_[source]->length();
      row.pick = orders_[source]->at(Shares::own_seed(at.seed, source), number / length, number % length);
      row.pick.index += first_[source];
    }
  }
  void complete(Cursor& at) const override {
    auto& state = at.state;
    if (state.empty()) {
      state.assign(2 + orders_.size(), 0);
      state[0] = kind;
      state[1] = version;
      advance(at, at.epoch * epoch_ + at.position);
    }
    if (state.size() != 2 + orders_.size() || state[0] != kind || state[1] != version ||
        std::any_of(state.begin() + 2, state.end(), [](int64_t count) { return count < 0; }))
      fail<InputError>("{}: the place to go on from is none of these {} sources; is the recipe another?",
                       path_, orders_.size());
  }
  void advance(Cursor& at, int64_t count) const override {
    const auto drawn = std::span(at.state).subspan(2);
    int64_t place = std::accumulate(drawn.begin(), drawn.end(), int64_t{0});
    for (; count > 0; --count) ++drawn[shares_.source_at(at.seed, place++)];
  }
  void set_shares(std::span<const double> shares) override { shares_.set(shares); }

 private:
  static constexpr int64_t kind = 1, version = 1;
  std::vector<int64_t> first_;  // sample of each source
  std::vector<std::unique_ptr<Order>> orders_;
  Shares shares_;
  std::string path_;
  int64_t length_ = 0, epoch_ = 0;
};

}  // namespace

void RowPlan::set_shares(std::span<const double> /*shares*/) {
  fail<InputError>("what is trained on is one source, which has no weight");
}

std::unique_ptr<RowPlan> ordered_rows(std::unique_ptr<Order> order) {
  return std::make_unique<OrderedRows>(std::move(order));
}

std::unique_ptr<RowPlan> mixed_rows(std::vector<int64_t> first, std::vector<std::unique_ptr<Order>> orders,
                                    std::span<const double> shares, std::string path) {
  return std::make_unique<MixedRows>(std::move(first), std::move(orders), shares, std::move(path));
}

}  // namespace millrace::data
