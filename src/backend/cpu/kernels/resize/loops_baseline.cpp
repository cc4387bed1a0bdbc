#include "backend/cpu/kernels/resize/loops.h"

namespace millrace::cpu {
namespace {

// Weights are not negative and add up to 1, except for rounding: sums stay within 32 bits.
uint8_t rounded(int32_t sum) {
  return sum >> kWeightBits > 255 ? 255 : static_cast<uint8_t>(sum >> kWeightBits);
}

void across(const uint8_t* row, int channels, const int* first, const int* taps, const int32_t* weights,
            int width, int count, uint8_t* out) {
  for (int x = 0; x < count; ++x, weights += width, out += channels)
    for (int c = 0; c < channels; ++c) {
      const uint8_t* from = row + first[x] * channels + c;
      int32_t sum = 1 << (kWeightBits - 1);
      for (int k = 0; k < taps[x]; ++k) sum += from[k * channels] * weights[k];
      out[c] = rounded(sum);
    }
}

void down(const uint8_t* rows, int64_t stride, const int32_t* weights, int taps, int64_t bytes,
          uint8_t* out) {
  for (int64_t i = 0; i < bytes; ++i) {
    int32_t sum = 1 << (kWeightBits - 1);
    for (int k = 0; k < taps; ++k) sum += rows[k * stride + i] * weights[k];
    out[i] = rounded(sum);
  }
}

void apart(const uint8_t* pixels, int64_t count, uint8_t* red, uint8_t* green, uint8_t* blue) {
  for (int64_t i = 0; i < count; ++i, pixels += 3) {
    red[i] = pixels[0];
    green[i] = pixels[1];
    blue[i] = pixels[2];
  }
}

void together(const uint8_t* red, const uint8_t* green, const uint8_t* blue, int64_t count, uint8_t* pixels) {
  for (int64_t i = 0; i < count; ++i, pixels += 3) {
    pixels[0] = red[i];
    pixels[1] = green[i];
    pixels[2] = blue[i];
  }
}

void turned(const uint8_t* in, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = in[count - 1 - i];
}

constexpr ResizeLoops loops = {across, down, apart, together, turned};

}  // namespace

const ResizeLoops& resize_loops_baseline() { return loops; }

}  // namespace millrace::cpu
