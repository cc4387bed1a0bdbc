// A batch row by row: what the model got, its targets, and what it made of it, to be looked at.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>

#include "data/tools/contact_sheet.h"
#include "task/task_feed.h"
#include "track/exhibit.h"

namespace millrace::task {

/// The rows of a batch as one input gives them to its model.
class InputRows {
 public:
  /// All must stay.
  InputRows(const Input& input, const data::Feed& feed, const data::FeedBatch& batch);
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
std::optional<Array> row_picture(const Input& input, std::span<const Array> row);

/// An output's target of a row in words; `mixed`: of what is mixed into it. "" where the feed has none.
std::string row_target(const Output& output, const data::Feed& feed, const data::FeedBatch& batch,
                       int64_t row, bool mixed = false);
/// The number that a feed has for each row in a field ("weights", "mix"); nothing where it has no such field.
std::optional<double> row_number(const data::Feed& feed, const data::FeedBatch& batch,
                                 const std::string& field, int64_t row);
/// The name of a row's sample; "" of rows that are no samples.
std::string row_name(const TaskFeed& set, const data::FeedBatch& batch, int64_t row);

/// Tokens of a row, padding included, of all inputs that have a vocabulary; `length`: of the batch.
int64_t tokens_of_row(const Task& task, int64_t length);

/// A row with its targets and what the model makes of it.
struct ShownRow {
  std::string name;                     // of the sample
  std::string words;                    // inputs that cannot be looked at
  std::vector<data::Picture> pictures;  // of those that can; large ones made smaller
  std::string target, prediction;
};

/// Rows at equal distances of a set that is gone through from its beginning: the same ones each time.
class ShownRows {
 public:
  /// So many, or all where there are fewer. Task and set must stay.
  ShownRows(const Task& task, const TaskFeed& set, int64_t count);
  /// Are there such rows in the next batch of the set?
  bool wants(const data::FeedBatch& batch) const;
  /// That batch, with the logits of each output; these are not looked at where it is not wanted.
  void add(const data::FeedBatch& batch, std::span<const Array> logits);
  std::vector<ShownRow> take() { return std::move(rows_); }

 private:
  /// Of the next row that is wanted, in the next batch.
  int64_t place() const { return std::ssize(rows_) * all_ / count_ - seen_; }
  ShownRow shown(const data::FeedBatch& batch, std::span<const Array> logits,
                 std::span<const InputRows> inputs, int64_t row) const;

  const Task& task_;
  const TaskFeed& set_;
  int64_t all_, count_, seen_ = 0;
  std::vector<ShownRow> rows_;
};

/// Their pictures on one, with target and prediction below each row's first; nothing where they have none.
std::optional<track::Exhibit::Picture> sheet_of(std::span<const ShownRow> rows);

}  // namespace millrace::task
