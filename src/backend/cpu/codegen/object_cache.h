// Machine code on disk, by content.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace::codegen {

/// A short name for a key: 128 bits of hash in hexadecimal.
std::string hash_name(std::string_view key);

/// The object stored for a key; nullopt when there is none or it is damaged. The file holds the key itself
/// too, so that two keys of one hash are never mixed up.
std::optional<std::string> find_object(const std::string& key);
/// Stores an object; failures (read-only or full disk) are passed over, the code is compiled again next time.
void store_object(const std::string& key, std::string_view object);

}  // namespace millrace::codegen
