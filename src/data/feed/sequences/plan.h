// Which tokens stand in which row of which batch: planned from the lengths of the texts alone, for an epoch
// at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/encode/texts.h"
#include "data/feed/row_plan.h"

namespace millrace::data {

struct PlanOptions {
  int64_t length = 256;           // most tokens in a row
  int64_t batch = 1;              // rows
  std::string order = "shuffle";  // order/order.h; "sequential" changes nothing from epoch to epoch
  bool whole_batches = true;      // leaves out the last rows of an epoch when they fill no batch
  bool next_token = false;        // a row's tokens need one more behind them, as the last target
  bool whole_windows = true;      // with whole_batches false: leaves out the tokens that fill no window
  std::vector<int64_t> buckets;   // lengths that rows are padded to, ascending; the last is `length`
};

/// Rows that are planned an epoch at a time, as a function of seed and epoch alone.
class EpochRows : public RowPlan {
 public:
  /// The rows of one epoch; what made it must stay. For many threads at once.
  class Epoch {
   public:
    virtual ~Epoch() = default;
    /// Row `at`, 0 ≤ at < count().
    virtual void row(int64_t at, std::vector<Extract>& pieces) const = 0;
    /// What the batch that row `at` begins is padded to.
    virtual int64_t length(int64_t at) const = 0;
  };
  virtual std::unique_ptr<const Epoch> epoch(uint64_t seed, int64_t epoch) const = 0;

  int64_t count() const override { return rows_; }
  void take(const Cursor& at, std::span<RowPick> rows) const override;
  int64_t length(const Cursor& at) const override;
  std::vector<int64_t> lengths() const override { return lengths_; }
  bool whole_batches() const override { return lengths_.size() > 1; }

 protected:
  /// `samples`: a row is one of these, whole; null: it is extracts. Where no batches are left out
  /// (PlanOptions::whole_batches false), every epoch has the order of epoch 0.
  EpochRows(PlanOptions options, std::vector<int64_t> lengths,
            std::shared_ptr<const Lengths> samples = nullptr)
      : options_(std::move(options)), lengths_(std::move(lengths)), samples_(std::move(samples)) {}

  const PlanOptions options_;
  const std::vector<int64_t> lengths_;  // of batches, ascending
  const std::shared_ptr<const Lengths> samples_;
  int64_t rows_ = 0;  // of an epoch

 private:
  struct Begun {
    uint64_t seed;
    int64_t epoch;
    std::shared_ptr<const Epoch> rows;
  };
  std::shared_ptr<const Epoch> begun(const Cursor& at) const;

  mutable std::mutex mutex_;
  mutable std::deque<Begun> begun_;  // the latest last
};

/// Windows of `length` tokens over all texts joined, one behind the other from an offset on that each epoch
/// draws anew; with the order "sequential" from the first token on. Without whole_batches the last one is
/// shorter. InputError when there are too few tokens.
std::unique_ptr<EpochRows> window_plan(const Texts& texts, const PlanOptions& options);

/// Several texts in a row, each whole; those that are longer than a row are cut into rows of their own and a
/// rest. Best fit, longest first: each goes where the least room is left. That depends on lengths alone;
/// which texts of a length go where, and the order of the rows, each epoch draws anew.
std::unique_ptr<EpochRows> packed_plan(const Texts& texts, const PlanOptions& options);

/// A text a row, its first `length` tokens; a batch has texts of similar length and is padded to the least of
/// the buckets that holds them. With one bucket every batch is padded to `length`. Which texts come in an
/// epoch, and how often, says the order; of these, the ones of similar length form a batch, and batches come
/// at random.
std::unique_ptr<EpochRows> bucket_plan(std::shared_ptr<const Lengths> texts, const PlanOptions& options);

/// The `count` lengths (fewer where that suffices) that pad batches least, the last one the longest of
/// `lengths` (each cut to `most`).
std::vector<int64_t> best_buckets(const std::vector<int64_t>& lengths, int64_t most, int64_t count);

}  // namespace millrace::data
