// Samples that lie in memory as rows of arrays, as a feed: tables, and features of sounds.
#pragma once

#include <functional>
#include <memory>

#include <millrace/array.h>

#include "base/philox.h"
#include "data/feed/feed.h"
#include "data/feed/loader_work.h"

namespace millrace::data {

struct ArrayData {
  struct Input {
    std::string name;
    Array rows;  // [N, …]
  };
  std::vector<Input> inputs;
  std::vector<int64_t> labels;  // [N], of `classes`
  /// Of each row, its sample's number in what it was read from; empty: they are the same.
  std::vector<int64_t> indices = {};
  std::vector<std::string> classes;
  std::string path;
  const char* unit = "rows";
  std::vector<std::string> notes;
  /// Samples that could not be read and are not among the rows; `tried` counts all.
  std::vector<BadSample> bad;
  int64_t tried = 0;
};

struct ArrayFeedOptions {
  int64_t batch = 128;
  uint64_t seed = 1;
  std::string order = "shuffle";
  bool whole_batches = true;
  /// Changes a row of the first input, f32, that goes into a batch: a function of what `random` draws.
  std::function<void(std::span<float> row, RandomStream& random)> change = nullptr;
};

/// What a feed of so many rows, of `row_bytes` in all inputs, takes in memory, with a batch.
int64_t array_memory(int64_t rows, int64_t row_bytes, int64_t batch);

/// The fields of the inputs alone.
std::vector<Field> array_inputs(const ArrayData& data);

/// Fields: the inputs, then labels i64 [batch]. InputError when there are fewer rows than a whole batch.
std::unique_ptr<Feed> array_feed(std::shared_ptr<const ArrayData> data, ArrayFeedOptions options);

}  // namespace millrace::data
