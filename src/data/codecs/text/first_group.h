// What a regular expression finds in a text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::data {

/// ICU's regular expressions. Threads may use one at the same time. (std::regex needs stack for every letter
/// of the text, and has no limit of time.)
class FirstGroup {
 public:
  /// InputError, which says what is wrong, when `expression` is none.
  explicit FirstGroup(const std::string& expression);
  ~FirstGroup();

  /// Of the first match its first group, or all of it when the expression has no groups; nothing when there
  /// is no match, or the group is not part of it. InputError when the search takes too long, or more than 8
  /// MB.
  std::optional<std::string> find(std::string_view text) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::data
