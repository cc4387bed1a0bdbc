// Any bytes as a stream of each format, in pieces of any size, plain or packed: samples come out, which parse
// or are refused, or the stream is refused. The first byte chooses the pieces.
#include "data/formats/streams/stream.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <millrace/file.h>

#include "data/formats/formats.h"
#include "fuzz.h"

using namespace millrace::data;

namespace {

class Pieces final : public ByteStream {
 public:
  Pieces(std::span<const uint8_t> bytes, size_t piece) : bytes_(bytes), piece_(piece) {}
  size_t read(std::span<uint8_t> out) override {
    const size_t size = std::min({out.size(), piece_, bytes_.size() - at_});
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(at_), size, out.begin());
    at_ += size;
    return size;
  }
  void stop() override {}

 private:
  std::span<const uint8_t> bytes_;
  size_t piece_, at_ = 0;
};

/// What comes out must be a part of what went in, in order.
void cut(const StreamFormat& format, std::span<const uint8_t> bytes, size_t piece) {
  StreamInput input("fuzz", unpacked("fuzz", std::make_unique<Pieces>(bytes, piece)));
  const auto cutter = format.make();
  cutter->begin(input);
  uint64_t last = 0, total = 0;
  for (int samples = 0; samples < 10'000; ++samples) {
    std::vector<uint8_t> sample;
    std::string fault;
    uint64_t offset = input.offset();
    if (!cutter->next(input, sample, offset, fault)) break;
    if (sample.empty() || offset < last || offset + 1 > input.offset()) std::abort();
    last = offset;
    total += sample.size();
    if (total > input.offset() + 1) std::abort();  // a line may get the end that it lacked
    millrace::fuzz::refuse_or_take([&] {
      std::vector<uint8_t> whole;
      for (const std::string& text :
           {cutter->before(), std::string(sample.begin(), sample.end()), cutter->behind()})
        whole.insert(whole.end(), text.begin(), text.end());
      const auto dataset =
          formats().at(format.name).open("fuzz", {memory_file("fuzz", Bytes(std::move(whole)))}, {});
      for (size_t c = 0; c < dataset->columns().size(); ++c) (void)dataset->read(0, c);
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  // Checksums of tar headers are mended, or nothing would be let through.
  std::vector<uint8_t> mended(bytes.begin(), bytes.end());
  for (size_t at = 0; at + 512 <= mended.size(); at += 512) {
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < 512; ++i) sum += i < 148 || i >= 156 ? mended[at + i] : 0u;
    std::snprintf(reinterpret_cast<char*>(&mended[at + 148]), 8, "%06o", sum);
  }
  millrace::fuzz::refuse_or_take(
      [&] { cut(stream_formats().at("webdataset"), mended, size_t{1} + data[0] * 7); });
  for (const StreamFormat* format : stream_formats().all())
    millrace::fuzz::refuse_or_take([&] { cut(*format, bytes, size_t{1} + data[0] * 7); });
  return 0;
}
