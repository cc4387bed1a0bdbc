#include "track/tensorboard.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"
#include "base/utc_time.h"
#include "base/wire.h"
#include "track/tensorboard_summary.h"

namespace millrace::track {
namespace {

void append_u32(std::string& text, uint32_t value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The step of one Event; 0 when it has none.
int64_t event_step(std::string_view event) {
  for (WireReader fields(event); fields.next();)
    if (fields.field() == 2 && fields.type() == 0) return static_cast<int64_t>(fields.number());
  return 0;
}

/// Length of the prefix of whole records up to `step`.
size_t prefix_until(const std::string& text, int64_t step) {
  size_t at = 0;
  while (text.size() - at >= 16) {
    uint64_t length = 0;
    std::memcpy(&length, text.data() + at, sizeof length);
    if (length > text.size() - at - 16) break;
    if (event_step({text.data() + at + 12, length}) > step) break;
    at += 16 + length;
  }
  return at;
}

std::optional<std::filesystem::path> newest_event_file(const std::filesystem::path& folder) {
  std::optional<std::filesystem::path> newest;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("events.out.tfevents.") &&
        (!newest || *newest < entry.path()))
      newest = entry.path();
  return newest;
}

/// A summary of one scalar, to the last byte before its value: an f32 that stands at the end.
std::string scalar_summary(std::string_view tag) {
  std::string text =
      WireWriter().message(5, WireWriter().message(1, WireWriter().bytes(1, tag).number(2, 0.0f))).text();
  text.resize(text.size() - sizeof(float));
  return text;
}

std::string scalar_event(double wall_time, int64_t step, const std::string& summary, float value) {
  std::string event = WireWriter().number(1, wall_time).integer(2, step).text() + summary;
  event.append(reinterpret_cast<const char*>(&value), sizeof value);
  return event;
}

}  // namespace

std::string tfrecord(std::string_view data) {
  const uint64_t length = data.size();
  std::string result(reinterpret_cast<const char*>(&length), sizeof length);
  append_u32(result, masked_crc32c(crc32c(&length, sizeof length)));
  result.append(data);
  append_u32(result, masked_crc32c(crc32c(data.data(), data.size())));
  return result;
}

std::string file_version_record(double wall_time) {
  return tfrecord(WireWriter().number(1, wall_time).bytes(3, "brain.Event:2").text());
}

std::string scalar_record(double wall_time, int64_t step, std::string_view tag, float value) {
  return tfrecord(scalar_event(wall_time, step, scalar_summary(tag), value));
}

EventWriter::EventWriter(const std::filesystem::path& folder, int64_t resume_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail<IoError>("{}: cannot make the folder: {}", folder.string(), error.message());
  if (resume_step >= 0)
    if (const auto newest = newest_event_file(folder)) {
      path_ = *newest;
      std::filesystem::resize_file(path_, prefix_until(read_text(path_), resume_step), error);
      if (error) fail<IoError>("{}: cannot cut the event file: {}", path_.string(), error.message());
    }
  if (path_.empty()) {
    char host[64] = "localhost";
    ::gethostname(host, sizeof host - 1);
    path_ = folder / fmt::format("events.out.tfevents.{:010d}.{}.{}.0", static_cast<int64_t>(unix_time()),
                                 host, ::getpid());
  }
  file_ = std::fopen(path_.c_str(), "ab");
  if (!file_) fail_writing(path_, "write the event file", errno);
  std::fseek(file_, 0, SEEK_END);
  if (std::ftell(file_) == 0) put(file_version_record(unix_time()));
}

EventWriter::~EventWriter() {
  if (file_) std::fclose(file_);
}

void EventWriter::describe(std::span<const std::pair<std::string, std::string>> params,
                           std::span<const std::string> curves) {
  const double now = unix_time();
  put_summary(hparams_experiment(params, curves), 0, now);
  put_summary(hparams_begin(params, now), 0, now);
}

void EventWriter::show(const Exhibit& exhibit, int64_t step, double time) {
  put_summary(exhibit_summary(exhibit), step, time);
}

void EventWriter::finish(const std::string& state) {
  // Of a run that was stopped it is not known how it ends.
  if (state != "finished") return;
  const double now = unix_time();
  put_summary(hparams_end(now), 0, now);
  flush();
}

void EventWriter::put_summary(const WireWriter& summary, int64_t step, double time) {
  put(tfrecord(WireWriter().number(1, time).integer(2, step).raw(summary).text()));
}

void EventWriter::write(const Record& record) {
  if (names_ != record.names) {
    names_ = record.names;
    summaries_.clear();
    for (const std::string& curve : names_->curves)
      summaries_.push_back(curve.empty() ? "" : scalar_summary(curve));
  }
  for (size_t i = 0; i < summaries_.size(); ++i) {
    if (summaries_[i].empty()) continue;
    put(tfrecord(
        scalar_event(record.time, record.step, summaries_[i], static_cast<float>(record.values[i]))));
  }
}

void EventWriter::flush() {
  if (std::fflush(file_) != 0) fail_writing(path_, "write the event file", errno);
}

void EventWriter::put(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
    fail_writing(path_, "write the event file", errno);
}

}  // namespace millrace::track
