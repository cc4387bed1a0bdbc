// Patterns of names that a server lists.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::data {

/// Is it a name at a server that has lists (s3://, webhdfs://) with *, ? or [] in it, or that ends with "/"?
bool is_remote_pattern(std::string_view path);
/// The names that match, sorted: * and ? do not stand for "/". Of a folder ("…/") all that lies directly in
/// it: its tars, where there are any, else all but hidden files and index sidecars. RemoteError when the
/// server cannot be asked.
std::vector<std::string> list_remote(const std::string& pattern);

std::vector<std::string> list_s3(const std::string& pattern);
std::vector<std::string> list_webhdfs(const std::string& pattern);

/// A page of ListObjectsV2 (S3's API reference): the keys on it, and what to ask on with; "" at the end.
struct S3Page {
  std::vector<std::string> keys;
  bool more = false;
  std::string token;
};
/// False where it is none.
bool parse_s3_page(std::string_view xml, S3Page& page);
/// The names of the files in an answer to LISTSTATUS (Hadoop's WebHDFS REST API); false where it is none.
bool parse_webhdfs_list(const nlohmann::json& answer, std::vector<std::string>& files);
/// Of an answer to GETFILESTATUS.
struct WebHdfsStatus {
  bool file = false;
  uint64_t size = 0;
  int64_t modified = 0;
};
bool parse_webhdfs_status(const nlohmann::json& answer, WebHdfsStatus& status);

// ---- what the lists of servers share

inline constexpr uint64_t most_list_bytes = uint64_t{64} << 20;

/// All before the first wildcard.
std::string fixed_part(const std::string& pattern);
/// Does a pattern or folder choose this name?
bool chosen_by(const std::string& pattern, const std::string& name);
/// InputError when there are more than a million.
void add_found(const std::string& pattern, std::string name, std::vector<std::string>& found);

/// Percent-encoded, except letters, digits, "-_.~" (RFC 3986) and `kept`.
std::string percent_encoded(std::string_view text, std::string_view kept);
/// The inverse; "+" is a blank, as in the lists of S3.
std::string percent_decoded(std::string_view text);
/// With &amp; and its kind resolved.
std::string xml_text(std::string_view text);

}  // namespace millrace::data
