// The token of the run that this thread is in, for what runs as long as its data say so.
#pragma once

#include <millrace/cancel.h>

namespace millrace {

class RunToken {
 public:
  explicit RunToken(const CancelToken& token) : before_(current()) { current() = &token; }
  ~RunToken() { current() = before_; }
  RunToken(const RunToken&) = delete;
  RunToken& operator=(const RunToken&) = delete;

  /// CancelledError when it was cancelled; nothing where no run is.
  static void go_on() {
    if (current() && current()->cancelled()) throw CancelledError("the run was cancelled");
  }

 private:
  static const CancelToken*& current() {
    thread_local const CancelToken* token = nullptr;
    return token;
  }
  const CancelToken* before_;
};

}  // namespace millrace
