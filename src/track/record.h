// What a training hands to its logs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "track/exhibit.h"

namespace millrace::track {

/// The names of a record's values: made once, shared by all records of their kind.
struct Names {
  std::vector<std::string> keys;  // "loss"
  /// Of the same values as curves: "train/loss"; "" of those that are none.
  std::vector<std::string> curves;
  bool summary = false;  // of an epoch, not of a step
};

struct Record {
  std::shared_ptr<const Names> names;
  int64_t step = 0;
  double time = 0;  // seconds since 1970
  std::vector<double> values;
  /// Instead of values: makes what is to be shown. Called once, by the thread that writes.
  std::function<std::vector<Exhibit>()> exhibits = nullptr;
};

/// Something that records are written to. Used by one thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(const Record& record) = 0;
  /// The same of each of a record's exhibits; sinks of numbers have no use for them.
  virtual void show(const Exhibit& /*exhibit*/, int64_t /*step*/, double /*time*/) {}
  /// What was written can be read when this returns. IoError.
  virtual void flush() = 0;
  /// The training is over; "finished" or "stopped".
  virtual void finish(const std::string& /*state*/) {}
};

}  // namespace millrace::track
