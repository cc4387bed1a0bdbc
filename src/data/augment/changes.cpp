#include "data/augment/changes.h"

#include <cstring>

namespace millrace::data {
namespace {

using Apply = std::function<void(const Extent&, const uint8_t*, uint8_t*, Draw&)>;
using Collect = std::function<bool(Draw&, Pass&)>;

class Change final : public Augmentation {
 public:
  Change(Apply apply, Collect collect, ExtentCheck check)
      : apply_(std::move(apply)), collect_(std::move(collect)), check_(std::move(check)) {}
  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const override {
    apply_(extent, in, out, draw);
  }
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    return collect_ && collect_(draw, pass);
  }
  void check(const Extent& extent) const override {
    if (check_) check_(extent);
  }

 private:
  Apply apply_;
  Collect collect_;
  ExtentCheck check_;
};

}  // namespace

std::unique_ptr<Augmentation> change_by(Apply apply) {
  return std::make_unique<Change>(std::move(apply), nullptr, nullptr);
}

std::unique_ptr<Augmentation> change_sometimes(double p,
                                               std::function<void(const Extent&, uint8_t*, Draw&)> change,
                                               ExtentCheck check) {
  Apply apply = [p, change = std::move(change)](const Extent& extent, const uint8_t* in, uint8_t* out,
                                                Draw& draw) {
    std::memcpy(out, in, extent.bytes());
    if (draw.random.uniform() < p) change(extent, out, draw);
  };
  return std::make_unique<Change>(std::move(apply), nullptr, std::move(check));
}

std::unique_ptr<Augmentation> change_in_pass(Collect collect, ExtentCheck check) {
  Apply apply = [collect](const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) {
    Pass pass;
    collect(draw, pass);
    pass.run(extent, in, out);
  };
  return std::make_unique<Change>(std::move(apply), std::move(collect), std::move(check));
}

std::unique_ptr<Augmentation> look_up_sometimes(double p, const Table& table) {
  return change_in_pass([p, table](Draw& draw, Pass& pass) {
    if (draw.random.uniform() < p) pass.look_up(table);
    return true;
  });
}

}  // namespace millrace::data
