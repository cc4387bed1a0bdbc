// A file on a server that serves parts of files (RFC 9110, section 14).
#pragma once

#include <string>
#include <vector>

#include "data/io/http_client.h"
#include "data/io/remote_object.h"

namespace millrace::data {

class HttpObject final : public RemoteObject {
 public:
  /// `url`: without secrets. `request`: how each part is asked for; its range is filled in.
  HttpObject(std::string url, HttpRequest request);
  void fetch(uint64_t offset, std::span<uint8_t> out) const override;

 private:
  void require_found(const HttpResponse& answer) const;

  HttpRequest request_;
  std::string etag_;
};

}  // namespace millrace::data
