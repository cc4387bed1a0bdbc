// A model's weights, for one reading of it after the other.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
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
  /// Keeps what reading the model fetched of these, as each further reading would: tables that are looked up
  /// for sizes. No more than a few MB.
  void keep_fetched(const std::map<std::string, Array>& arrays);

 private:
  const std::shared_ptr<const Model> model_;
  const std::shared_ptr<ExternalFiles> files_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<LateDigest>> digests_;  // of all that are large
  std::set<std::string> late_;                                  // those that came late
  std::map<std::string, Array> kept_;
  int64_t kept_bytes_ = 0;
};

}  // namespace millrace::onnx
