// TensorBoard event files: TFRecord frames around tensorflow.Event messages
// (tensorflow/core/util/event.proto).
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace millrace::track {

/// The frame of one record: length, its masked CRC-32C, data, its masked CRC-32C.
std::string tfrecord(std::string_view data);
/// The record every event file begins with.
std::string file_version_record(double wall_time);
/// One value of the curve `tag`.
std::string scalar_record(double wall_time, int64_t step, std::string_view tag, float value);

/// Writes scalars into a folder that TensorBoard can watch. Every write is flushed, so that a killed run
/// keeps its curves.
class EventWriter {
 public:
  /// Begins a new event file. With `resume_step` ≥ 0, continues the newest one in the folder instead, what
  /// was written after that step cut away. IoError when the folder cannot be written.
  explicit EventWriter(const std::filesystem::path& folder, int64_t resume_step = -1);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void scalar(std::string_view tag, int64_t step, double value);

 private:
  void write(const std::string& record);
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

}  // namespace millrace::track
