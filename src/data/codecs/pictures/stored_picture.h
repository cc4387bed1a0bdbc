// Pictures as data sets have them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <millrace/file.h>

namespace millrace::data {

/// An encoded file, or raw pixels (HWC) where height > 0. `bytes` points into `owner`, or where `owner` is
/// empty into what must outlive it.
struct StoredPicture {
  std::span<const uint8_t> bytes;
  Bytes owner;
  int height = 0, width = 0, channels = 0;

  StoredPicture() = default;
  explicit StoredPicture(Bytes own) : bytes(own.view()), owner(std::move(own)) {}
  StoredPicture(Bytes own, int rows, int columns, int colours)
      : bytes(own.view()), owner(std::move(own)), height(rows), width(columns), channels(colours) {}

  /// What is wrong with raw pixels: a size that is none, or another number of bytes. "" where nothing is, and
  /// for files.
  std::string fault() const;
};

}  // namespace millrace::data
