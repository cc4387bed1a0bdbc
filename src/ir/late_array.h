// Arrays whose elements come when somebody first asks for them: the weights of a model that is compiled for
// one set of sizes after the other. Kernels find what they packed of them before by a digest, and nobody
// asks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <millrace/array.h>

namespace millrace {

/// Stands for bytes: what is equal has the same one.
struct Digest {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Digest&) const = default;
};

/// That of elements which come late: known once somebody has read them, of all arrays that share this.
class LateDigest {
 public:
  /// `in_file`: of elements in a file that is mapped, which is theirs alone who mapped it.
  explicit LateDigest(bool in_file = false) : in_file_(in_file) {}
  explicit LateDigest(Digest known) : known_(known) {}
  bool in_file() const { return in_file_; }
  std::optional<Digest> get() const {
    const std::lock_guard lock(mutex_);
    return known_;
  }
  void set(Digest digest) {
    const std::lock_guard lock(mutex_);
    known_ = digest;
  }

 private:
  const bool in_file_ = false;
  mutable std::mutex mutex_;
  std::optional<Digest> known_;
};

struct LateArrays {
  /// Writes all elements to where it is told; may throw, and is called again then.
  using Write = std::function<void(void* elements)>;

  /// Nobody may write to it. Errors as Array's.
  static Array make(const Type& type, Write write, std::shared_ptr<LateDigest> digest);
  /// The same memory, whose elements are there already. Nobody may write to it from now on.
  static Array with_digest(const Array& array, std::shared_ptr<LateDigest> digest);
  /// The same memory, which this one keeps alive: whoever has a copy has `kept`.
  static Array view(const std::shared_ptr<Array>& kept);
  /// Null: its elements never were late.
  static std::shared_ptr<LateDigest> digest(const Array& array);
  static bool is_late(const Array& array);
  /// Where it lies, without asking for the elements.
  static const void* place(const Array& array) { return array.data_; }
};

}  // namespace millrace
