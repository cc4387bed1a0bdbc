// What a file of predictions says of a sample: its columns, and the graph that computes them behind the
// model.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/array.h>
#include <millrace/dataset.h>
#include <millrace/optim.h>

#include "task/output.h"

namespace millrace::task {

struct TellOptions {
  int64_t top = 3;       // classes at most, the most probable first
  double threshold = 0;  // less probable ones are left out; of labels 0: what holds
  bool all = false;      // and the probability of each class in a column of its own
  bool rows = false;     // instead a row of numbers: all probabilities, or values
};

/// One output's part of the file.
class Told {
 public:
  virtual ~Told() = default;
  /// From calibrated logits what is read back, each f32 or i64 [batch, …].
  virtual std::vector<Tensor> graph(const Tensor& logits) const = 0;
  virtual std::vector<data::Column> columns() const = 0;
  /// Of one row of a batch of graph()'s results. `rows`: of a sample that is made of several, how many.
  virtual void values(std::span<const Array> results, int64_t row, int64_t rows,
                      std::vector<data::Value>& into) const = 0;
  /// Numbers of a row (TellOptions::rows); 0 where there are none.
  virtual int64_t width() const { return 0; }
};

/// InputError for what the output cannot be told as. The output must stay.
std::unique_ptr<Told> told_of(const Output& output, const TellOptions& options);

}  // namespace millrace::task
