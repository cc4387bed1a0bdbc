#include "cli/model_sizes.h"

#include <set>

#include "base/format.h"
#include "base/number_from.h"
#include "base/words.h"
#include "session/sizes.h"

namespace millrace::cli {

Bindings parse_sizes(const std::string& text, const std::vector<SessionValue>& inputs) {
  const std::set<std::string> known = named_dimensions(inputs);
  Bindings sizes;
  for (std::string& part : split_list(text)) {
    part.erase(0, part.find_first_not_of(' '));
    const size_t at = part.rfind('=');
    const int64_t size = at == std::string::npos ? 0 : number_from(trimmed(part.substr(at + 1))).value_or(0);
    if (size < 1) fail<InputError>("--sizes {}: '{}' is no NAME=SIZE with a size of 1 or more", text, part);
    const std::string name = part.substr(0, at);
    if (!known.contains(name))
      fail<InputError>("--sizes {}: the model's inputs have no dimension '{}'{}", text, name,
                       known.empty() ? "; all their sizes are fixed"
                                     : fmt::format("; they have {}", fmt::join(known, ", ")));
    sizes[name] = size;
  }
  return sizes;
}

std::string sizes_text(const Bindings& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, size);
  return text;
}

}  // namespace millrace::cli
