// bench infer: how fast a session answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/array.h>
#include <millrace/session.h>

#include "cli/zoo.h"

namespace millrace::cli {

/// A session, and inputs to ask it with: random numbers, for a batch.
class InferBench {
 public:
  /// `options.model`: a built-in network, a run folder or a file of a model. `sizes`: of named dimensions
  /// other than the batch, "length=128,width=7". `below`: integers that a file's model is given are.
  /// InputError names what is missing or does not fit.
  InferBench(const ZooOptions& options, const std::string& sizes, int64_t below);
  void run() { (void)session_.run(inputs_); }
  int64_t batch() const { return batch_; }

 private:
  int64_t batch_;
  Session session_;
  std::vector<Array> inputs_;
};

}  // namespace millrace::cli
