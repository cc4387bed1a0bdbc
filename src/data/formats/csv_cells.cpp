#include "data/formats/csv_cells.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/contains.h"

namespace millrace::data {
namespace {

using namespace std::string_view_literals;

constexpr std::array missing_words = {""sv,     "-"sv,      "--"sv,      "."sv,        "?"sv,        "na"sv,
                                      "n/a"sv,  "#na"sv,    "#n/a"sv,    "#n/a n/a"sv, "<na>"sv,     "nan"sv,
                                      "-nan"sv, "1.#ind"sv, "-1.#ind"sv, "1.#qnan"sv,  "-1.#qnan"sv, "null"sv,
                                      "none"sv, "nil"sv,    "missing"sv};
constexpr size_t longest_word = 8;

constexpr char differing = '*';  // of CsvTally::currency
constexpr std::array currency_signs = {"$"sv, "€"sv, "£"sv, "¥"sv, "₹"sv, "₩"sv, "₽"sv, "₺"sv};
constexpr std::array blanks = {" "sv, "\xc2\xa0"sv, "\xe2\x80\xaf"sv};  // no-break ones, too

bool take(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

bool take_end(std::string_view& text, std::string_view ending) {
  if (!text.ends_with(ending)) return false;
  text.remove_suffix(ending.size());
  return true;
}

void trim(std::string_view& text) {
  for (const std::string_view blank : blanks) {
    while (take(text, blank)) {
    }
    while (take_end(text, blank)) {
    }
  }
}

/// A number without what is written around it.
struct BareNumber {
  std::string digits;  // "-1,234.5": sign, digits, separators
  char currency = 0;
  bool percent = false;
  uint8_t signs = 0;  // CsvTally::Sign
};

std::optional<BareNumber> bare_number(std::string_view text) {
  constexpr size_t longest = 64;
  if (text.size() > longest) return std::nullopt;
  BareNumber bare;
  trim(text);
  const bool typeset = take(text, "\xe2\x88\x92");  // U+2212 is how typesetters write it
  const bool minus = typeset || take(text, "-");
  if (typeset) bare.signs |= CsvTally::minus_sign;
  if (!minus) (void)take(text, "+");
  for (size_t k = 0; k < currency_signs.size() && bare.currency == 0; ++k)
    if (take(text, currency_signs[k]) || take_end(text, currency_signs[k]))
      bare.currency = static_cast<char>(k + 1);
  bare.percent = take_end(text, "%");
  trim(text);
  bool again = false;
  if (bare.currency != 0 && !minus) again = take(text, "-");
  if (text.empty() ||
      !(std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.' || text[0] == ','))
    return std::nullopt;
  const auto has = [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; };
  if (has(",")) bare.signs |= CsvTally::comma_sign;
  if (has(".")) bare.signs |= CsvTally::dot_sign;
  if (has("'") || std::any_of(blanks.begin(), blanks.end(), has)) bare.signs |= CsvTally::blank_sign;
  bare.digits = minus || again ? "-" : "";
  bare.digits += text;
  return bare;
}

/// "-1,234,567.89" or "-1.234.567,89" as C writes it: thousands in groups of three. Nothing when the
/// separators stand elsewhere, or behind a zero: "0.456" is never 456.
std::optional<std::string> plain_digits(std::string_view text, char decimal) {
  const char separator = decimal == '.' ? ',' : '.';
  std::string plain;
  if (take(text, "-")) plain = "-";
  std::string_view whole = text, rest;
  if (const size_t at = text.find(decimal); at != std::string_view::npos) {
    whole = text.substr(0, at);
    rest = text.substr(at + 1);
  }
  const bool from_zero = text.starts_with('0');
  // Which separator: one and the same throughout.
  std::string_view between;
  size_t digits = 0, groups = 0;
  while (!whole.empty()) {
    if (std::isdigit(static_cast<unsigned char>(whole[0]))) {
      plain += whole[0];
      whole.remove_prefix(1);
      ++digits;
      continue;
    }
    std::string_view found;
    if (whole[0] == separator || whole[0] == '\'') found = whole.substr(0, 1);
    for (const std::string_view blank : blanks)
      if (whole.starts_with(blank)) found = blank;
    const bool fits = groups == 0 ? digits >= 1 && digits <= 3 : digits == 3;
    if (found.empty() || !fits || (!between.empty() && found != between)) return std::nullopt;
    between = found;
    whole.remove_prefix(found.size());
    digits = 0;
    ++groups;
  }
  if (groups > 0 && (digits != 3 || from_zero)) return std::nullopt;
  if (!rest.empty()) plain += '.';
  plain += rest;
  return plain;
}

std::optional<double> number_of(std::string_view digits, char decimal) {
  const auto plain = plain_digits(digits, decimal);
  double value = 0;
  if (!plain || !csv_real(*plain, value)) return std::nullopt;
  return value;
}

/// "1.234" or "12.345.678".
bool may_be_grouped(std::string_view text) {
  return text.size() >= 5 && text[text.size() - 4] == '.' && number_of(text, ',');
}

/// A whole number with a zero in front: "007", not "0", "-07" or "0.5".
bool is_padded(std::string_view number) {
  return number.size() > 1 && number[0] == '0' && std::all_of(number.begin(), number.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) != 0;
         });
}

std::string_view content_of(const CsvField& field, std::string& unquoted) {
  if (!field.quoted) return field.text();
  if (csv_plainly_quoted(field)) return field.text().substr(1, field.size - 2);
  return unquoted = csv_text(field);
}

}  // namespace

bool csv_missing_number(std::string_view text) {
  if (text.size() > longest_word) return false;
  // Most cells are numbers, and of the words only 1.#IND and 1.#QNAN begin as such.
  const size_t sign = text.starts_with('-');
  const bool digit = text.size() > sign && std::isdigit(static_cast<unsigned char>(text[sign]));
  if (digit && (text.size() < sign + 3 || text[sign + 2] != '#')) return false;
  char small[longest_word];
  std::transform(text.begin(), text.end(), small,
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  const std::string_view word(small, text.size());
  return contains(missing_words, word);
}

int64_t csv_bad_allowed(int64_t cells) { return std::max<int64_t>(cells >= 20, cells / 100); }

std::optional<double> csv_written_number(std::string_view text, bool decimal_comma) {
  double value = 0;
  if (!decimal_comma && csv_real(text, value)) return value;
  const auto bare = bare_number(text);
  if (!bare) return std::nullopt;
  if (const auto number = number_of(bare->digits, decimal_comma ? ',' : '.')) return number;
  // Exponents and the like: 1e5 is written alike everywhere.
  if (decimal_comma && text.find(',') == std::string_view::npos && text.find('.') == std::string_view::npos &&
      csv_real(text, value))
    return value;
  return std::nullopt;
}

void CsvTally::add(const CsvField& field, uint64_t at, std::span<const std::string> missing) {
  // A column of texts is one soon, and none of its cells is looked at after that.
  constexpr uint32_t enough = 200;
  int64_t integer = 0;
  if (csv_short_integer(field, integer)) {
    if (!missing.empty() && contains(missing, field.text())) return;
    ++integers;
    padded += field.size > 1 && field.data[0] == '0';
    return;
  }
  if (csv_missing(field)) return;
  if (other > enough && other > numbers()) {
    ++other;
    return;
  }
  std::string unquoted;
  const std::string_view text = content_of(field, unquoted);
  if (contains(missing, text)) return;
  if (!add(text, 1) || other > 1) return;
  first_at = at;
  first_size = static_cast<uint32_t>(std::min<size_t>(field.size, 1000));
}

bool CsvTally::add(std::string_view text, uint32_t times) {
  int64_t integer = 0;
  double real = 0;
  if (csv_missing_number(text)) return false;
  if (csv_integer(text, integer)) {
    integers += times;
    padded += is_padded(text) ? times : 0;
    return false;
  }
  if (csv_real(text, real)) {
    reals += times;
    grouped_reals += may_be_grouped(text) ? times : 0;
    return false;
  }
  if (const auto bare = bare_number(text)) {
    const bool by_point = number_of(bare->digits, '.').has_value(),
               by_comma = number_of(bare->digits, ',').has_value();
    if (by_point || by_comma) {
      point += by_point ? times : 0;
      comma += by_comma ? times : 0;
      either += by_point && by_comma ? times : 0;
      percent += bare->percent ? times : 0;
      signs |= bare->signs;
      if (bare->currency != 0)
        currency = currency == 0 || currency == bare->currency ? bare->currency : differing;
      return false;
    }
  }
  other += times;
  return true;
}

void CsvTally::add(const CsvTally& later) {
  if (other == 0) {
    first_at = later.first_at;
    first_size = later.first_size;
  }
  if (later.currency != 0)
    currency = currency == 0 || currency == later.currency ? later.currency : differing;
  signs |= later.signs;
  integers += later.integers;
  padded += later.padded;
  reals += later.reals;
  grouped_reals += later.grouped_reals;
  point += later.point;
  comma += later.comma;
  either += later.either;
  percent += later.percent;
  other += later.other;
}

CsvColumn csv_column(const CsvTally& t, bool commas_likely) {
  CsvColumn column;
  const int64_t by_point = int64_t{t.integers} + t.reals + t.point,
                by_comma = int64_t{t.integers} + t.grouped_reals + t.comma;
  const bool written_plainly = t.point == 0 && t.comma == 0;
  const bool comma = !written_plainly && (by_comma > by_point || (by_comma == by_point && commas_likely));
  const int64_t numbers = comma ? by_comma : by_point;
  column.bad = t.cells() - numbers;
  const int64_t allowed = csv_bad_allowed(t.cells());
  // "12 %" and "0.12" in one column: who knows what they mean.
  const bool agree = t.currency != differing && (t.percent == 0 || t.percent + allowed >= t.numbers());
  if (numbers == 0 || column.bad > allowed || !agree) return {};
  if (t.padded > 0) {
    column.codes = true;
    return column;
  }
  column.decimal_comma = comma;
  column.type = written_plainly && t.reals == 0 ? CsvColumn::Type::integer : CsvColumn::Type::real;
  return column;
}

std::vector<std::string> csv_ways(const CsvTally& tally, const CsvColumn& column) {
  std::vector<std::string> ways;
  const auto has = [&](CsvTally::Sign sign) { return (tally.signs & sign) != 0; };
  if (column.decimal_comma && has(CsvTally::comma_sign))
    ways.emplace_back("decimal commas (1.234,5)");
  else if (column.decimal_comma && has(CsvTally::dot_sign))
    ways.emplace_back("thousands separated by dots (1.234.567)");
  else if (has(CsvTally::comma_sign))
    ways.emplace_back("separated thousands (1,234.5)");
  if (has(CsvTally::blank_sign)) ways.emplace_back("separated thousands (1 234)");
  if (has(CsvTally::minus_sign))
    ways.emplace_back(
        "the minus sign of typesetters (\xe2\x88\x92"
        "5)");
  if (tally.currency != 0) ways.emplace_back("a currency's sign");
  if (tally.percent > 0) ways.emplace_back("% (12 % is 12)");
  return ways;
}

}  // namespace millrace::data
