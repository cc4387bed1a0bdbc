// Amazon's S3 and what speaks as it does: path-style addresses at a server of one's own, host-style ones at Amazon's.
#include <cstdlib>

#include "base/format.h"
#include "data/sources/http_object.h"

namespace millrace::data {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Percent-encoded but for unreserved characters and '/' (RFC 3986, as Signature Version 4 wants it).
std::string encoded(std::string_view key) {
  std::string out;
  for (const char c : key) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~' || c == '/';
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

std::unique_ptr<RemoteObject> open_s3(const std::string& url) {
  const std::string rest = url.substr(std::string_view("s3://").size());
  const size_t slash = rest.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == rest.size())
    fail<InputError>("{}: write it as s3://BUCKET/KEY", url);
  const std::string bucket = rest.substr(0, slash), key = encoded(rest.substr(slash + 1));

  HttpRequest request;
  request.key = variable("AWS_ACCESS_KEY_ID");
  request.secret = variable("AWS_SECRET_ACCESS_KEY");
  request.token = variable("AWS_SESSION_TOKEN");
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (request.region.empty()) request.region = variable(name);
  if (request.region.empty()) request.region = "us-east-1";
  std::string server = variable("AWS_ENDPOINT_URL_S3");
  if (server.empty()) server = variable("AWS_ENDPOINT_URL");
  while (server.ends_with('/')) server.pop_back();
  request.url = server.empty() ? fmt::format("https://{}.s3.{}.amazonaws.com/{}", bucket, request.region, key)
                               : fmt::format("{}/{}/{}", server, bucket, key);
  return std::make_unique<HttpObject>(url, std::move(request));
}

}  // namespace millrace::data
