#include "data/formats/streams/stream.h"

#include <filesystem>
#include <mutex>

#include <millrace/file.h>

#include "base/format.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/io/expand_paths.h"

namespace millrace::data {

#include "generated/stream_formats.inc"

namespace {

const StreamFormat* format_of_head(const std::string& path, std::span<const uint8_t> head) {
  for (const StreamFormat* format : stream_formats().all())
    if (format->matches(path, head)) return format;
  return nullptr;
}

class PartedStream final : public Stream {
 public:
  PartedStream(const std::string& path, std::vector<std::string> parts)
      : Stream(path), parts_(std::move(parts)) {
    open_part(0);
    const auto head = input_->peek(kStreamHead);
    if (head.empty()) fail<InputError>("{}: gives nothing; check the command or the file", parts_[0]);
    const StreamFormat* found = format_of_head(parts_[0], head);
    if (!found) {
      std::vector<std::string> known;
      for (const StreamFormat* format : stream_formats().all()) known.push_back(format->doc);
      fail<InputError>("{}: is none of the formats that are read as a stream ({}), or damaged", parts_[0],
                       fmt::join(known, ", "));
    }
    format_ = found->name;
    cutter_ = found->make();
    cutter_->begin(*input_);
  }

  bool next(StreamRecord& record) override {
    while (true) {
      if (part_ == parts_.size()) return false;
      record.fault.clear();
      std::vector<uint8_t> bytes;
      uint64_t offset = input_->offset();
      if (cutter_->next(*input_, bytes, offset, record.fault)) {
        record.at = {number_, static_cast<int64_t>(part_), static_cast<int64_t>(offset)};
        if (room_) bytes.shrink_to_fit();
        record.bytes = Bytes(std::move(bytes));
        ++number_;
        return true;
      }
      if (part_ + 1 == parts_.size()) {
        part_ = parts_.size();
        return false;
      }
      begin_part(part_ + 1);
    }
  }

  void seek(const StreamPlace& place) override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = false;
    }
    const auto part = static_cast<size_t>(place.part);
    if (place.part < 0 || place.offset < 0 || part >= parts_.size())
      fail<InputError>("{}: has no part {}; was the data changed?", path(), place.part);
    if (parts_[0] == "-") {
      open_part(0);  // as stop() has ended the former one
      if (!input_->seek(0))
        fail<InputError>("standard input cannot be read a second time; use a file, or pipe:COMMAND");
      number_ = 0;
      cutter_->begin(*input_);
      return;
    }
    begin_part(part);
    number_ = 0;
    if (place.number > 0 && input_->seek(static_cast<uint64_t>(place.offset)))
      number_ = place.number;
    else if (part != 0)
      begin_part(0);
  }

  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (input_) input_->stop();
  }

  void set_room(SampleRoom room) override {
    room_ = std::move(room);
    input_->set_room(room_);
  }

  std::unique_ptr<Dataset> samples(std::span<const StreamRecord> records) const override {
    std::vector<uint8_t> whole;
    const auto add = [&](const std::string& text) { whole.insert(whole.end(), text.begin(), text.end()); };
    add(cutter_->before());
    for (const StreamRecord& record : records)
      whole.insert(whole.end(), record.bytes.view().begin(), record.bytes.view().end());
    add(cutter_->behind());
    const std::string name = records.size() == 1 ? fmt::format("{} (sample {})", path(), records[0].at.number)
                                                 : path() + " (samples)";
    const Format& format = formats().at(format_);
    Files files = {memory_file(name, Bytes(std::move(whole)))};
    OpenOptions options;
    if (!cutter_->before().empty()) options.header = true;
    auto dataset = format.open(name, files, options);
    dataset->set_origin(format_, {});
    return dataset;
  }

  const std::string& format() const override { return format_; }

 private:
  void open_part(size_t part) {
    auto input = std::make_unique<StreamInput>(parts_[part], open_bytes(parts_[part]), room_);
    const std::lock_guard lock(mutex_);
    if (stopped_) throw StreamStopped();
    input_.swap(input);
    part_ = part;
  }
  void begin_part(size_t part) {
    open_part(part);
    const auto head = input_->peek(kStreamHead);
    const StreamFormat* found = head.empty() ? nullptr : format_of_head(parts_[part], head);
    if (!found || found->name != format_)
      fail<InputError>("{}: is not of the format of {} ({}), or empty", parts_[part], parts_[0], format_);
    cutter_->begin(*input_);
  }

  std::vector<std::string> parts_;
  SampleRoom room_;
  std::string format_;
  std::unique_ptr<StreamCutter> cutter_;
  std::mutex mutex_;  // guards changes of input_, and stopped_
  std::unique_ptr<StreamInput> input_;
  bool stopped_ = false;
  size_t part_ = 0;
  int64_t number_ = 0;
};

}  // namespace

Registry<StreamFormat>& stream_formats() {
  static Registry<StreamFormat> all("format of streams", {MILLRACE_FOUND_STREAM_FORMATS});
  return all;
}

const StreamFormat& register_stream_format(const StreamFormat& format) {
  return stream_formats().add(format, {{"matches", format.matches}, {"make", format.make}});
}

std::unique_ptr<Stream> open_stream(const std::string& path) {
  const std::vector<std::string> tars = tars_in(path);
  std::error_code ignored;
  if (tars.empty() && std::filesystem::is_directory(path, ignored))
    fail<InputError>(
        "{0}: is a folder, which is no stream: give its files, or a tar of them (pipe:tar -C {0} -c .); all "
        "of "
        "a mixture are streams, or none",
        path);
  return std::make_unique<PartedStream>(path, tars.empty() ? expand_paths(path) : tars);
}

}  // namespace millrace::data
