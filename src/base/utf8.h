#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// How many bytes of `text` are UTF-8, up to an overlong form, a surrogate, what lies beyond U+10FFFF or no
/// character at all.
size_t utf8_bytes(std::string_view text);
/// Whether it is UTF-8 to its end.
inline bool is_utf8(std::string_view text) { return utf8_bytes(text) == text.size(); }

/// Characters of UTF-8: of what we print each is a column wide.
size_t code_points(std::string_view text);

/// A text of any bytes as UTF-8 that keeps them: bytes that are none, and a backslash before an x, are
/// written as \xNN. Names of classes come from files in Latin-1, too, and two of them must not become one.
std::string stored_text(std::string_view text);

/// What stored_text was given.
std::string text_of_stored(std::string_view stored);

/// For messages: control characters but tabs and line ends are written as \xNN, so that what stands in a file
/// or in its name says nothing to a terminal.
std::string printable(std::string_view text);

}  // namespace millrace
