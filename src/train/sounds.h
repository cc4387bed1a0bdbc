// Sounds as a recipe's model takes them: log-mel spectrograms.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/graph.h>

#include "data/codecs/sounds/mel.h"
#include "data/feed/array_feed.h"
#include "data/table/dataset.h"
#include "train/datasets.h"
#include "train/recipe.h"

namespace millrace::train {

/// What is known of sounds: the classes, and what log-mels are like.
struct SoundEncoding {
  std::vector<std::string> classes;
  double mean = 0, deviation = 1;

  std::string json() const;
  /// InputError when it is not what json() wrote.
  static SoundEncoding parse(const std::string& text);
};

/// Windows of 25 ms every 10 ms, at data.rate.
data::MelOptions mel_options(const Recipe& recipe);
/// Of data.seconds.
int64_t sound_samples(const Recipe& recipe);

/// Log-mels f32 [N, 1, mels, frames] of all sounds, cut or filled up with silence to data.seconds, not normalised yet. `classes`:
/// the model's; empty: found in the data. With batches of `batch` sounds they must fit into data.memory. Without `labelled` no classes are looked for, and a row's label is its sample's number.
std::shared_ptr<data::ArrayData> sound_rows(std::shared_ptr<const data::Dataset> dataset,
                                            const Recipe& recipe, std::vector<std::string> classes,
                                            bool labelled, int64_t batch, const ReadProgress& progress);

/// The same, normalised, of sounds f32 [batch, sound_samples()] by graph operators (data/codecs/sounds/mel_graph.h says how near).
Value sound_graph(Graph& graph, Value sounds, const Recipe& recipe, const SoundEncoding& encoding);

void normalise(data::ArrayData& data, const SoundEncoding& encoding);

}  // namespace millrace::train
