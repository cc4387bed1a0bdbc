// What is said by errors.
#pragma once

#include <concepts>
#include <string>

#include <millrace/error.h>

namespace millrace::testing {

/// The message of the error that `body` throws; "" when it throws none. Other errors are let through.
template <typename E = InputError, std::invocable F>
std::string refusal(const F& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace millrace::testing
