// Memory for arrays.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace millrace::data {

/// Bytes that begin at a multiple of 64. They are not written: which memory node they come from says the
/// thread that writes them first.
class AlignedBytes {
 public:
  static constexpr size_t alignment = 64;
  AlignedBytes() = default;
  explicit AlignedBytes(size_t size)
      : data_(size > 0 ? static_cast<std::byte*>(::operator new (size, std::align_val_t{alignment}))
                       : nullptr),
        size_(size) {}

  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  /// The next multiple of the alignment.
  static constexpr size_t rounded(size_t size) { return (size + alignment - 1) / alignment * alignment; }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{alignment}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

}  // namespace millrace::data
