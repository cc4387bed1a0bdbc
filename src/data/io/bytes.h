// Bytes that several hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::data {

/// Bytes and what keeps them alive: a view into a mapped file, or memory of their own. Copies share.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::span<const uint8_t> view, std::shared_ptr<const void> owner)
      : view_(view), owner_(std::move(owner)) {}
  explicit Bytes(std::vector<uint8_t> own) {
    auto memory = std::make_shared<const std::vector<uint8_t>>(std::move(own));
    view_ = *memory;
    owner_ = std::move(memory);
  }

  std::span<const uint8_t> view() const { return view_; }
  const uint8_t* data() const { return view_.data(); }
  size_t size() const { return view_.size(); }
  std::string_view text() const { return {reinterpret_cast<const char*>(view_.data()), view_.size()}; }
  /// A part that shares the memory; offset + size ≤ size().
  Bytes part(size_t offset, size_t size) const { return {view_.subspan(offset, size), owner_}; }

 private:
  std::span<const uint8_t> view_;
  std::shared_ptr<const void> owner_;
};

}  // namespace millrace::data
