// A batch row by row: what the model got, and what it was made of; as arrays, in words, and as files to look
// at.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <millrace/array.h>

#include "task/feeds.h"

namespace millrace::cli {

/// The rows of a batch as one input gives them to its model.
class InputRows {
 public:
  /// All must stay.
  InputRows(const task::Input& input, const data::Feed& feed, const data::FeedBatch& batch);
  /// Input::fields() of a row, each without the dimension of the batch; and behind these what Input::graph()
  /// makes of them, where training gives it more arrays (masks), without which one cannot see what the model
  /// was given.
  std::vector<Array> row(int64_t row) const;

 private:
  const data::FeedBatch& batch_;
  struct Taken {
    size_t place;  // of the field
    Type type;     // of a row
  };
  std::vector<Taken> taken_;
  std::vector<Array> made_;  // of all rows
};
/// What a row can be looked at by, u8 [C, H, W]; nothing where there are only words for it.
std::optional<Array> row_picture(const task::Input& input, std::span<const Array> row);

/// An output's target of a row in words; `mixed`: of what is mixed into it. "" where the feed has none.
std::string row_target(const task::Output& output, const data::Feed& feed, const data::FeedBatch& batch,
                       int64_t row, bool mixed = false);
/// The number that a feed has for each row in a field ("weights", "mix"); nothing where it has no such field.
std::optional<double> row_number(const data::Feed& feed, const data::FeedBatch& batch,
                                 const std::string& field, int64_t row);
/// The name of a row's sample; "" of rows that are no samples.
std::string row_name(const task::TaskFeed& set, const data::FeedBatch& batch, int64_t row);

/// Each array of the batch as FOLDER/NAME.npy, as the model, the loss and the metrics get it.
void write_arrays(const std::filesystem::path& folder, const data::Feed& feed, const data::FeedBatch& batch);
/// Of each row what a person can look at or listen to: FOLDER/0000-INDEX with .png, .wav or .txt, of several
/// inputs FOLDER/0000-INDEX-INPUT; and of rows that are samples the columns of numbers and texts as
/// FOLDER/rows.csv.
void write_rows(const std::filesystem::path& folder, const task::Task& task, const task::TaskFeed& set,
                const data::FeedBatch& batch);

}  // namespace millrace::cli
