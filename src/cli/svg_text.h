// Texts in pictures.
#pragma once

#include <string>

namespace millrace::cli {

/// As it stands between tags and in attributes.
inline std::string svg_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace millrace::cli
