// Which tokens stand in which row of which batch: planned from the lengths of the texts alone, for an epoch
// at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/encode/texts.h"
#include "data/feed/part.h"

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

/// A function of seed and epoch alone: epoch() gives the rows of any epoch. The texts must stay. For many
/// threads at once.
class Plan {
 public:
  /// The rows of one epoch; what made it must stay. For many threads at once.
  class Epoch {
   public:
    virtual ~Epoch() = default;
    /// Row `at`, 0 ≤ at < rows().
    virtual void row(int64_t at, std::vector<Extract>& pieces) const = 0;
    /// What the batch that row `at` begins is padded to.
    virtual int64_t length(int64_t at) const = 0;
  };

  virtual ~Plan() = default;
  /// Rows of an epoch; the same in each.
  virtual int64_t rows() const = 0;
  virtual std::unique_ptr<const Epoch> epoch(uint64_t seed, int64_t epoch) const = 0;
  /// The values of length() of any epoch, ascending.
  virtual std::vector<int64_t> lengths() const = 0;
  /// For the user: what is in the rows, and the share of places that is padding.
  virtual std::vector<std::string> describe() const = 0;
};

/// Windows of `length` tokens over all texts joined, one behind the other from an offset on that each epoch
/// draws anew; with the order "sequential" from the first token on. Without whole_batches the last one is
/// shorter. InputError when there are too few tokens.
std::unique_ptr<Plan> window_plan(const Texts& texts, const PlanOptions& options);

/// Several texts in a row, each whole; those that are longer than a row are cut into rows of their own and a
/// rest. Best fit, longest first: each goes where the least room is left. That depends on lengths alone;
/// which texts of a length go where, and the order of the rows, each epoch draws anew.
std::unique_ptr<Plan> packed_plan(const Texts& texts, const PlanOptions& options);

/// A text a row, its first `length` tokens; a batch has texts of similar length and is padded to the least of
/// the buckets that holds them. With one bucket every batch is padded to `length`. Which texts come in an
/// epoch, and how often, says the order; of these, the ones of similar length form a batch, and batches come
/// at random.
std::unique_ptr<Plan> bucket_plan(const Lengths& texts, const PlanOptions& options);

/// The `count` lengths (fewer where that suffices) that pad batches least, the last one the longest of
/// `lengths` (each cut to `most`).
std::vector<int64_t> best_buckets(const std::vector<int64_t>& lengths, int64_t most, int64_t count);

}  // namespace millrace::data
