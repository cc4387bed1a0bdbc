// Which samples (or extracts of a corpus) stand in which rows of an epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/feed.h>

#include "data/feed/part.h"
#include "data/order/order.h"

namespace millrace::data {

/// One row: a sample and its weight in the loss, or extracts.
struct RowPick {
  /// Index -1: the row is no sample of the data set, no part reads for it. A row may be a sample and have
  /// extracts of it.
  Pick pick{-1, 1};
  std::vector<Extract> extracts;
};

/// A function of seed, epoch, position and the cursor's state alone. All members but set_shares() and
/// set_epoch() may be called from many threads.
class RowPlan {
 public:
  virtual ~RowPlan() = default;

  /// Rows of an epoch.
  virtual int64_t count() const = 0;
  /// So many of them are taken in each epoch: fewer than count() where the last ones, which fill no batch,
  /// are left out. Said once, before anything but count() is asked.
  virtual void set_epoch(int64_t /*rows*/) {}
  /// The rows from a cursor on, as many as `rows` has, which do not go beyond the epoch. They come as a
  /// RowPick begins, but their extracts may keep memory.
  virtual void take(const Cursor& at, std::span<RowPick> rows) const = 0;
  /// What a batch that begins there is padded to; 0 where rows have no length.
  virtual int64_t length(const Cursor& /*at*/) const { return 0; }
  /// The values of length(), ascending.
  virtual std::vector<int64_t> lengths() const { return {}; }
  /// Must batches begin at multiples of the batch (as their length depends on where they begin)?
  virtual bool whole_batches() const { return false; }

  /// Fills in a cursor's state where it has none; InputError when it has that of something else. Without a
  /// state of its own: empties it.
  virtual void complete(Cursor& at) const { at.state.clear(); }
  /// Moves the state on over `count` rows; epoch and position are the caller's.
  virtual void advance(Cursor& /*at*/, int64_t /*count*/) const {}
  /// InputError where nothing is mixed.
  virtual void set_shares(std::span<const double> shares);
  /// Lines for the user: what is in the rows.
  virtual std::vector<std::string> describe() const { return {}; }
};

/// Rows that are samples, in an order (order/order.h).
std::unique_ptr<RowPlan> ordered_rows(std::unique_ptr<Order> order);
/// Samples of several sources mixed by `shares` (order/shares.h). `first`: of each source, its first sample;
/// an epoch is as long as those of all orders together. `path` is for messages.
std::unique_ptr<RowPlan> mixed_rows(std::vector<int64_t> first, std::vector<std::unique_ptr<Order>> orders,
                                    std::span<const double> shares, std::string path);

}  // namespace millrace::data
