// "flip": the mirror image half of the time.
#include "data/augment/augment.h"

namespace millrace::data {
namespace {

class Flip final : public PassAugmentation {
 public:
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    if (draw.random.next() & 1) pass.mirror();
    return true;
  }
};

}  // namespace

MILLRACE_AUGMENTATION(flip){
    .name = "flip",
    .doc = "the mirror image half of the time",
    .place = 20,
    .make = [](const Settings&) -> std::unique_ptr<Augmentation> { return std::make_unique<Flip>(); }};

}  // namespace millrace::data
