// HTTP requests with retries, over libcurl.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace::data {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "If-Match: \"abc\""
  /// Bytes wanted; 0: the whole object.
  uint64_t offset = 0, size = 0;
  /// For AWS's Signature Version 4; unsigned when `key` is empty.
  std::string region, key, secret, token;
  /// Bodies larger than this are refused.
  uint64_t most_bytes = uint64_t{1} << 30;
  /// Sent as JSON, by POST; nothing: a GET.
  std::string post = {};
  /// Tries instead of MILLRACE_HTTP_ATTEMPTS where more than 0.
  int attempts = 0;
  /// A try is given up when nothing came for so long.
  long stall_seconds = 20;  // NOLINT: libcurl's type
  /// Where the content goes instead of into HttpResponse::body; more than fits is refused.
  std::span<uint8_t> into = {};
};

struct HttpResponse {
  long status = 0;  // NOLINT: libcurl's type
  /// What was wanted, or, as far as it is not too large, what the server says instead.
  std::vector<uint8_t> body;
  uint64_t bytes = 0;  // of the body, wherever it went
  std::string etag, last_modified;
  /// Of the whole object, from Content-Range or Content-Length; 0 when the server does not say.
  uint64_t total = 0;
};

/// Sends a GET (or POST) until it is answered by anything but a fault that may pass: no connection, no data
/// for stall_seconds, a body cut short, 408, 429 and 5xx. Waits 0.2, 0.4, 0.8 … seconds in between;
/// RemoteError, naming the URL and the last fault, after five attempts (MILLRACE_HTTP_ATTEMPTS). Connections
/// are kept for the thread's next request.
HttpResponse http_get(const HttpRequest& request);

/// Requests of this thread end with an IoError as soon as the flag is set; it must outlive the thread's
/// requests.
void stop_http_when(const std::atomic<bool>* flag);

}  // namespace millrace::data
