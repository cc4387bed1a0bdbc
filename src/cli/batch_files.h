// A batch as files: its arrays, and each row as something to look at or listen to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <millrace/array.h>

#include "task/feeds.h"
#include "task/rows.h"

namespace millrace::cli {

/// Each array of the batch as FOLDER/NAME.npy, as the model, the loss and the metrics get it.
void write_arrays(const std::filesystem::path& folder, const data::Feed& feed, const data::FeedBatch& batch);
/// Of each row what a person can look at or listen to: FOLDER/0000-INDEX with .png, .wav or .txt, of several
/// inputs FOLDER/0000-INDEX-INPUT; and of rows that are samples the columns of numbers and texts as
/// FOLDER/rows.csv.
void write_rows(const std::filesystem::path& folder, const task::Task& task, const task::TaskFeed& set,
                const data::FeedBatch& batch);

}  // namespace millrace::cli
