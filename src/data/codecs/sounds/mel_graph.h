// Mel spectrograms (mel.h) as graph operators.
#pragma once

#include <millrace/graph.h>
#include <millrace/tensor.h>

#include "data/codecs/sounds/mel.h"

namespace millrace::data {

/// MelSpectrogram::log_power() of sounds f32 [batch, samples] of options.rate: f32 [batch, 1, mels, 1 + samples / hop]. A convolution
/// takes the windows and their spectra (the Fourier transform is a product with cosines and sines), another one the triangles.
/// Sums are those of f32 in another order than the fast transform's: power differs by about 1e-6 of the loudest in its window.
millrace::Value log_mels(Graph& graph, millrace::Value sounds, const MelOptions& options);
/// The same of tensors.
Tensor log_mels(const Tensor& sounds, const MelOptions& options);

}  // namespace millrace::data
