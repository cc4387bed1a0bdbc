#include "data/table/test_share.h"

#include <millrace/random.h>

namespace millrace::data {

bool kept_for_test(int64_t index, double share) {
  const auto words = philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                            {0x74657374, 0x73706c69});
  return words[0] * 0x1p-32 < share;
}

}  // namespace millrace::data
