// "block-shuffle 1000 8": for disks and servers where each place costs: blocks of neighbouring samples come
// in random order, and each window of so many blocks is shuffled within. What does not fill a block comes at
// the end.
#include <algorithm>

#include "data/order/order.h"
#include "data/order/permutation.h"

namespace millrace::data {
namespace {

class BlockShuffle final : public Order {
 public:
  BlockShuffle(int64_t count, int64_t block, int64_t window)
      : count_(count), block_(std::min(block, std::max<int64_t>(count, 1))), window_(window) {}
  int64_t length() const override { return count_; }

  Pick at(uint64_t seed, int64_t epoch, int64_t position) const override {
    // Blocks in random order make a line; windows of it are shuffled. The last window takes what is left
    // over.
    const int64_t blocks = count_ / block_, span = window_ * block_;
    const int64_t windows = std::max<int64_t>(blocks / window_, 1),
                  number = std::min(position / span, windows - 1);
    const int64_t begin = number * span, size = number == windows - 1 ? count_ - begin : span;
    // Every window has an order of its own: a seed of its own.
    const uint64_t own = seed ^ (0x9e3779b97f4a7c15 * static_cast<uint64_t>(number + 1));
    const int64_t place = begin + Permutation(size, own, epoch)(position - begin);
    const int64_t line = place / block_;
    if (line >= blocks) return {place};
    return {Permutation(blocks, seed, epoch)(line) * block_ + place % block_};
  }

 private:
  int64_t count_, block_, window_;
};

}  // namespace

constexpr double most_samples = 1e15;

MILLRACE_ORDER(block_shuffle){
    .name = "block-shuffle",
    .doc =
        "for disks and servers where each place costs: blocks come in random order, and windows of blocks "
        "are shuffled",
    .place = 30,
    .settings = {{"SAMPLES_OF_A_BLOCK", "how many are read one after the other", int64_t{0}, 1, most_samples},
                 {"BLOCKS_OF_A_WINDOW", "how many are in memory at once", int64_t{0}, 1, most_samples}},
    .make = [](const OrderText& text, const Population& population) -> std::unique_ptr<Order> {
      const int64_t block = text.settings.integer("SAMPLES_OF_A_BLOCK"),
                    window = text.settings.integer("BLOCKS_OF_A_WINDOW");
      if (block > population.count || window > population.count)
        text.wrong("the data has only " + std::to_string(population.count) + " samples");
      return std::make_unique<BlockShuffle>(population.count, block, window);
    }};

}  // namespace millrace::data
