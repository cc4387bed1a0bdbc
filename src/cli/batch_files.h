// A batch as files, to look at: what the model got, and what it was made of.
#pragma once

#include <filesystem>

#include "data/codecs/text/tokenizer.h"
#include "data/feed/feed.h"
#include "data/table/dataset.h"

namespace millrace::cli {

/// Each array of the batch as FOLDER/NAME.npy, as the model, the loss and the metrics get it.
void write_arrays(const std::filesystem::path& folder, const data::Feed& feed, const data::FeedBatch& batch);
/// The columns of numbers and texts of the batch's samples as FOLDER/rows.csv, in its order.
void write_rows(const std::filesystem::path& folder, const data::Feed& feed, const data::Dataset& samples);
/// The files of the batch's sounds as they are: FOLDER/0000-NUMBER.wav.
void write_sounds(const std::filesystem::path& folder, const data::Feed& feed, const data::Dataset& samples);
/// The tokens of each row, as text: FOLDER/0000.txt.
void write_texts(const std::filesystem::path& folder, const data::Feed& feed, const data::FeedBatch& batch,
                 const data::Tokenizer& tokenizer);

}  // namespace millrace::cli
