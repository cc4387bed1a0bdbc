// What fuzzers share: input that is refused must be refused by an Error of ours; anything else is a finding.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <millrace/error.h>

namespace millrace::fuzz {

/// Runs `body` on hostile input. InputError, IoError and TypeError are answers; InternalError and all else
/// are not.
template <typename Body>
void refuse_or_take(Body&& body) {
  try {
    body();
  } catch (const InputError&) {
  } catch (const IoError&) {
  } catch (const TypeError&) {
  }
}

inline std::string_view text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace millrace::fuzz
