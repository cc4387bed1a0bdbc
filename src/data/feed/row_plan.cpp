#include "data/feed/row_plan.h"

#include <algorithm>

#include "base/format.h"

namespace millrace::data {
namespace {

void pick_rows(std::span<const Pick> picks, std::span<RowPick> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].pick = picks[i];
    rows[i].extracts.clear();
  }
}

class OrderedRows final : public RowPlan {
 public:
  explicit OrderedRows(std::unique_ptr<Order> order) : order_(std::move(order)) {}
  int64_t count() const override { return order_->length(); }
  void take(const Cursor& at, std::span<RowPick> rows) const override {
    std::vector<Pick> picks(rows.size());
    order_->run(at.seed, at.epoch, at.position, picks);
    pick_rows(picks, rows);
  }

 private:
  std::unique_ptr<Order> order_;
};

/// The state of a cursor: {1, 1, samples drawn of each source}.
class MixedRows final : public RowPlan {
 public:
  MixedRows(std::unique_ptr<Mixture> mixture, std::string path)
      : mixture_(std::move(mixture)), path_(std::move(path)), epoch_(mixture_->length()) {}
  int64_t count() const override { return mixture_->length(); }
  void set_epoch(int64_t rows) override { epoch_ = rows; }
  void take(const Cursor& at, std::span<RowPick> rows) const override {
    std::vector<Pick> picks(rows.size());
    std::vector<int64_t> drawn(at.state.begin() + 2, at.state.end());
    mixture_->run(at.seed, drawn, picks);
    pick_rows(picks, rows);
  }
  void complete(Cursor& at) const override {
    auto& state = at.state;
    if (state.empty()) {
      state.assign(2 + mixture_->sources(), 0);
      state[0] = kind;
      state[1] = version;
      advance(at, at.epoch * epoch_ + at.position);
    }
    if (state.size() != 2 + mixture_->sources() || state[0] != kind || state[1] != version ||
        std::any_of(state.begin() + 2, state.end(), [](int64_t count) { return count < 0; }))
      fail<InputError>("{}: the place to go on from is none of these {} sources; is the recipe another?",
                       path_, mixture_->sources());
  }
  void advance(Cursor& at, int64_t count) const override {
    mixture_->skip(at.seed, std::span(at.state).subspan(2), count);
  }
  void set_shares(std::span<const double> shares) override { mixture_->set_shares(shares); }

 private:
  static constexpr int64_t kind = 1, version = 1;
  std::unique_ptr<Mixture> mixture_;
  std::string path_;
  int64_t epoch_;
};

}  // namespace

void RowPlan::set_shares(std::span<const double> /*shares*/) {
  fail<InputError>("what is trained on is one source, which has no weight");
}

std::unique_ptr<RowPlan> ordered_rows(std::unique_ptr<Order> order) {
  return std::make_unique<OrderedRows>(std::move(order));
}

std::unique_ptr<RowPlan> mixed_rows(std::unique_ptr<Mixture> mixture, std::string path) {
  return std::make_unique<MixedRows>(std::move(mixture), std::move(path));
}

}  // namespace millrace::data
