#include "data/io/expand_paths.h"

#include <filesystem>
#include <glob.h>

#include "base/format.h"
#include "base/number_from.h"
#include "base/words.h"
#include "data/io/listing.h"
#include "data/io/location.h"

namespace millrace::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t max_files = 1'000'000;

/// "a{1..3}b{x,y}" → a1bx a1by a2bx …; numbers keep their width.
void expand_braces(const std::string& pattern, size_t from, std::vector<std::string>& out) {
  const size_t open = pattern.find('{', from);
  const size_t close = open == std::string::npos ? open : pattern.find('}', open);
  if (close == std::string::npos) {
    if (out.size() >= max_files) fail<InputError>("{}: names more than {} files", pattern, max_files);
    out.push_back(pattern);
    return;
  }
  const std::string head = pattern.substr(0, open), body = pattern.substr(open + 1, close - open - 1),
                    tail = pattern.substr(close + 1);
  std::vector<std::string> choices;
  const size_t dots = body.find("..");
  if (dots != std::string::npos) {
    const std::string first = body.substr(0, dots), last = body.substr(dots + 2);
    const auto low = number_from<uint32_t>(first), high = number_from<uint32_t>(last);
    if (!low || !high || *low > *high)
      fail<InputError>("{}: \"{{{}}}\" is no range; write it as {{000..007}}", pattern, body);
    for (uint64_t i = *low; i <= *high && choices.size() <= max_files; ++i)
      choices.push_back(fmt::format("{:0{}}", i, first.size()));
  } else {
    choices = split(body);
  }
  for (const std::string& choice : choices)
    expand_braces(head + choice + tail, head.size() + choice.size(), out);
}

std::vector<std::string> expand_wildcards(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  if (status == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

}  // namespace

std::vector<std::string> expand_paths(const std::string& pattern) {
  std::error_code ignored;
  if (is_piped(pattern)) return {pattern};             // the command's own braces and stars
  if (fs::exists(pattern, ignored)) return {pattern};  // a real file whose name has brackets
  std::vector<std::string> braced, paths;
  expand_braces(pattern, 0, braced);
  for (const std::string& item : braced) {
    std::vector<std::string> found = {item};
    if (is_remote_pattern(item))
      found = list_remote(item);
    else if (!is_elsewhere(item) && item.find_first_of("*?[") != std::string::npos)
      found = expand_wildcards(item);
    paths.insert(paths.end(), found.begin(), found.end());
  }
  if (paths.empty()) fail<InputError>("{}: matches no file; check the pattern", pattern);
  return paths;
}

}  // namespace millrace::data
