// Logs that may keep one waiting.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "track/log_kind.h"
#include "track/recorder.h"

namespace millrace::track {

/// Writes to another log by a thread of its own, thinned: nobody waits for that log but finish().
class Aside final : public Sink {
 public:
  explicit Aside(std::unique_ptr<Sink> log) : recorder_(only(std::move(log))) {}
  void write(const Record& record) override {
    if (thinned_.wanted(record)) recorder_.add(record);
  }
  void flush() override {}
  void finish(const std::string& state) override { recorder_.finish(state); }

 private:
  static std::vector<std::unique_ptr<Sink>> only(std::unique_ptr<Sink> log) {
    std::vector<std::unique_ptr<Sink>> logs;
    logs.push_back(std::move(log));
    return logs;
  }

  Thinned thinned_;
  Recorder recorder_;
};

}  // namespace millrace::track
