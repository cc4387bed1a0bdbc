// Where predictions go: a table of any format that can be written, or an array.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::task {

class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;
  /// The next sample's values; none: it is a bad one.
  virtual void add(const std::string& name, int64_t sample, std::span<const data::Value> values) = 0;
  virtual void finish() = 0;
};

/// What is predicted may be called as something else of a sample is ("input"): it is "input_2" then, or the
/// next number that no other name has.
std::string beside(const std::string& name, const std::set<std::string>& reserved,
                   const std::set<std::string>& others);

/// By the end of the name. `columns` behind `sample` and `input`; `width` > 0: rows of so many numbers, an
/// array [samples, width] in f32 or f16 (`half`). InputError for names that say no format that can be
/// written.
std::unique_ptr<PredictionWriter> prediction_writer(const std::string& path,
                                                    const std::vector<data::Column>& columns, int64_t samples,
                                                    int64_t width, bool half);
/// Whether the name is that of an array.
bool is_array_file(const std::string& path);

}  // namespace millrace::task
