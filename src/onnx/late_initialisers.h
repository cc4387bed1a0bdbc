// A model's weights, for one reading of it after the other.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <millrace/array.h>

#include "ir/late_array.h"
#include "onnx/external_files.h"
#include "onnx/model.h"

namespace millrace::onnx {

/// The large initialisers of a model. Once somebody has asked for the digest of one, it comes late: later
/// graphs of the model read it only where no kernel has packed it yet.
class LateInitialisers {
 public:
  LateInitialisers(std::shared_ptr<const Model> model, std::shared_ptr<ExternalFiles> files);
  /// By their names. Errors as large_initialisers().
  std::map<std::string, Array> arrays();

 private:
  const std::shared_ptr<const Model> model_;
  const std::shared_ptr<ExternalFiles> files_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<LateDigest>> digests_;  // of all that are large
};

}  // namespace millrace::onnx
