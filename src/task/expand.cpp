#include <cstdlib>

#include "base/format.h"
#include "task/recipe.h"

namespace millrace::task {

std::string expand(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, 2) != "${") {
      result += text[at++];
      continue;
    }
    const size_t end = text.find('}', at);
    if (end == std::string_view::npos) fail<InputError>("'{}' has a ${{ without a }}", text);
    const std::string name(text.substr(at + 2, end - at - 2));
    const char* value = std::getenv(name.c_str());
    if (!value && name == "MILLRACE_DATA") value = "../shared/data";
    if (!value) fail<InputError>("the environment variable {} is not set", name);
    result += value;
    at = end + 1;
  }
  return result;
}

}  // namespace millrace::task
