#include "data/feed/streams/stream_rows.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "data/feed/sample_feed.h"

namespace millrace::data {
namespace {

size_t stream_row_bytes(const Field& field) {
  const Shape& shape = field.type.shape;
  bool fits = !shape.empty() && shape[0] == Dim::named("batch");
  for (size_t i = 1; i < shape.size(); ++i) fits &= shape[i].is_static();
  if (!fits)
    fail<InternalError>("the array '{}' is {}: of a stream it must be [batch, …] with rows of one size",
                        field.name, field.type.str());
  return row_bytes(field.type, 0);
}

}  // namespace

StreamRows::StreamRows(std::vector<NamedPart> parts, bool weighted)
    : parts_(std::move(parts)), fields_(feed_fields(parts_, weighted)), weighted_(weighted) {
  constexpr size_t alignment = 16;
  for (size_t p = 0; p < parts_.size(); ++p)
    for (const Field& field : parts_[p].part->fields()) {
      const size_t size = stream_row_bytes(field);
      places_.push_back({p, bytes_, size});
      bytes_ += (size + alignment - 1) / alignment * alignment;
    }
}

size_t StreamRows::batch_bytes() const {
  size_t bytes = 0;
  for (const Field& field : fields_) bytes += stream_row_bytes(field);
  return bytes;
}

int64_t StreamRows::memory() const {
  int64_t bytes = 0;
  for (const NamedPart& each : parts_) bytes += each.part->memory();
  return bytes;
}

StreamRows::Worker StreamRows::worker() const {
  Worker worker;
  for (const NamedPart& each : parts_) {
    worker.scratch.push_back(each.part->scratch());
    worker.stored.emplace_back(each.part->stored_bytes());
  }
  return worker;
}

std::string StreamRows::make(const Dataset& sample, const SampleKey& key, Worker& worker,
                             std::byte* row) const {
  size_t place = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = *parts_[p].part;
    Part::Scratch* const scratch = worker.scratch[p].get();
    std::byte* const stored = worker.stored[p].data();
    if (!worker.stored[p].empty())
      if (std::string why = part.read(sample, 0, part.keeps() ? nullptr : &key, scratch, stored);
          !why.empty())
        return why;
    worker.places.clear();
    for (; place < places_.size() && places_[place].part == p; ++place)
      worker.places.push_back(row + places_[place].offset);
    part.put(stored, {key, 0, {}}, scratch, worker.places);
  }
  return {};
}

StreamRows::Arrays StreamRows::arrays(int64_t batch) const {
  Arrays arrays;
  for (const Field& field : fields_)
    arrays.emplace_back(stream_row_bytes(field) * static_cast<size_t>(batch));
  return arrays;
}

void StreamRows::put(const std::byte* row, Arrays& arrays, int64_t place, float weight) const {
  const auto at = static_cast<size_t>(place);
  for (size_t f = 0; f < places_.size(); ++f)
    std::memcpy(arrays[f].data() + at * places_[f].size, row + places_[f].offset, places_[f].size);
  if (weighted_) std::memcpy(arrays.back().data() + at * sizeof weight, &weight, sizeof weight);
}

void StreamRows::take(const Arrays& arrays, int64_t place, std::byte* row) const {
  const auto at = static_cast<size_t>(place);
  for (size_t f = 0; f < places_.size(); ++f)
    std::memcpy(row + places_[f].offset, arrays[f].data() + at * places_[f].size, places_[f].size);
}

void StreamRows::finish(Arrays& arrays, int64_t batch, int64_t count, const SampleKey& key,
                        Worker& worker) const {
  for (int64_t row = count; row < batch; ++row) {
    size_t place = 0;
    for (size_t p = 0; p < parts_.size(); ++p) {
      worker.places.clear();
      for (; place < places_.size() && places_[place].part == p; ++place)
        worker.places.push_back(arrays[place].data() + static_cast<size_t>(row) * places_[place].size);
      parts_[p].part->pad({{key.seed, key.epoch, -1, -1}, 0, {}}, worker.places);
    }
  }
  if (weighted_) {
    auto* const weights = reinterpret_cast<float*>(arrays.back().data());
    std::fill(weights + count, weights + batch, 0.0F);
  }
  worker.places.clear();
  for (const AlignedBytes& array : arrays) worker.places.push_back(array.data());
  finish_batch(parts_, worker.places, batch, count, 0, key, worker.scratch);
}

}  // namespace millrace::data
