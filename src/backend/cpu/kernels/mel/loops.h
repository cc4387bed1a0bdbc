// The arithmetic of mel spectrograms in f32, compiled once for each kind of CPU.
#pragma once

#include <cstdint>

namespace millrace::cpu {

struct MelProblem {
  int64_t samples, frames, hop, fft, window, mels;  // of a sound; fft: a power of two
};

/// What does not change from frame to frame.
struct MelTables {
  const float* window;
  const float* triangles;  // [mels, fft / 2 + 1]
  const int32_t* ranges;   // of each triangle the first bin that is not 0, and the end
  const float* turns;      // cos(2π k / fft), −sin(2π k / fft) for k < fft
};

/// Floats of a lane.
constexpr int64_t mel_scratch(int64_t fft) { return 2 * fft + fft / 2 + 1; }

struct MelLoops {
  int lanes;
  /// Frames [begin, end), counted over all sounds. `scratch`: mel_scratch() · lanes floats.
  void (*run)(const MelProblem& problem, const MelTables& tables, const float* sounds, int64_t begin,
              int64_t end, float* out, float* scratch);
};

/// The best that this CPU has.
const MelLoops& mel_loops();

// One file each, compiled for that CPU.
const MelLoops& mel_loops_avx512();
const MelLoops& mel_loops_avx2();
const MelLoops& mel_loops_baseline();

}  // namespace millrace::cpu
