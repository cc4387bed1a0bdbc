#include "data/io/http_client.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <curl/curl.h>
#include <memory>
#include <new>
#include <string_view>
#include <thread>

#include "base/format.h"
#include "base/number_from.h"
#include "base/words.h"
#include "data/io/remote_object.h"

namespace millrace::data {
namespace {

constexpr long connect_seconds = 10;  // NOLINT: libcurl's type

thread_local const std::atomic<bool>* stop_flag = nullptr;
bool stopped() { return stop_flag && *stop_flag; }

struct CurlDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

CURL* thread_handle() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  thread_local std::unique_ptr<CURL, CurlDeleter> handle(curl_easy_init());
  if (started != CURLE_OK || !handle) fail<IoError>("libcurl cannot be started: is there memory left?");
  curl_easy_reset(handle.get());  // keeps the connections
  return handle.get();
}

struct Transfer {
  HttpResponse response;
  uint64_t most_bytes = 0;
  std::span<uint8_t> into;
  bool too_large = false;
};

size_t on_body(char* data, size_t one, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  HttpResponse& response = transfer.response;
  const size_t size = one * count;
  const bool wanted = response.status / 100 == 2;
  const uint64_t most = wanted && !transfer.into.empty() ? transfer.into.size() : transfer.most_bytes;
  if (response.bytes + size > most) {
    // A page about an error may be longer than the few bytes that were asked for: that is no fault of its
    // own.
    transfer.too_large = wanted;
    return wanted ? 0 : size;
  }
  if (wanted && !transfer.into.empty())
    std::memcpy(transfer.into.data() + response.bytes, data, size);
  else
    response.body.insert(response.body.end(), data, data + size);
  response.bytes += size;
  return size;
}

bool take_header(std::string_view line, std::string_view name, std::string& value) {
  if (line.size() <= name.size() || line[name.size()] != ':') return false;
  for (size_t i = 0; i < name.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(line[i])) != name[i]) return false;
  value = trimmed(line.substr(name.size() + 1));
  return true;
}

size_t on_header(char* data, size_t one, size_t count, void* user) {
  auto& response = static_cast<Transfer*>(user)->response;
  const std::string_view line(data, one * count);
  std::string value;
  if (line.starts_with("HTTP/")) {
    response = {};  // of a redirection before: only the last answer counts
    response.status = std::atol(std::string(line.substr(std::min(line.find(' '), line.size()))).c_str());
  }
  take_header(line, "etag", response.etag);
  take_header(line, "last-modified", response.last_modified);
  const auto number = [](std::string_view text) { return number_from<uint64_t>(text).value_or(0); };
  if (take_header(line, "content-range", value)) response.total = number(value.substr(value.find('/') + 1));
  if (response.total == 0 && take_header(line, "content-length", value)) response.total = number(value);
  return one * count;
}

int on_progress(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) { return stopped() ? 1 : 0; }

int attempts_allowed() {
  const char* text = std::getenv("MILLRACE_HTTP_ATTEMPTS");
  const int wanted = text ? std::atoi(text) : 0;
  return wanted > 0 ? wanted : 5;
}

/// The file of certificates that curl's own program and OpenSSL would take; "": the system's.
std::string own_authorities() {
  for (const char* variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* file = std::getenv(variable); file && *file) return file;
  return {};
}

/// One attempt; "" or the fault that may pass.
std::string attempt(const HttpRequest& request, Transfer& transfer) {
  CURL* curl = thread_handle();
  transfer = {};
  transfer.most_bytes = request.most_bytes;
  transfer.into = request.into;
  std::unique_ptr<curl_slist, CurlDeleter> headers;
  const auto header = [&](const std::string& line) {
    curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
    if (!longer) throw std::bad_alloc();
    (void)headers.release();
    headers.reset(longer);
  };
  for (const std::string& line : request.headers) header(line);
  const std::string range = fmt::format("{}-{}", request.offset, request.offset + request.size - 1),
                    access = request.key + ":" + request.secret,
                    provider = fmt::format("aws:amz:{}:s3", request.region);
  if (request.size > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  if (!request.key.empty()) {
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, provider.c_str());
    curl_easy_setopt(curl, CURLOPT_USERPWD, access.c_str());
    header("x-amz-content-sha256: UNSIGNED-PAYLOAD");
    if (!request.token.empty()) header("x-amz-security-token: " + request.token);
  }
  if (!request.post.empty()) {
    header("Content-Type: application/json");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.post.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.post.size()));
  }
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, connect_seconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, request.stall_seconds);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "millrace");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  if (const std::string authorities = own_authorities(); !authorities.empty())
    curl_easy_setopt(curl, CURLOPT_CAINFO, authorities.c_str());
  const CURLcode code = curl_easy_perform(curl);
  HttpResponse& response = transfer.response;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &response.status);
  if (transfer.too_large)
    fail<RemoteError>(
        "{}: the server sends more than the {} bytes that were asked for: it does not serve parts of files",
        request.url, request.into.empty() ? request.most_bytes : request.into.size());
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
    fail<InputError>("{}: is no address of a server ({})", request.url, curl_easy_strerror(code));
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
    fail<RemoteError>(
        "{}: its certificate is not one of an authority that is known here ({}); SSL_CERT_FILE names a file "
        "of further ones",
        request.url, curl_easy_strerror(code));
  if (code != CURLE_OK) return curl_easy_strerror(code);
  if (response.status == 408 || response.status == 429 || response.status >= 500)
    return fmt::format("status {}", response.status);
  if (response.status == 206 && request.size > 0) {
    const uint64_t most = response.total > request.offset ? response.total - request.offset : 0;
    const uint64_t wanted = response.total > 0 ? std::min(request.size, most) : request.size;
    if (response.bytes != wanted) return fmt::format("{} bytes instead of {}", response.bytes, wanted);
  }
  return {};
}

}  // namespace

HttpResponse http_get(const HttpRequest& request) {
  Transfer transfer;
  std::string fault;
  const int attempts = request.attempts > 0 ? request.attempts : attempts_allowed();
  for (int i = 0; i < attempts; ++i) {
    for (int waited = 0; i > 0 && !stopped() && waited < 100 << std::min(i, 7); waited += 50)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (stopped()) fail<RemoteError>("{}: given up, the program ends", request.url);
    fault = attempt(request, transfer);
    if (fault.empty()) return std::move(transfer.response);
  }
  fail<RemoteError>("{}: not answered after {} attempts (the last: {}); is the server up and reachable?",
                    request.url, attempts, fault);
}

void stop_http_when(const std::atomic<bool>* flag) { stop_flag = flag; }

}  // namespace millrace::data
