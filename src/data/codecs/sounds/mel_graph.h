// Mel spectrograms (mel.h) as graph operators.
#pragma once

#include <millrace/tensor.h>

#include "data/codecs/sounds/mel.h"

namespace millrace::data {

/// MelSpectrogram::log_power() of sounds f32 [batch, samples] of options.rate: f32 [batch, 1, mels, 1 +
/// samples / hop]. Sums are those of f32 in another order: power differs by about 1e-6 of the loudest in its
/// window.
Tensor log_mels(const Tensor& sounds, const MelOptions& options);

}  // namespace millrace::data
