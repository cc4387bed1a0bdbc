// "flip": the mirror image half of the time.
#include "data/augment/augment.h"
#include "data/augment/mirror.h"

namespace millrace::data {
namespace {

class Flip final : public Augmentation {
 public:
  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const override {
    mirror(extent, in, out, draw.random.next() & 1);
  }
};

}  // namespace

const AugmentationKind flip_kind{"flip", "flip", [](AugmentationWords&) -> std::unique_ptr<Augmentation> {
                                   return std::make_unique<Flip>();
                                 }};

}  // namespace millrace::data
