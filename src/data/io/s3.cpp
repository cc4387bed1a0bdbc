// Amazon's S3 and what speaks as it does: path-style addresses at a server of one's own, host-style ones at
// Amazon's.
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "data/io/http_client.h"
#include "data/io/listing.h"
#include "data/io/remote_object.h"

namespace millrace::data {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct Place {
  std::string bucket, key;
};

/// Of "s3://BUCKET/KEY"; the key may be empty where a list is wanted.
Place place_of(const std::string& url, bool list) {
  const std::string rest = url.substr(std::string_view("s3://").size());
  const size_t slash = rest.find('/');
  if (slash == 0 || slash == std::string::npos || (slash + 1 == rest.size() && !list))
    fail<InputError>("{}: write it as s3://BUCKET/KEY", url);
  return {rest.substr(0, slash), rest.substr(slash + 1)};
}

/// With rights; of the bucket's address and `rest` behind it.
HttpRequest request_for(const std::string& bucket, const std::string& rest) {
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
  request.url = server.empty()
                    ? fmt::format("https://{}.s3.{}.amazonaws.com/{}", bucket, request.region, rest)
                    : fmt::format("{}/{}/{}", server, bucket, rest);
  return request;
}

/// The text of the first <name>…</name> from `at` on, which moves behind it; false when there is none.
bool next_element(std::string_view xml, const std::string& name, size_t& at, std::string_view& text) {
  const std::string open = "<" + name + ">", close = "</" + name + ">";
  const size_t begin = xml.find(open, at);
  const size_t end = begin == std::string_view::npos ? begin : xml.find(close, begin);
  if (end == std::string_view::npos) return false;
  text = xml.substr(begin + open.size(), end - begin - open.size());
  at = end + close.size();
  return true;
}

}  // namespace

bool parse_s3_page(std::string_view xml, S3Page& page) {
  std::string_view text;
  size_t at = 0;
  if (!next_element(xml, "IsTruncated", at, text)) return false;
  page = {};
  page.more = text == "true";
  for (at = 0; next_element(xml, "Key", at, text);) page.keys.push_back(percent_decoded(text));
  at = 0;
  if (page.more && next_element(xml, "NextContinuationToken", at, text)) page.token = xml_text(text);
  return true;
}

std::unique_ptr<RemoteObject> open_s3(const std::string& url) {
  const Place place = place_of(url, false);
  return http_object(url, request_for(place.bucket, percent_encoded(place.key, "/")));
}

std::vector<std::string> list_s3(const std::string& pattern) {
  const Place place = place_of(pattern, true);
  const std::string prefix = fixed_part(place.key);
  std::vector<std::string> found;
  std::string token;
  do {
    // In the order of their names, as the signature wants them; keys come percent-encoded, or they could
    // break the XML.
    std::string query =
        token.empty() ? "?" : fmt::format("?continuation-token={}&", percent_encoded(token, ""));
    query += fmt::format("encoding-type=url&list-type=2&prefix={}", percent_encoded(prefix, ""));
    HttpRequest request = request_for(place.bucket, query);
    request.most_bytes = most_list_bytes;
    const HttpResponse answer = http_get(request);
    if (answer.status == 404) fail<RemoteError>("{}: there is no such bucket; check the address", pattern);
    if (answer.status == 401 || answer.status == 403)
      fail<RemoteError>("{}: listing is denied (status {}); check the keys, or the right s3:ListBucket",
                        pattern, answer.status);
    const std::string_view xml(reinterpret_cast<const char*>(answer.body.data()), answer.body.size());
    S3Page page;
    if (answer.status != 200 || !parse_s3_page(xml, page))
      fail<RemoteError>("{}: the server does not list objects (status {}); name the files one by one",
                        pattern, answer.status);
    for (const std::string& key : page.keys)
      if (chosen_by(place.key, key)) add_found(pattern, "s3://" + place.bucket + "/" + key, found);
    const std::string last = std::exchange(token, page.token);
    if (page.more && (token.empty() || token == last))
      fail<RemoteError>("{}: the server says that there are more objects, but not how to go on", pattern);
  } while (!token.empty());
  return found;
}

}  // namespace millrace::data
