// String formatting and the checks that throw formatted errors.
#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <millrace/error.h>

namespace millrace {

/// The text with each byte 0 written as \0: a message is a C string for who catches it, and would end there.
std::string as_message(std::string text);

/// Throws `E` with a formatted message: `fail<InputError>("no class {}", name)`.
template <typename E, typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> pattern, Args&&... args) {
  throw E(as_message(fmt::format(pattern, std::forward<Args>(args)...)));
}

}  // namespace millrace

/// Checks an internal invariant; a failure is a defect of Millrace, thrown as InternalError.
#define MILLRACE_CHECK(condition, ...)                                                             \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ::millrace::fail<::millrace::InternalError>("{}:{}: {}: {}", __FILE__, __LINE__, #condition, \
                                                  ::fmt::format(__VA_ARGS__));                     \
  } while (0)
