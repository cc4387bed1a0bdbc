#include "data/io/listing.h"

#include <algorithm>
#include <charconv>
#include <fnmatch.h>

#include <millrace/file.h>

#include "base/format.h"
#include "data/io/location.h"

namespace millrace::data {
namespace {

constexpr size_t most_files = 1'000'000;
constexpr std::string_view mds_index = "index.json";
constexpr const char* wildcards = "*?[";

bool is_sidecar(std::string_view name) {
  for (const std::string_view ending : {".mrx", ".idx", ".index", ".json", ".query"})
    if (name.ends_with(ending)) return true;
  return false;
}

}  // namespace

bool is_remote_pattern(std::string_view path) {
  const bool lists = path.starts_with("s3://") || is_hdfs(path);
  return lists && (path.ends_with('/') || path.find_first_of(wildcards) != std::string_view::npos);
}

std::string fixed_part(const std::string& pattern) {
  return pattern.substr(0, pattern.find_first_of(wildcards));
}

bool chosen_by(const std::string& pattern, const std::string& name) {
  if (!pattern.empty() && !pattern.ends_with('/'))
    return ::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
  if (!name.starts_with(pattern)) return false;
  const std::string_view rest = std::string_view(name).substr(pattern.size());
  return !rest.empty() && rest.find('/') == std::string_view::npos && rest.front() != '.' &&
         rest.front() != '_' && (rest == mds_index || !is_sidecar(rest));
}

void add_found(const std::string& pattern, std::string name, std::vector<std::string>& found) {
  if (found.size() >= most_files) fail<InputError>("{}: names more than {} files", pattern, most_files);
  found.push_back(std::move(name));
}

std::vector<std::string> list_remote(const std::string& pattern) {
  std::vector<std::string> found = is_hdfs(pattern) ? list_webhdfs(pattern) : list_s3(pattern);
  std::sort(found.begin(), found.end());
  const auto is_tar = [](const std::string& name) { return name.ends_with(".tar"); };
  if (pattern.ends_with('/') && std::any_of(found.begin(), found.end(), is_tar))
    std::erase_if(found, [&](const std::string& name) { return !is_tar(name); });
  if (!pattern.ends_with('/')) return found;
  // The folder of an MDS data set is opened by its index, which names the shards.
  const auto is_index = [&](const std::string& name) {
    return name.ends_with(mds_index) && name.size() == found[0].rfind('/') + 1 + mds_index.size();
  };
  const bool mds = std::any_of(found.begin(), found.end(), [](const std::string& name) {
    return name.find(".mds") != std::string::npos;
  });
  const bool indexed = std::any_of(found.begin(), found.end(), is_index);
  if (indexed) std::erase_if(found, [&](const std::string& name) { return is_index(name) != mds; });
  return found;
}

std::string percent_encoded(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~' || kept.find(c) != std::string_view::npos;
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, 2);
    const char* const end = digits.data() + digits.size();
    uint8_t byte = 0;
    if (text[i] == '%' && digits.size() == 2 && std::from_chars(digits.data(), end, byte, 16).ptr == end) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool resolved = false;
    for (const auto& [name, c] : {std::pair{"&amp;", '&'}, std::pair{"&lt;", '<'}, std::pair{"&gt;", '>'},
                                  std::pair{"&quot;", '"'}, std::pair{"&apos;", '\''}})
      if (!resolved && text.substr(i).starts_with(name)) {
        out += c;
        i += std::string_view(name).size() - 1;
        resolved = true;
      }
    if (!resolved) out += text[i];
  }
  return out;
}

}  // namespace millrace::data
