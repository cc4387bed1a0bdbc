// Objects that lie elsewhere and are fetched piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <millrace/error.h>

namespace millrace::data {

/// What lies elsewhere cannot be had.
class RemoteError : public IoError {
 public:
  using IoError::IoError;
};

/// It is not there, or not for us: servers that do not tell names say that access is denied.
class RemoteMissing final : public RemoteError {
 public:
  using RemoteError::RemoteError;
};

/// One object of a server. All members may be called from many threads at once.
class RemoteObject {
 public:
  virtual ~RemoteObject() = default;
  uint64_t size() const { return size_; }
  /// Changes when the content does (ETag, or date and size).
  const std::string& version() const { return version_; }
  /// The whole URL, for messages and as the key of caches; without secrets.
  const std::string& url() const { return url_; }
  /// The bytes from `offset` on, as many as `out` has, after as many attempts as it takes. RemoteError when
  /// the server does not give them in the end, or gives those of another version.
  virtual void fetch(uint64_t offset, std::span<uint8_t> out) const = 0;

 protected:
  explicit RemoteObject(std::string url) : url_(std::move(url)) {}

  std::string url_, version_;
  uint64_t size_ = 0;
};

struct HttpRequest;
/// A file on a server that serves parts of files. `url`: without secrets. `request`: how each part is asked
/// for; its range is filled in.
std::unique_ptr<RemoteObject> http_object(std::string url, HttpRequest request);
/// "http://…" and "https://…". RemoteError when it is not there or the server cannot be reached.
std::unique_ptr<RemoteObject> open_http(const std::string& url);

/// "s3://BUCKET/KEY", at the server and with the rights that AWS's own tools take from the environment:
/// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL (else Amazon's of AWS_REGION or AWS_DEFAULT_REGION, us-east-1),
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; without keys unsigned. Requests are signed by
/// AWS's Signature Version 4.
std::unique_ptr<RemoteObject> open_s3(const std::string& url);

/// "webhdfs://HOST:9870/PATH" (swebhdfs: over TLS), Hadoop's file system by WebHDFS at the name node, which
/// sends on to the data nodes, as HADOOP_USER_NAME; "hdfs://…/PATH" at the server that MILLRACE_WEBHDFS
/// names.
std::unique_ptr<RemoteObject> open_webhdfs(const std::string& url);

}  // namespace millrace::data
