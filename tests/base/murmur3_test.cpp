#include "base/murmur3.h"

#include <doctest/doctest.h>

using namespace millrace;

// Values of scikit-learn's murmurhash3_32(text, seed, positive=True).
TEST_CASE("murmur3 gives what others give") {
  CHECK(murmur3_32("hello") == 0x248bfa47);
  CHECK(murmur3_32("") == 0);
  CHECK(murmur3_32("", 1) == 0x514e28b7);
  CHECK(murmur3_32("a") == 0x3c2569b2);
  CHECK(murmur3_32("ab") == 0x9bbfd75f);
  CHECK(murmur3_32("abc", 7) == 0x381356a9);
  CHECK(murmur3_32("68fd1e64") == 0xc16248a1);
  CHECK(murmur3_32("\xc3\xa4rger \xe2\x82\xac") == 0x823eda0a);  // bytes above 127
}
