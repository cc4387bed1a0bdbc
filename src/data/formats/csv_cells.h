// What the cells of delimited text hold: numbers as people and programs write them, words for what is
// missing, texts; and what a column is by its cells.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/csv_scan.h"

namespace millrace::data {

/// A word that stands for a number that is missing: those of pandas (NA, N/A, #N/A, NULL, NaN, None …), and
/// "-", ".", "?", "missing" and the like; in small or capital letters. In columns of texts only those of
/// csv_missing() are.
bool csv_missing_number(std::string_view text);

/// A number with separated thousands ("1,234.5", "1 234"), a currency's sign or "%", or with a decimal comma
/// ("1.234,5"); the signs mean nothing ("12 %" is 12). Also what csv_real() reads. Nothing when it is none.
std::optional<double> csv_written_number(std::string_view text, bool decimal_comma);

/// Of the cells of a column: how many are what. A sum of tallies is the tally of all.
struct CsvTally {
  uint32_t integers = 0, reals = 0;  // as C writes them
  uint32_t grouped_reals = 0;        // of the reals: "1.234", which has separated thousands with a comma
  uint32_t point = 0, comma = 0;     // numbers otherwise written, by how their decimals may be
  uint32_t either = 0;               // of those both ways: in both of the above
  uint32_t percent = 0;              // of those otherwise written: with "%"
  uint32_t padded = 0;               // of the integers: with zeros in front ("007"), as codes are written
  uint32_t other = 0;                // no numbers, nor missing
  char currency = 0;                 // which sign they have: 0 for none
  enum Sign : uint8_t { comma_sign = 1, dot_sign = 2, blank_sign = 4, minus_sign = 8 };
  uint8_t signs = 0;        // which of these they have; minus: that of typesetters; blank: or ' in it
  uint32_t first_size = 0;  // of the first other one, and where it is in the file
  uint64_t first_at = 0;

  /// `missing`: what the user says is missing.
  void add(const CsvField& field, uint64_t at, std::span<const std::string> missing);
  /// A text that comes so often; true when it is no number, nor missing.
  bool add(std::string_view text, uint32_t times);
  /// Those of later rows.
  void add(const CsvTally& later);
  int64_t cells() const { return numbers() + other; }
  int64_t numbers() const { return int64_t{integers} + reals + point + comma - either; }
};

/// What a column is.
struct CsvColumn {
  enum class Type : uint8_t { text, integer, real } type = Type::text;
  bool decimal_comma = false;
  int64_t bad = 0;     // cells of a column of numbers that are none
  bool codes = false;  // would be of numbers, but some have zeros in front, which numbers would lose
  bool of_digits() const { return type != Type::text || codes; }
};

/// How many of the cells of a column of numbers may be none: one in a hundred, or one, of 20 or more.
int64_t csv_bad_allowed(int64_t cells);

/// Numbers, where all cells that are not missing are, but csv_bad_allowed(), and agree on how they are
/// written; texts, where one of them has a zero in front ("007"). Numbers that fit both ways have decimal
/// commas where `commas_likely`, as in files delimited by semicolons.
CsvColumn csv_column(const CsvTally& tally, bool commas_likely);

/// How the numbers of a column are written, where C would not: "decimal commas (1.234,5)".
std::vector<std::string> csv_ways(const CsvTally& tally, const CsvColumn& column);

}  // namespace millrace::data
