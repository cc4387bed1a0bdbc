// TFRecord as a stream; the layout stands in formats/tfrecord.cpp. A record whose data does not fit its
// checksum is a bad sample; a length that does not ends the stream.
#include <cstring>

#include "base/crc32c.h"
#include "base/format.h"
#include "base/number_at.h"
#include "data/formats/streams/stream.h"

namespace millrace::data {
namespace {

constexpr size_t kFrame = 12;

bool begins_record(std::span<const uint8_t> frame) {
  return frame.size() >= kFrame &&
         number_at<uint32_t>(frame.data() + 8) == masked_crc32c(crc32c(frame.data(), 8));
}

class TfRecordCutter final : public StreamCutter {
 public:
  bool next(StreamInput& input, std::vector<uint8_t>& bytes, uint64_t&, std::string& fault) override {
    const uint64_t begin = input.offset();
    const auto frame = input.peek(kFrame);
    if (frame.empty()) return false;
    const auto damaged = [&](const char* why) {
      fail<InputError>("{}: damaged at byte {}: {}; copy the data again", input.path(), begin, why);
    };
    if (frame.size() < kFrame) damaged("it ends within a record");
    if (!begins_record(frame)) damaged("the checksum of a record's length is wrong");
    const auto size = number_at<uint64_t>(frame.data());
    if (size > kMostSampleBytes) damaged("a record of more than 1 GB");
    if (!input.take(kFrame + size + 4, bytes)) damaged("it ends within a record");
    if (masked_crc32c(crc32c(bytes.data() + kFrame, size)) !=
        number_at<uint32_t>(bytes.data() + kFrame + size))
      fault = fmt::format("{}, byte {}: the checksum of its data is wrong", input.path(), begin);
    return true;
  }
};

}  // namespace

MILLRACE_STREAM_FORMAT(tfrecord){
    "tfrecord", "TFRecord", 10,
    [](std::string_view, std::span<const uint8_t> head) { return begins_record(head); },
    []() -> std::unique_ptr<StreamCutter> { return std::make_unique<TfRecordCutter>(); }};

}  // namespace millrace::data
