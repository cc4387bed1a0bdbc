// Tars as streams: neighbouring members with one key are a sample (WebDataset); in tars of class folders each
// picture is one.
#include <algorithm>
#include <optional>

#include "base/format.h"
#include "data/formats/streams/stream.h"
#include "data/formats/tar_members.h"
#include "data/formats/tar_values.h"

namespace millrace::data {
namespace {

constexpr uint64_t kMostExtension = 1 << 20;

/// A sample is whole only when the next one begins: headers are read ahead. Tars may follow each other, as
/// cat makes them.
class TarCutter final : public StreamCutter {
 public:
  void begin(StreamInput& input) override {
    headers_.emplace(input.path());
    ahead_.clear();
    looked_ = over_ = false;
  }

  bool next(StreamInput& input, std::vector<uint8_t>& bytes, uint64_t& offset, std::string&) override {
    std::string key, extension;
    bool inside = false;
    while (look(input)) {
      std::string_view name = member_.name, next;
      while (name.starts_with("./")) name.remove_prefix(2);
      const bool belongs = member_.regular && split_key(name, next, extension);
      if (belongs && inside && next != key) return true;
      if (belongs && !inside) {
        inside = true;
        key = next;
        offset = begin_;
      }
      take(input, belongs ? &bytes : nullptr);
    }
    return inside;
  }
  std::string behind() const override { return std::string(2 * tar_block, '\0'); }

 private:
  [[noreturn]] static void cut_off(const StreamInput& input, const std::string& where) {
    fail<InputError>("{}: the tar ends within {}, at byte {}, without an end mark; was it cut off?",
                     input.path(), where, input.offset());
  }

  /// Reads the headers of the next member into ahead_; false at the end.
  bool look(StreamInput& input) {
    if (looked_) return true;
    if (over_) return false;
    ahead_.clear();
    begin_ = input.offset();
    for (bool ended = false;;) {
      const uint64_t at = input.offset();
      const size_t before = ahead_.size();
      if (ended && input.peek(1).empty()) {
        over_ = true;
        return false;
      }
      if (!input.take(tar_block, ahead_)) cut_off(input, "a header after " + headers_->last());
      switch (headers_->header(std::span(ahead_).subspan(before), at, member_)) {
        case TarHeaders::What::end_mark:
          ended = true;
          ahead_.clear();
          begin_ = input.offset();
          break;
        case TarHeaders::What::extension: {
          if (member_.size > kMostExtension)
            fail<InputError>("{}: damaged tar header at byte {}: an extension of {} bytes", input.path(), at,
                             member_.size);
          if (!input.take(member_.size + tar_padding(member_.size), ahead_)) cut_off(input, member_.name);
          const auto* text = reinterpret_cast<const char*>(ahead_.data() + before + tar_block);
          headers_->extension({text, member_.size}, at);
          ended = false;
          break;
        }
        case TarHeaders::What::member:
          return looked_ = true;
      }
    }
  }

  /// Takes the content of the member looked at: into `bytes`, with its headers, or away.
  void take(StreamInput& input, std::vector<uint8_t>* bytes) {
    looked_ = false;
    uint64_t left = member_.size + tar_padding(member_.size);
    if (bytes) {
      if (left > kMostSampleBytes || bytes->size() + left > kMostSampleBytes)
        fail<InputError>("{}: {} has {} bytes, too many for a sample", input.path(), member_.name,
                         member_.size);
      input.append(ahead_, *bytes);
      if (!input.take(left, *bytes)) cut_off(input, member_.name);
      return;
    }
    while (left > 0) {
      const size_t some = input.peek(static_cast<size_t>(std::min<uint64_t>(left, 1 << 18))).size();
      if (some == 0) cut_off(input, member_.name);
      input.skip(some);
      left -= some;
    }
  }

  std::optional<TarHeaders> headers_;
  TarMember member_;
  std::vector<uint8_t> ahead_;  // the headers of member_, when it was looked at
  uint64_t begin_ = 0;          // where those begin
  bool looked_ = false, over_ = false;
};

}  // namespace

MILLRACE_STREAM_FORMAT(tar){
    "webdataset", "tar", 20,
    [](std::string_view, std::span<const uint8_t> head) { return is_tar_header(head); },
    []() -> std::unique_ptr<StreamCutter> { return std::make_unique<TarCutter>(); }};

}  // namespace millrace::data
