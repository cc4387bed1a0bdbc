// Files on servers that serve parts of files (RFC 9110, section 14).
#include <algorithm>

#include "base/format.h"
#include "data/io/http_client.h"
#include "data/io/remote_object.h"

namespace millrace::data {
namespace {

/// The address without "user:password@" and what follows '?', which may be a secret.
std::string shown(const std::string& url) {
  std::string text = url.substr(0, url.find('?'));
  const size_t host = text.find("://") + 3, at = text.find('@', host);
  if (at != std::string::npos && at < text.find('/', host)) text.erase(host, at + 1 - host);
  return text;
}

class HttpObject final : public RemoteObject {
 public:
  HttpObject(std::string url, HttpRequest request)
      : RemoteObject(std::move(url)), request_(std::move(request)) {
    request_.offset = 0;
    request_.size = 1;
    request_.most_bytes = 1 << 16;
    const HttpResponse answer = http_get(request_);
    if (answer.status == 416) return;  // an empty object has no first byte
    require_found(answer);
    if (answer.status != 206)
      fail<RemoteError>(
          "{}: the server does not serve parts of files (status {} to a request for a range); download the "
          "file",
          url_, answer.status);
    if (answer.total == 0) fail<RemoteError>("{}: the server does not say how large the file is", url_);
    size_ = answer.total;
    etag_ = answer.etag.starts_with("W/") ? "" : answer.etag;  // weak ones stand for no bytes
    version_ = fmt::format("{} {} {}", answer.etag, answer.last_modified, size_);
  }

  void fetch(uint64_t offset, std::span<uint8_t> out) const override {
    HttpRequest request = request_;
    request.offset = offset;
    request.size = out.size();
    request.into = out;
    if (!etag_.empty()) request.headers.push_back("If-Match: " + etag_);
    const HttpResponse answer = http_get(request);
    const bool changed = answer.status == 412 || (answer.status == 206 && answer.total != size_) ||
                         (!etag_.empty() && !answer.etag.empty() && answer.etag != etag_);
    if (changed) fail<RemoteError>("{}: has changed on the server while it was read; begin again", url_);
    require_found(answer);
    if (answer.status != 206 || answer.bytes != out.size())
      fail<RemoteError>("{}: the server gives {} bytes where {} were asked for", url_, answer.bytes,
                        out.size());
  }

 private:
  void require_found(const HttpResponse& answer) const {
    if (answer.status == 404 || answer.status == 410)
      fail<RemoteMissing>("{}: there is no such file; check the address", url_);
    if (answer.status == 401 || answer.status == 403)
      fail<RemoteMissing>("{}: access is denied (status {}); check the keys or rights", url_, answer.status);
    if (answer.status >= 300) fail<RemoteError>("{}: the server answers with status {}", url_, answer.status);
  }

  HttpRequest request_;
  std::string etag_;
};

}  // namespace

std::unique_ptr<RemoteObject> http_object(std::string url, HttpRequest request) {
  return std::make_unique<HttpObject>(std::move(url), std::move(request));
}

std::unique_ptr<RemoteObject> open_http(const std::string& url) {
  HttpRequest request;
  request.url = url;
  return http_object(shown(url), std::move(request));
}

}  // namespace millrace::data
