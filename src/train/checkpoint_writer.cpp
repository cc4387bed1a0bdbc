#include "train/checkpoint_writer.h"

#include <utility>

#include "base/parallel_copy.h"

namespace millrace::train {

// The memory of arrays is asked for once: fresh pages take longer than the copy does.
void CheckpointWriter::copy_tensors(track::NamedArrays& tensors) {
  const bool same =
      memory_.size() == tensors.size() &&
      std::equal(memory_.begin(), memory_.end(), tensors.begin(), [](const auto& a, const auto& b) {
        return a.first == b.first && a.second.type() == b.second.type();
      });
  if (!same) {
    memory_.clear();
    for (const auto& [name, array] : tensors) memory_.emplace_back(name, Array(array.type()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Array& from = tensors[i].second;
    constexpr int64_t worth = 1 << 18;  // bytes, for waking threads
    if (from.bytes() >= worth)
      copy_in_parts(ThreadPool::global(), memory_[i].second.data(), from.data(),
                    static_cast<size_t>(from.bytes()));
    else if (from.bytes() > 0)
      std::memcpy(memory_[i].second.data(), from.data(), static_cast<size_t>(from.bytes()));
    tensors[i].second = memory_[i].second;
  }
}

void CheckpointWriter::start(Checkpoint checkpoint, Write write) {
  wait();
  copy_tensors(checkpoint.tensors);
  behind_.add({std::move(checkpoint), std::move(write)});
}

int64_t bytes_of_tensors(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const auto& [name, array] : checkpoint.tensors) bytes += array.bytes();
  return bytes;
}

}  // namespace millrace::train
