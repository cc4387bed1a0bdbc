#include "base/format.h"

namespace millrace {

std::string as_message(std::string text) {
  for (size_t at = 0; (at = text.find('\0', at)) != std::string::npos; ++at) text.replace(at, 1, "\\0");
  return text;
}

}  // namespace millrace
