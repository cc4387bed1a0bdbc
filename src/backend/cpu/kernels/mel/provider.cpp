#include "target/provider.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include <millrace/operator.h>

#include "backend/cpu/kernels/mel/loops.h"
#include "backend/cpu/kernels/vectors.h"
#include "base/format.h"
#include "target/slot.h"

namespace millrace::cpu {

const MelLoops& mel_loops() {
  static const MelLoops& loops = *for_this_cpu(mel_loops_avx512, mel_loops_avx2, mel_loops_baseline).front();
  return loops;
}

namespace {

class MelSpectrogramKernel : public Kernel {
 public:
  explicit MelSpectrogramKernel(const KernelRequest& request) {
    const auto size = [&](int operand, int d) { return request.operand_type(operand).shape[d].size(); };
    p_ = {size(0, 1),
          request.node.types[0].shape[2].size(),
          request.node.attributes.integer("hop"),
          request.node.attributes.integer("fft"),
          size(1, 0),
          size(2, 0)};
    all_ = size(0, 0) * p_.frames;
    chunks_ = (all_ + per_chunk - 1) / per_chunk;
    slots_ = Slots(chunks_);
    for (int64_t k = 0; k < p_.fft; ++k) {
      const double turn = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(p_.fft);
      turns_.push_back(static_cast<float>(std::cos(turn)));
      turns_.push_back(static_cast<float>(-std::sin(turn)));
    }
  }

  std::unique_ptr<Kernel> another() const override { return std::make_unique<MelSpectrogramKernel>(*this); }
  int64_t scratch_bytes() const override { return ranges_bytes() + slots_bytes(); }
  int64_t slots_bytes() const override { return slots_.count() * slot_bytes(); }
  std::string description() const override {
    return fmt::format("{} frames of {} samples, {} at once, {} chunks", all_, p_.fft, mel_loops().lanes,
                       chunks_);
  }

  void run(void* const* operands, void* const* results, void* scratch, DeviceContext device) override {
    const auto* const triangles = static_cast<const float*>(operands[2]);
    auto* const ranges = static_cast<int32_t*>(scratch);
    const int64_t bins = p_.fft / 2 + 1;
    for (int64_t m = 0; m < p_.mels; ++m) {
      const float *row = triangles + m * bins, *end = row + bins;
      while (end > row && end[-1] == 0) --end;
      ranges[2 * m + 1] = static_cast<int32_t>(end - row);
      ranges[2 * m] = static_cast<int32_t>(std::find_if(row, end, [](float x) { return x != 0; }) - row);
    }
    const MelTables tables{static_cast<const float*>(operands[1]), triangles, ranges, turns_.data()};
    device.threads().parallel(chunks_, [&](int64_t chunk) {
      const Slot slot(slots_);
      char* const own = static_cast<char*>(scratch) + ranges_bytes() + slot.index() * slot_bytes();
      mel_loops().run(p_, tables, static_cast<const float*>(operands[0]), chunk * per_chunk,
                      std::min(all_, (chunk + 1) * per_chunk), static_cast<float*>(results[0]),
                      reinterpret_cast<float*>(own));
    });
  }

 private:
  static constexpr int64_t per_chunk = 64;  // some ten microseconds
  int64_t ranges_bytes() const { return (p_.mels * 8 + 63) / 64 * 64; }
  int64_t slot_bytes() const { return (mel_scratch(p_.fft) * mel_loops().lanes * 4 + 63) / 64 * 64; }

  MelProblem p_{};
  int64_t all_ = 0, chunks_ = 0;
  Slots slots_;
  std::vector<float> turns_;
};

std::unique_ptr<Kernel> build_mel(const KernelRequest& request) {
  return std::make_unique<MelSpectrogramKernel>(request);
}

std::optional<std::string> why_no_mel(const Graph& graph, const Node& node) {
  if (graph.type(node.operands[0]).dtype != f32) return "only f32";
  if (!std::has_single_bit(static_cast<uint64_t>(node.attributes.integer("fft"))))
    return "only frames of a power of two";
  if (node.types[0].shape.count() == 0) return "there are no sounds";
  return std::nullopt;
}

}  // namespace

MILLRACE_PROVIDER(mel){
    .name = "mel", .doc = "log-mel spectrograms by a fast Fourier transform", .place = 115, .make = [] {
      return kernels_of({{"mel_spectrogram", build_mel}}, why_no_mel);
    }};

}  // namespace millrace::cpu
