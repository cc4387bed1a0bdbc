#include "target/provider.h"

#include <algorithm>
#include <cstring>

#include <millrace/operator.h>

#include "backend/cpu/kernels/resize/loops.h"
#include "backend/cpu/kernels/resize/table.h"
#include "base/format.h"

namespace millrace::cpu {
namespace {

constexpr int64_t slack = ResizeLoops::slack;

/// A chunk is a picture or, where there are few, a band of its rows: made across for the rows that it needs,
/// then down. Planes go three together where they can, as the loops are made for.
class Resize : public ChunkedKernel {
 public:
  Resize(const Shape& from, const Shape& to)
      : height_(from[from.rank() - 2].size()),
        width_(from[from.rank() - 1].size()),
        new_height_(to[to.rank() - 2].size()),
        new_width_(to[to.rank() - 1].size()) {
    const int64_t planes = from.count() / (height_ * width_);
    channels_ = from.rank() > 2 && from[from.rank() - 3].size() % 3 == 0 ? 3 : 1;
    groups_ = planes / channels_;
    across_.make(static_cast<int>(width_), 0, static_cast<double>(width_), static_cast<int>(new_width_), 0,
                 static_cast<int>(new_width_));
    down_.make(static_cast<int>(height_), 0, static_cast<double>(height_), static_cast<int>(new_height_), 0,
               static_cast<int>(new_height_));
    // Bands of so many rows that what neighbours both make across does not count.
    const int64_t most = std::max<int64_t>(1, new_height_ / 32);
    bands_ = std::clamp<int64_t>(groups_ == 0 ? 1 : 16 / groups_, 1, most);
    band_ = (new_height_ + bands_ - 1) / bands_;
    bands_ = (new_height_ + band_ - 1) / band_;
    for (int64_t band = 0; band < bands_; ++band) {
      const Rows rows = rows_of(band);
      most_rows_ = std::max(most_rows_, rows.source_end - rows.source);
    }
  }

  int64_t chunks(int) const override { return groups_ * bands_; }
  double nanoseconds() const override {
    return static_cast<double>(groups_ * channels_ * new_width_) *
           (0.4 * static_cast<double>(height_) * across_.width +
            0.1 * static_cast<double>(new_height_) * down_.width);
  }
  int64_t scratch_bytes() const override { return groups_ * bands_ * scratch(); }
  std::string description() const override {
    return fmt::format("{} pictures of {} channels, {} bands each, taps {} and {}", groups_, channels_,
                       bands_, across_.width, down_.width);
  }

  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void* all) override {
    const int64_t group = chunk / bands_, plane = height_ * width_, new_plane = new_height_ * new_width_;
    const auto* const in = static_cast<const uint8_t*>(operands[0]) + group * channels_ * plane;
    auto* const out = static_cast<uint8_t*>(results[0]) + group * channels_ * new_plane;
    auto* const line = static_cast<uint8_t*>(all) + chunk * scratch();
    uint8_t* const rows = line + line_bytes();
    const Rows band = rows_of(chunk % bands_);
    const ResizeLoops& loops = resize_loops();
    const int channels = static_cast<int>(channels_);
    const int64_t stride = new_width_ * channels_;
    for (int64_t y = band.source; y < band.source_end; ++y) {
      const uint8_t* const row = in + y * width_;
      if (channels_ == 3)
        loops.together(row, row + plane, row + 2 * plane, width_, line);
      else
        std::memcpy(line, row, static_cast<size_t>(width_));
      uint8_t* const to = rows + (y - band.source) * stride;
      if (across_.same)
        std::memcpy(to, line, static_cast<size_t>(stride));
      else
        loops.across(line, channels, across_.first.data(), across_.count.data(), across_.weights.data(),
                     across_.width, static_cast<int>(new_width_), to);
    }
    for (int64_t y = band.begin; y < band.end; ++y) {
      const auto at = static_cast<size_t>(y);
      loops.down(rows + (down_.first[at] - band.source) * stride, stride,
                 &down_.weights[at * static_cast<size_t>(down_.width)], down_.count[at], stride, line);
      uint8_t* const to = out + y * new_width_;
      if (channels_ == 3)
        loops.apart(line, new_width_, to, to + new_plane, to + 2 * new_plane);
      else
        std::memcpy(to, line, static_cast<size_t>(new_width_));
    }
  }

 private:
  struct Rows {
    int64_t begin, end, source, source_end;  // of the result, and what they are made of
  };
  Rows rows_of(int64_t band) const {
    const int64_t begin = band * band_, end = std::min(new_height_, begin + band_);
    const auto last = static_cast<size_t>(end - 1);
    return {begin, end, down_.first[static_cast<size_t>(begin)], down_.first[last] + down_.count[last]};
  }
  int64_t line_bytes() const { return (std::max(width_, new_width_) * channels_ + slack + 63) / 64 * 64; }
  int64_t scratch() const {
    return line_bytes() + (most_rows_ * new_width_ * channels_ + slack + 63) / 64 * 64;
  }

  const int64_t height_, width_, new_height_, new_width_;
  int64_t channels_ = 1, groups_ = 0, bands_ = 1, band_ = 1, most_rows_ = 0;
  ResizeTable across_, down_;
};

std::unique_ptr<Kernel> build_resize(const KernelRequest& request) {
  return std::make_unique<Resize>(request.operand_type(0).shape, request.node.types[0].shape);
}

std::optional<std::string> why_no_resize(const Graph& graph, const Node& node) {
  if (graph.type(node.operands[0]).shape.count() == 0) return "there are no pictures";
  return std::nullopt;
}

}  // namespace

MILLRACE_PROVIDER(resize){
    .name = "resize", .doc = "resize with the loader's loops", .place = 110, .make = [] {
      return kernels_of({{"resize", build_resize}}, why_no_resize);
    }};

}  // namespace millrace::cpu
