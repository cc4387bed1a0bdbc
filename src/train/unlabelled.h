// Predicting samples whose classes are not known: rows of tables, sounds, texts. They go through the very feeds, batch sizes and
// compiled steps that evaluation uses, so that a file's predictions are those that its evaluation is made of, to the last bit.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/table/dataset.h"
#include "train/session.h"

namespace millrace::train {

/// What a user names to be predicted, as one data set: any source that training could read (a column of labels need not be there),
/// or WAV and FLAC files one by one. InputError or IoError says what is wrong.
std::shared_ptr<const data::Dataset> open_unlabelled(const Session& session,
                                                     const std::vector<std::string>& paths);

/// Is it named as a WAV or FLAC file?
bool is_sound_file(const std::string& path);

struct OnSample {
  /// Logits of the classes, for each sample once, in the order of the data set.
  std::function<void(int64_t sample, std::span<const float> logits)> predicted;
  /// A sample that cannot be read or decoded; in any order.
  std::function<void(int64_t sample, const std::string& why)> failed;
};
/// Goes through all samples, in parts that fit into data.cache_mb where the model does not need to see all lengths first.
void predict_samples(Predictor& predictor, const Session& session,
                     const std::shared_ptr<const data::Dataset>& samples, const OnSample& on);

/// Logits f32 [tokens] of what follows the tokens of a text, of which the model sees the last that fit into a row. InputError when
/// the model does not predict the next token, or there are none.
Array next_token_logits(Predictor& predictor, const Session& session, std::span<const int32_t> ids);

}  // namespace millrace::train
