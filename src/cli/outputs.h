// Where verbs write to, and how they write words.
#pragma once

#include <string>
#include <string_view>

#include "base/format.h"

namespace millrace::cli {

/// Of an output that standard output cannot be, for it has the report, or it is a folder: InputError for "-".
inline void require_named(const std::string& out, std::string_view what) {
  if (out == "-")
    fail<InputError>("{} -: cannot be standard output; give it a name (./- for one that is called so)", what);
}

/// A word as a shell takes it.
inline std::string shell_quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$`&|;<>()*?[]{}!#~") == std::string::npos;
  if (plain) return word;
  std::string text;
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return fmt::format("'{}'", text);
}

}  // namespace millrace::cli
