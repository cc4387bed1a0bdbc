// Arrays of samples that are made of several rows of a table (data/table/group.h): what an ArrayPart makes of
// a row, for each of them.
#pragma once

#include "data/feed/array_part.h"

namespace millrace::data {

/// Fields are [batch, length, …]: those of a row, its own dimensions behind. What stands behind the last row
/// is `pads`, as in ArrayPartOptions, else zeros.
class GroupPart final : public Part {
 public:
  /// `rows`: the fields of a row, [batch, …], of one size. `longest`: rows of the largest sample. The reader
  /// is asked for rows of the table.
  GroupPart(const std::vector<Field>& rows, int64_t longest, ArrayReader reader,
            ArrayPartOptions options = {});

  std::span<const Field> fields() const override { return fields_; }
  /// How many rows, and so many.
  size_t stored_bytes() const override { return begins_.back(); }
  std::string read(const Dataset& from, int64_t index, const SampleKey* random, Scratch* scratch,
                   std::byte* stored) const override;
  /// A row that stands in for a bad sample may be shorter than its sample, which is then cut.
  void put(const std::byte* stored, const Row& row, Scratch* scratch,
           std::span<std::byte* const> arrays) const override;
  void pad(const Row& row, std::span<std::byte* const> arrays) const override;
  bool only_copies() const override { return true; }

 private:
  void read_rows(const Dataset& from, int64_t index, std::byte* stored) const;

  int64_t longest_;
  ArrayReader reader_;
  ArrayPartOptions options_;
  std::vector<Field> fields_;
  std::vector<size_t> sizes_;   // of a row of the table
  std::vector<size_t> begins_;  // in what is stored; one more than there are fields
};

}  // namespace millrace::data
