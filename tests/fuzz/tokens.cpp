// Any bytes as a file of tokens: whatever it then says lies within it, or it is none. Its sizes, key and
// checksum are mended mostly, or nothing would be let through; the first byte says which.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "data/encode/token_store.h"
#include "fuzz/folder.h"
#include "fuzz/fuzz.h"

using namespace millrace;
using namespace millrace::data;

namespace {

constexpr size_t kTrailer = 48;  // six numbers

void mend_tokens(std::vector<uint8_t>& bytes, uint8_t how) {
  constexpr size_t key = 3;
  if (bytes.size() < kTrailer + key) return;
  if (how & 1) {  // the tokens take whole numbers of eight bytes
    const auto spare = static_cast<std::ptrdiff_t>((bytes.size() - kTrailer - key) % 8);
    bytes.erase(bytes.begin(), bytes.begin() + spare);
  }
  enum { width = 1, tokens, texts, key_bytes, crc };
  uint64_t t[kTrailer / 8];
  uint8_t* const trailer = bytes.data() + bytes.size() - kTrailer;
  std::memcpy(t, trailer, kTrailer);
  const uint64_t rest = bytes.size() - kTrailer;
  if (how & 1) {  // small numbers, of which the tokens take what is left
    t[width] = t[width] % 2 ? 2 : 4;
    t[texts] = std::min(t[texts] % 32, (rest - key) / 16);
    t[key_bytes] = key;
    const uint64_t left = rest - key - t[texts] * 16;
    t[tokens] = left / t[width];
    std::memcpy(trailer - key, "key", key);
    if (t[texts] > 0 && how & 2) std::memcpy(bytes.data() + left + 8 * (t[texts] - 1), &t[tokens], 8);
  }
  const uint64_t begin = (t[tokens] * t[width] + 7) / 8 * 8;
  if (begin <= rest) t[crc] = crc32c(bytes.data() + begin, rest - begin);
  std::memcpy(trailer, t, kTrailer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::vector<uint8_t> bytes(data + 1, data + size);
  mend_tokens(bytes, data[0]);
  fuzz::put("fuzz.tokens", bytes);
  constexpr int64_t vocabulary = 50'000;
  const auto found = read_tokens(fuzz::folder() / "fuzz.tokens", "key", vocabulary);
  if (!found) return 0;
  const size_t count = found->ends.size();
  if (found->bytes.size() != count) std::abort();
  int64_t from = 0, sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t length = found->ends[i] - from;
    if (length < 0 || found->ends[i] > found->tokens.size()) std::abort();
    sum += found->bytes[i];
    fuzz::refuse_or_take([&] {
      std::vector<int64_t> text(static_cast<size_t>(length));
      found->tokens.part(from, length).get(0, text);
      for (const int64_t token : text)
        if (token < 0 || token >= vocabulary) std::abort();
    });
    from = found->ends[i];
  }
  return sum < 0;
}
