// Arrays of one size for each sample, computed by a function that the part is given: rows of tables, labels,
// numbers to predict.
#pragma once

#include <functional>

#include "data/feed/part.h"

namespace millrace::data {

/// Computes rows `first` … `first` + `count` - 1: rows[k] is where those of field k go, dense. From many
/// threads at once. Errors name the sample.
using ArrayReader =
    std::function<void(const Dataset& from, int64_t first, int64_t count, std::span<std::byte* const> rows)>;

struct ArrayPartOptions {
  /// Of each field an element that stands in rows which only pad a batch (labels: -1), as its bytes; empty,
  /// and for the fields behind the last: zeros.
  std::vector<std::vector<std::byte>> pads = {};
  /// An error of the reader makes the sample bad, which is then replaced; else it is wrong input, which
  /// stops.
  bool bad_samples = false;
  /// Random changes to a row, drawn by its key alone. May be empty.
  std::function<void(const Row& row, std::span<std::byte* const> arrays)> change = nullptr;
};

class ArrayPart final : public Part {
 public:
  /// The fields' rows are of one size (InternalError).
  ArrayPart(std::vector<Field> fields, ArrayReader reader, ArrayPartOptions options = {});

  std::span<const Field> fields() const override { return fields_; }
  /// Each field's row behind the one before, at a multiple of its element's size.
  size_t stored_bytes() const override { return stored_; }
  std::string read(const Dataset& from, int64_t index, const SampleKey* random, Scratch* scratch,
                   std::byte* stored) const override;
  bool read_run(const Dataset& from, int64_t first, int64_t count, std::byte* stored,
                size_t stride) const override;
  void put(const std::byte* stored, const Row& row, Scratch* scratch,
           std::span<std::byte* const> arrays) const override;
  void pad(const Row& row, std::span<std::byte* const> arrays) const override;
  bool only_copies() const override { return true; }

 private:
  void read_many(const Dataset& from, int64_t first, int64_t count, std::byte* stored, size_t stride) const;

  std::vector<Field> fields_;
  ArrayReader reader_;
  ArrayPartOptions options_;
  std::vector<size_t> sizes_, offsets_;  // of rows
  size_t stored_ = 0;
};

/// Elements one after the other, of which `size` is a multiple; zeros where it is empty.
void fill_with(const std::vector<std::byte>& element, std::byte* to, size_t size);

/// The bytes of an element, for ArrayPartOptions::pads.
template <typename T>
std::vector<std::byte> pad_of(T element) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&element);
  return {bytes, bytes + sizeof element};
}

}  // namespace millrace::data
