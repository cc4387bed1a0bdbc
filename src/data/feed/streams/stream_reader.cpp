#include "data/feed/streams/stream_reader.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/crc32c.h"
#include "base/format.h"

namespace millrace::data {
namespace {

uint32_t check_of(const StreamRecord& record) { return crc32c(record.bytes.data(), record.bytes.size()); }

}  // namespace

bool StreamReader::pull(StreamRecord& record) {
  if (!head_.empty()) {
    record = std::move(head_.front());
    head_.pop_front();
  } else if (head_over_ || !stream_->next(record)) {
    return false;
  } else {
    memory_.keep(record);
  }
  pulled_ = record.at.number + 1;
  return true;
}

const std::deque<StreamRecord>& StreamReader::head(size_t count) {
  memory_.expect(static_cast<int64_t>(count));
  StreamRecord record;
  while (head_.size() < count && !head_over_) {
    if (!stream_->next(record)) {
      head_over_ = true;
      break;
    }
    memory_.keep(record);
    head_.push_back(std::move(record));
  }
  return head_;
}

void StreamReader::limit_memory(int64_t bytes, int64_t decoded) {
  if (bytes > 0 && !memory_.limited()) stream_->set_room([this](uint64_t size) { memory_.reading(size); });
  memory_.limit(bytes, decoded);
}

void StreamReader::begin_again(const StreamPlace& place) {
  for (const StreamRecord& record : head_) memory_.drop(StreamMemory::of(record));
  head_.clear();
  head_over_ = given_up_ = false;
  stream_->seek(place);
  pulled_ = 0;  // at most place.number
}

void StreamReader::seek(uint64_t seed, const std::vector<int64_t>& state) {
  StreamOrder order = order_;
  order.restore(stream_->path(), state);
  order_ = std::move(order);
  seed_ = seed;
  contents_.clear();
  int64_t bytes = 0;
  for (const StreamRecord& record : head_) bytes += StreamMemory::of(record);
  memory_.begin(std::ssize(head_), bytes);
  found_ = false;
}

/// Fills the buffer as the order has it, and brings the stream to what comes in next.
void StreamReader::find_place() {
  const auto& wanted = order_.buffered();
  if (wanted.empty() && order_.over()) {  // the next draw begins another pass
    found_ = true;
    return;
  }
  StreamPlace first{order_.incoming(), 0, 0};
  std::unordered_map<int64_t, size_t> places;
  for (size_t i = 0; i < wanted.size(); ++i) {
    places.emplace(wanted[i].at.number, i);
    if (wanted[i].at.number < first.number) first = wanted[i].at;
  }
  if (given_up_ || pulled_ > first.number) begin_again(wanted.empty() ? StreamPlace() : first);
  contents_.assign(wanted.size(), {});
  size_t missing = wanted.size();
  StreamRecord record;
  while (missing > 0 || (!order_.over() && pulled_ < order_.incoming())) {
    if (!pull(record))
      fail<InputError>(
          "{}: ends after {} samples, but sample {} was read from it before: it gives other data than when "
          "the run "
          "was saved",
          stream_->path(), pulled_, order_.incoming() - 1);
    const auto place = places.find(record.at.number);
    if (place == places.end()) {
      memory_.drop(StreamMemory::of(record));
      continue;
    }
    if (check_of(record) != wanted[place->second].check)
      fail<InputError>(
          "{}: its sample {} is another than when the run was saved; to go on, it must give the same data",
          stream_->path(), record.at.number);
    contents_[place->second] = std::move(record);
    --missing;
  }
  found_ = true;
}

BufferedSample StreamReader::enter(StreamRecord record) {
  const BufferedSample entry{record.at, check_of(record)};
  contents_.push_back(std::move(record));
  return entry;
}

StreamReader::Drawn StreamReader::next() {
  memory_.expect(order_.capacity());  // head() is not called after this
  if (!found_) find_place();
  Drawn drawn;
  StreamDraw& draw = drawn.draw;
  StreamRecord record;
  bool more = !order_.over() || contents_.empty();
  if (contents_.empty()) {
    draw.new_pass = order_.over();
    if (draw.new_pass) begin_again({});
    while (more && contents_.size() < static_cast<size_t>(order_.capacity())) {
      more = pull(record);
      if (more) draw.filled.push_back(enter(std::move(record)));
    }
    if (contents_.empty()) fail<InputError>("{}: has no samples", stream_->path());
  }
  draw.place = order_.choose(seed_, contents_.size());
  if (more && pull(record)) {
    draw.next = BufferedSample{record.at, check_of(record)};
    drawn.record = std::exchange(contents_[draw.place], std::move(record));
  } else {
    std::swap(contents_[draw.place], contents_.back());
    drawn.record = std::move(contents_.back());
    contents_.pop_back();
  }
  drawn.number = order_.drawn();
  order_.apply(draw);
  drawn.pass = order_.pass();
  return drawn;
}

}  // namespace millrace::data
