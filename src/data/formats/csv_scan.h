// Finding the fields of delimited text, 64 bytes at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace millrace::data {

/// A field as it is written: blanks around it removed, quotes still there. Quotes count only where they open
/// a field, as RFC 4180 has them; elsewhere they are text.
struct CsvField {
  const char* data = nullptr;
  size_t size = 0;
  bool quoted = false;
  std::string_view text() const { return {data, size}; }
};

struct CsvDialect {
  char delimiter = ',';  // ' ': blanks, one or more; there are no empty fields then
  bool quotes = true;    // else they are letters like others
  char newline = '\n';   // '\r' in files of old Macs and Excel for Mac
};

namespace csv_detail {

struct Masks {
  uint64_t ends = 0, quotes = 0;  // a bit for each byte: delimiter or newline; quote
};

/// Of 64 readable bytes.
inline Masks masks(const char* at, char delimiter, char newline) {
  Masks m;
#ifdef __SSE2__
  const __m128i d = _mm_set1_epi8(delimiter), n = _mm_set1_epi8(newline), q = _mm_set1_epi8('"');
  for (int k = 0; k < 4; ++k) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + k);
    const __m128i end = _mm_or_si128(_mm_cmpeq_epi8(bytes, d), _mm_cmpeq_epi8(bytes, n));
    m.ends |= uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(end))} << (16 * k);
    m.quotes |= uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, q)))} << (16 * k);
  }
#else
  for (int k = 0; k < 64; ++k) {
    m.ends |= uint64_t{at[k] == delimiter || at[k] == newline} << k;
    m.quotes |= uint64_t{at[k] == '"'} << k;
  }
#endif
  return m;
}

inline bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace csv_detail

/// Without the blanks around it. A tab that delimits is never within a field.
inline CsvField trimmed_field(const char* begin, const char* end, bool quotes = true) {
  while (begin < end && csv_detail::blank(*begin)) ++begin;
  while (begin < end && csv_detail::blank(end[-1])) --end;
  return {begin, static_cast<size_t>(end - begin), quotes && begin < end && *begin == '"'};
}

/// Walks over the rows of [begin, end): `field(const CsvField&)` for each field, then `row(const char* next)`
/// behind the newline (or at the end, for a row without one) that says whether to go on. A row of nothing is
/// one empty field. Returns false when a quote is still open at the end; the row that it is in is not told of
/// as a row.
template <typename Field, typename Row>
bool scan_csv(const char* begin, const char* end, CsvDialect dialect, Field&& field, Row&& row) {
  const char* start = begin;     // of the field
  const char* ignore = nullptr;  // the second of two quotes
  bool inside = false;           // quotes
  bool fresh = true;             // nothing of the row was told yet
  const bool blanks = dialect.delimiter == ' ';
  const auto tell = [&](const CsvField& found) {
    if (!blanks || found.size > 0) field(found);
  };
  char tail[64];
  for (const char* block = begin; block < end; block += 64) {
    const auto left = static_cast<size_t>(end - block);
    const char* bytes = block;
    if (left < 64) {
      std::memset(tail, 0, sizeof tail);
      std::memcpy(tail, block, left);
      bytes = tail;
    }
    csv_detail::Masks m = csv_detail::masks(bytes, dialect.delimiter, dialect.newline);
    if (!dialect.quotes) m.quotes = 0;
    uint64_t bits = m.ends | m.quotes;
    while (bits != 0) {
      const int bit = std::countr_zero(bits);
      bits &= bits - 1;
      const char* at = block + bit;
      if (m.quotes >> bit & 1) {
        if (inside) {
          if (at == ignore) continue;
          if (at + 1 < end && at[1] == '"')
            ignore = at + 1;
          else
            inside = false;
        } else if (at != ignore) {
          const char* first = start;
          while (first < at && csv_detail::blank(*first)) ++first;
          inside = first == at;
        }
        continue;
      }
      if (inside) continue;
      tell(trimmed_field(start, at, dialect.quotes));
      start = at + 1;
      fresh = *at == dialect.newline;
      if (fresh && !row(start)) return true;
    }
  }
  if (inside) return false;
  if (!fresh || start < end) {
    tell(trimmed_field(start, end, dialect.quotes));
    row(end);
  }
  return true;
}

/// Does a value in quotes look like the rest of one row, whole rows and the beginning of another one: are
/// there as many delimiters in it as in so many lines, of `width` values each, few of which begin or end with
/// an empty one?
bool swallows_rows(const CsvField& field, CsvDialect dialect, size_t width);

/// Would a value be another one, or several, without its quotes?
inline bool needs_quotes(const CsvField& field, CsvDialect dialect) {
  const std::string_view text = field.text().substr(1);
  return text.find(dialect.delimiter) < text.size() || text.find(dialect.newline) < text.size() ||
         text.find("\"\"") < text.size();
}

/// "", NA, ? and null without quotes.
inline bool csv_missing(const CsvField& f) {
  switch (f.size) {
    case 0:
      return true;
    case 1:
      return f.data[0] == '?';
    case 2:
      return f.data[0] == 'N' && f.data[1] == 'A';
    case 4:
      return std::memcmp(f.data, "null", 4) == 0;
    default:
      return false;
  }
}

/// The text of a field: of a quoted one without its quotes, two of them as one, and what follows the closing
/// one as it stands.
std::string csv_text(const CsvField& field);
/// True where that text of a quoted one is the field without its first and last byte.
inline bool csv_plainly_quoted(const CsvField& f) {
  return f.size >= 2 && std::memchr(f.data + 1, '"', f.size - 1) == f.data + f.size - 1;
}

/// Whole numbers of up to 18 digits, the quick way; false means only: look closer.
inline bool csv_short_integer(const CsvField& f, int64_t& number) {
  const bool minus = f.size > 0 && f.data[0] == '-';
  const size_t from = minus;
  if (f.size == from || f.size - from > 18) return false;
  uint64_t sum = 0;
  for (size_t i = from; i < f.size; ++i) {
    const auto digit = static_cast<unsigned>(f.data[i]) - '0';
    if (digit > 9) return false;
    sum = sum * 10 + digit;
  }
  number = minus ? -static_cast<int64_t>(sum) : static_cast<int64_t>(sum);
  return true;
}

/// Any whole number within 64 bits, or any number ("1e5", "-.5", "inf"; a comma is none), with a sign or
/// without; all of `text`.
bool csv_integer(std::string_view text, int64_t& number);
bool csv_real(std::string_view text, double& number);

}  // namespace millrace::data
