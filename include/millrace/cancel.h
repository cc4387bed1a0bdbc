// Ending what runs before it is done.
#pragma once

#include <atomic>
#include <memory>

#include <millrace/error.h>

namespace millrace {

/// Thrown by what was cancelled.
class CancelledError : public Error {
 public:
  using Error::Error;
};

/// Says to whatever it was given to that nobody wants it any more. Copies are the same token; any thread may
/// cancel.
class CancelToken {
 public:
  CancelToken() : cancelled_(std::make_shared<std::atomic<bool>>(false)) {}
  /// One that nobody can cancel.
  static const CancelToken& never() {
    static const CancelToken token{nullptr};
    return token;
  }
  /// For good. Means nothing to never().
  void cancel() const {
    if (cancelled_) cancelled_->store(true, std::memory_order_relaxed);
  }
  bool cancelled() const { return cancelled_ && cancelled_->load(std::memory_order_relaxed); }

 private:
  explicit CancelToken(std::nullptr_t) {}
  std::shared_ptr<std::atomic<bool>> cancelled_;
};

}  // namespace millrace
