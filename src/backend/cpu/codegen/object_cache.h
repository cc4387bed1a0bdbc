// Machine code on disk, by content.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::codegen {

/// A short name for a key: 128 bits of hash in hexadecimal.
std::string hash_name(std::string_view key);

/// The object stored for a key, or offered; nullopt when there is none or it is damaged. The file holds the
/// key itself too, so that two keys of one hash are never mixed up.
std::optional<std::string> find_object(const std::string& key);
/// Stores an object; failures (read-only or full disk) are passed over, the code is compiled again next time.
void store_object(const std::string& key, std::string_view object);

/// Objects, by their keys, that are there besides those on the disk as long as somebody has what is returned.
/// What they view must live as long.
std::shared_ptr<const void> offer_objects(std::map<std::string, std::string_view, std::less<>> objects);

/// Notes all objects that are found or stored while it lives, by any thread. Code that is in memory already
/// is not looked for (forget_unused_code()). One at a time.
class RecordedObjects {
 public:
  RecordedObjects();
  ~RecordedObjects();
  RecordedObjects(const RecordedObjects&) = delete;
  RecordedObjects& operator=(const RecordedObjects&) = delete;
  std::map<std::string, std::string> objects() const;
};

}  // namespace millrace::codegen
