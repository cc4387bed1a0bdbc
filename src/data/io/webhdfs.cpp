// Hadoop's file system over HTTP: hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html.
// Its own protocol would need Java in the process.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include <millrace/file.h>

#include "base/format.h"
#include "data/io/http_client.h"
#include "data/io/listing.h"
#include "data/io/remote_object.h"

namespace millrace::data {
using Json = nlohmann::json;

bool parse_webhdfs_list(const Json& json, std::vector<std::string>& files) {
  const Json* list = &json;
  for (const char* name : {"FileStatuses", "FileStatus"}) {
    if (!list->is_object() || !list->contains(name)) return false;
    list = &(*list)[name];
  }
  if (!list->is_array()) return false;
  for (const Json& status : *list) {
    if (!status.is_object() || !status.contains("pathSuffix") || !status["pathSuffix"].is_string())
      return false;
    if (status.contains("type") && status["type"] == "FILE")
      files.push_back(status["pathSuffix"].get<std::string>());
  }
  return true;
}

bool parse_webhdfs_status(const Json& json, WebHdfsStatus& status) {
  const auto found = json.find("FileStatus");
  if (!json.is_object() || found == json.end() || !found->is_object() || !found->contains("length") ||
      !(*found)["length"].is_number_unsigned() || !found->contains("type"))
    return false;
  status.file = (*found)["type"] == "FILE";
  status.size = (*found)["length"].get<uint64_t>();
  const auto modified = found->find("modificationTime");
  status.modified = modified != found->end() && modified->is_number_integer() ? modified->get<int64_t>() : 0;
  return true;
}

namespace {

struct HdfsPlace {
  std::string server, path;  // "http://host:9870", "/logs/x.tar"
};

HdfsPlace place_of(const std::string& url) {
  const bool own = url.starts_with("hdfs://");
  const size_t host = url.find("://") + 3, slash = url.find('/', host);
  if (slash == std::string::npos || (slash == host && !own))
    fail<InputError>("{}: write it as webhdfs://HOST:9870/PATH", url);
  if (!own)
    return {(url.starts_with("s") ? "https://" : "http://") + url.substr(host, slash - host),
            url.substr(slash)};
  const char* server = std::getenv("MILLRACE_WEBHDFS");
  if (!server || !*server)
    fail<InputError>(
        "{}: HDFS is read over HTTP: write webhdfs://HOST:9870{} (the name node's "
        "dfs.namenode.http-address), or "
        "set MILLRACE_WEBHDFS=http://HOST:9870",
        url, url.substr(slash));
  std::string base = server;
  while (base.ends_with('/')) base.pop_back();
  return {base, url.substr(slash)};
}

HttpRequest request_for(const HdfsPlace& place, const std::string& path, const std::string& operation) {
  HttpRequest request;
  request.url = fmt::format("{}/webhdfs/v1{}?op={}", place.server, percent_encoded(path, "/"), operation);
  const char* user = std::getenv("HADOOP_USER_NAME");
  if (user && *user) request.url += "&user.name=" + percent_encoded(user, "");
  return request;
}

/// What an operation answers; RemoteError, beginning with `url`, when it is refused.
Json ask(const std::string& url, HttpRequest request) {
  request.most_bytes = most_list_bytes;
  const HttpResponse answer = http_get(request);
  if (answer.status == 404) fail<RemoteMissing>("{}: there is no such file; check the address", url);
  if (answer.status == 401 || answer.status == 403)
    fail<RemoteError>("{}: access is denied (status {}); check HADOOP_USER_NAME (Kerberos is not known here)",
                      url, answer.status);
  Json json = Json::parse(answer.body.begin(), answer.body.end(), nullptr, false);
  if (answer.status != 200 || !json.is_object())
    fail<RemoteError>("{}: the server does not speak WebHDFS (status {}); is it the name node's HTTP port?",
                      url, answer.status);
  return json;
}

[[noreturn]] void strange(const std::string& url) {
  fail<RemoteError>("{}: the server's answer is none of WebHDFS's; is it the name node's HTTP port?", url);
}

class WebHdfsObject final : public RemoteObject {
 public:
  explicit WebHdfsObject(const std::string& url) : RemoteObject(url), place_(place_of(url)) {
    const Json json = ask(url, request_for(place_, place_.path, "GETFILESTATUS"));
    WebHdfsStatus status;
    if (!parse_webhdfs_status(json, status)) strange(url);
    if (!status.file) fail<RemoteError>("{}: is a folder; write {}/ for the files in it", url, url);
    size_ = status.size;
    version_ = fmt::format("{} {}", status.modified, size_);
  }
  void fetch(uint64_t offset, std::span<uint8_t> out) const override {
    HttpRequest request =
        request_for(place_, place_.path, fmt::format("OPEN&offset={}&length={}", offset, out.size()));
    request.into = out;
    const HttpResponse answer = http_get(request);
    if (answer.status != 200 || answer.bytes != out.size())
      fail<RemoteError>(
          "{}: the server gives {} bytes where {} were asked for (status {}); has the file changed?", url_,
          answer.bytes, out.size(), answer.status);
  }

 private:
  HdfsPlace place_;
};

}  // namespace

std::unique_ptr<RemoteObject> open_webhdfs(const std::string& url) {
  return std::make_unique<WebHdfsObject>(url);
}

std::vector<std::string> list_webhdfs(const std::string& pattern) {
  const HdfsPlace place = place_of(pattern);
  const size_t slash = place.path.rfind('/');
  const std::string folder = place.path.substr(0, slash + 1);
  if (fixed_part(folder) != folder)
    fail<InputError>("{}: wildcards can stand in the last part of an HDFS path only", pattern);
  const Json json = ask(pattern, request_for(place, folder, "LISTSTATUS"));
  std::vector<std::string> names;
  if (!parse_webhdfs_list(json, names)) strange(pattern);
  const std::string before = pattern.substr(0, pattern.size() - (place.path.size() - folder.size()));
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (chosen_by(place.path, folder + name)) add_found(pattern, before + name, found);
  return found;
}

}  // namespace millrace::data
