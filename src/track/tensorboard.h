// TensorBoard event files: TFRecord frames around tensorflow.Event messages
// (tensorflow/core/util/event.proto).
#pragma once

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/wire.h"
#include "track/record.h"

namespace millrace::track {

/// The frame of one record: length, its masked CRC-32C, data, its masked CRC-32C.
std::string tfrecord(std::string_view data);
/// The record every event file begins with.
std::string file_version_record(double wall_time);
/// One value of the curve `tag`.
std::string scalar_record(double wall_time, int64_t step, std::string_view tag, float value);

/// Writes curves into a folder that TensorBoard can watch.
class EventWriter final : public Sink {
 public:
  /// Begins a new event file. With `resume_step` ≥ 0, continues the newest one in the folder instead, what
  /// was written after that step cut away. IoError when the folder cannot be written.
  explicit EventWriter(const std::filesystem::path& folder, int64_t resume_step = -1);
  /// Makes a run that begins a line of the table of hyperparameters: keys with their values as TOML, and the
  /// curves whose last points are its results.
  void describe(std::span<const std::pair<std::string, std::string>> params,
                std::span<const std::string> curves);
  ~EventWriter() override;
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void write(const Record& record) override;
  void show(const Exhibit& exhibit, int64_t step, double time) override;
  void flush() override;
  void finish(const std::string& state) override;

 private:
  void put(std::string_view bytes);
  void put_summary(const WireWriter& summary, int64_t step, double time);
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
  std::shared_ptr<const Names> names_;  // that `summaries_` are of
  std::vector<std::string> summaries_;  // of each curve, without its value; "" of what is none
};

}  // namespace millrace::track
