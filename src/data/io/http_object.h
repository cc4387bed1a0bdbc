// A file on a server that serves parts of files (RFC 9110, section 14).
#pragma once

#include <string>
#include <vector>

#include "data/io/http_client.h"
#include "data/io/remote_object.h"

namespace millrace::data {

class HttpObject final : public RemoteObject {
 public:
  /// `name`: for messages, without secrets. `request`: how each part is asked for; its range is filled in.
  HttpObject(std::string name, HttpRequest request);
  uint64_t size() const override { return size_; }
  const std::string& version() const override { return version_; }
  const std::string& url() const override { return name_; }
  void fetch(uint64_t offset, std::span<uint8_t> out) const override;

 private:
  void require_found(const HttpResponse& answer) const;

  std::string name_;
  HttpRequest request_;
  uint64_t size_ = 0;
  std::string etag_, version_;
};

}  // namespace millrace::data
