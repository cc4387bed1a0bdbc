#include "data/table/dates.h"

#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/format.h"

namespace millrace::data {
namespace {

using namespace std::string_view_literals;

/// A number, a word in small letters, or a sign.
struct DateToken {
  enum class What { number, word, sign } what;
  int64_t number = 0;
  size_t digits = 0;
  std::string word;
  char sign = 0;
};

/// Nothing for what no date has.
std::optional<std::vector<DateToken>> date_tokens(std::string_view text) {
  constexpr size_t longest = 40, most_digits = 9;
  if (text.size() > longest) return std::nullopt;
  std::vector<DateToken> tokens;
  for (size_t i = 0; i < text.size();) {
    const auto at = static_cast<unsigned char>(text[i]);
    size_t end = i + 1;
    DateToken token{DateToken::What::sign, 0, 0, {}, text[i]};
    if (std::isdigit(at)) {
      token.what = DateToken::What::number;
      for (end = i; end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])); ++end)
        if (end - i < most_digits) token.number = token.number * 10 + (text[end] - '0');
      token.digits = end - i;
    } else if (std::isalpha(at)) {
      token.what = DateToken::What::word;
      for (end = i; end < text.size() && std::isalpha(static_cast<unsigned char>(text[end])); ++end)
        token.word += static_cast<char>(std::tolower(static_cast<unsigned char>(text[end])));
    } else if (std::string_view(" -/.:,+").find(text[i]) == std::string_view::npos) {
      return std::nullopt;
    }
    tokens.push_back(std::move(token));
    i = end;
  }
  return tokens;
}

/// 1 to 12 for "jan", "january", "sept"; 0 for other words.
int64_t month_of(const std::string& word) {
  constexpr std::array names = {"january"sv,   "february"sv, "march"sv,    "april"sv,
                                "may"sv,       "june"sv,     "july"sv,     "august"sv,
                                "september"sv, "october"sv,  "november"sv, "december"sv};
  if (word.size() < 3) return 0;
  for (size_t k = 0; k < names.size(); ++k)
    if (names[k].starts_with(word)) return static_cast<int64_t>(k) + 1;
  return 0;
}

/// Reads tokens one after the other.
class DateReader {
 public:
  explicit DateReader(std::vector<DateToken> tokens) : tokens_(std::move(tokens)) {}

  bool done() const { return at_ == tokens_.size(); }
  const DateToken* take(DateToken::What what) {
    return !done() && tokens_[at_].what == what ? &tokens_[at_++] : nullptr;
  }
  bool take_sign(char sign) {
    if (done() || tokens_[at_].sign != sign || tokens_[at_].what != DateToken::What::sign) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (done() || tokens_[at_].what != DateToken::What::word || tokens_[at_].word != word) return false;
    ++at_;
    return true;
  }
  void blanks() {
    while (take_sign(' ')) {
    }
  }
  /// Is it a number with a colon behind?
  bool time_follows() const {
    return at_ + 1 < tokens_.size() && tokens_[at_].what == DateToken::What::number &&
           tokens_[at_ + 1].what == DateToken::What::sign && tokens_[at_ + 1].sign == ':';
  }
  /// What stands between the parts of a date.
  char separator() {
    if (done() || tokens_[at_].what != DateToken::What::sign) return 0;
    const char sign = tokens_[at_++].sign;
    blanks();
    return sign;
  }

 private:
  std::vector<DateToken> tokens_;
  size_t at_ = 0;
};

std::optional<double> days_of(int64_t year, size_t digits, int64_t month, int64_t day) {
  if (digits != 4 && digits != 2) return std::nullopt;
  if (digits == 2) year += year < 70 ? 2000 : 1900;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (year < 1 || month > 12 || day > 31 || !date.ok()) return std::nullopt;
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
}

std::optional<double> read_day(DateReader& in, DateOrder order) {
  constexpr DateToken::What number = DateToken::What::number;
  if (const DateToken* word = in.take(DateToken::What::word)) {  // December 31, 2024
    const int64_t month = month_of(word->word);
    (void)in.take_sign('.');
    in.blanks();
    (void)in.take_sign('-');
    const DateToken* day = in.take(number);
    if (month == 0 || !day) return std::nullopt;
    if (day->digits == 4 && in.done()) return days_of(day->number, 4, month, 1);  // Dec 2024
    (void)(in.take_sign(',') || in.take_sign('-'));
    in.blanks();
    const DateToken* year = in.take(number);
    return year ? days_of(year->number, year->digits, month, day->number) : std::nullopt;
  }
  const DateToken* first = in.take(number);
  if (!first) return std::nullopt;
  const char sign = in.separator();
  if (sign != ' ' && sign != '-' && sign != '/' && sign != '.') return std::nullopt;
  in.blanks();
  if (const DateToken* word = in.take(DateToken::What::word)) {  // 31 Dec 2024
    const int64_t month = month_of(word->word);
    if (month == 0) return std::nullopt;
    (void)(in.take_sign('-') || in.take_sign('/') || in.take_sign('.') || in.take_sign(','));
    in.blanks();
    const DateToken* year = in.take(number);
    return year ? days_of(year->number, year->digits, month, first->number) : std::nullopt;
  }
  if (sign == ' ') return std::nullopt;
  const DateToken* second = in.take(number);
  if (second && in.done() && sign != '.' && first->digits == 4 && second->digits == 2)  // 2024-12
    return days_of(first->number, 4, second->number, 1);
  if (!second || !in.take_sign(sign)) return std::nullopt;
  in.blanks();
  const DateToken* third = in.take(number);
  if (!third) return std::nullopt;
  if (first->digits == 4) return days_of(first->number, 4, second->number, third->number);
  // Only days come first where dots stand between.
  const bool day_first = order == DateOrder::day_first || sign == '.';
  return days_of(third->number, third->digits, (day_first ? second : first)->number,
                 (day_first ? first : second)->number);
}

/// Hours ahead of UTC of a zone that is named; of names with several meanings those of RFC 5322.
std::optional<int64_t> read_zone(DateReader& in) {
  constexpr std::pair<std::string_view, int64_t> zones[] = {
      {"z", 0},    {"utc", 0},  {"gmt", 0},  {"est", -5}, {"edt", -4}, {"cst", -6},  {"cdt", -5}, {"mst", -7},
      {"mdt", -6}, {"pst", -8}, {"pdt", -7}, {"wet", 0},  {"west", 1}, {"bst", 1},   {"cet", 1},  {"cest", 2},
      {"eet", 2},  {"eest", 3}, {"msk", 3},  {"jst", 9},  {"kst", 9},  {"aest", 10}, {"aedt", 11}};
  for (const auto& [name, hours] : zones)
    if (in.take_word(name)) return hours;
  return std::nullopt;
}

/// The time of day and what offset from UTC is behind it, in days; no time is midnight.
std::optional<double> read_time(DateReader& in) {
  constexpr DateToken::What number = DateToken::What::number;
  const DateToken* hour = in.take(number);
  if (!hour || !in.take_sign(':')) return std::nullopt;
  const DateToken* minute = in.take(number);
  if (!minute || hour->number > 24 || minute->number > 59) return std::nullopt;
  double seconds = 0;
  if (in.take_sign(':')) {
    const DateToken* second = in.take(number);
    if (!second || second->number > 60) return std::nullopt;
    seconds = static_cast<double>(second->number);
    if (in.take_sign('.') || in.take_sign(',')) {
      const DateToken* part = in.take(number);
      if (!part) return std::nullopt;
      seconds += static_cast<double>(part->number) *
                 std::pow(10.0, -static_cast<double>(std::min<size_t>(part->digits, 9)));
    }
  }
  int64_t hours = hour->number;
  in.blanks();
  const bool before = in.take_word("am"), after = !before && in.take_word("pm");
  if ((before || after) && hours > 12) return std::nullopt;
  if (before && hours == 12) hours = 0;
  if (after && hours < 12) hours += 12;
  double minutes = static_cast<double>(hours) * 60 + static_cast<double>(minute->number);
  if (const auto ahead = read_zone(in)) {
    minutes -= 60.0 * static_cast<double>(*ahead);
  } else if (const bool plus = in.take_sign('+'); plus || in.take_sign('-')) {
    const DateToken* offset = in.take(number);
    if (!offset) return std::nullopt;
    const int64_t written = offset->number;  // "+0530" or "+05"
    int64_t off = offset->digits == 4 ? written / 100 * 60 + written % 100 : written * 60;
    if (in.take_sign(':')) {
      const DateToken* rest = in.take(number);
      if (!rest) return std::nullopt;
      off += rest->number;
    }
    minutes -= static_cast<double>(plus ? off : -off);
  }
  return (minutes * 60 + seconds) / 86400;
}

/// Two digits; below 0 for what is none.
int two_digits(const char* at) {
  const int tens = at[0] - '0', ones = at[1] - '0';
  return tens < 0 || tens > 9 || ones < 0 || ones > 9 ? -1 : 10 * tens + ones;
}

/// As programs write most dates, in any order: "2024-12-31", "2024-12-31 23:59:59.5", also with T and Z.
/// nullopt: ask the others.
std::optional<double> parse_iso(std::string_view text) {
  constexpr size_t day_size = 10, time_size = 19;
  if (text.size() < day_size || text[4] != '-' || text[7] != '-') return std::nullopt;
  const char* const at = text.data();
  const int century = two_digits(at), year = two_digits(at + 2), month = two_digits(at + 5),
            day = two_digits(at + 8);
  if (century < 0 || year < 0 || month < 1 || day < 1) return std::nullopt;
  const auto days = days_of(100 * century + year, 4, month, day);
  if (!days || text.size() == day_size) return days;
  if (text.size() < time_size || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const int hour = two_digits(at + 11), minute = two_digits(at + 14), second = two_digits(at + 17);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return std::nullopt;
  double seconds = second;
  text.remove_prefix(time_size);
  if (text.ends_with('Z')) text.remove_suffix(1);
  if (text.starts_with('.') && text.size() > 1 && text.size() <= 10) {
    int64_t part = 0;
    for (const char digit : text.substr(1)) {
      if (digit < '0' || digit > '9') return std::nullopt;
      part = 10 * part + (digit - '0');
    }
    seconds += static_cast<double>(part) * std::pow(10.0, 1.0 - static_cast<double>(text.size()));
    text = {};
  }
  if (!text.empty()) return std::nullopt;
  return *days + (60.0 * (60 * hour + minute) + seconds) / 86400;
}

}  // namespace

std::optional<double> parse_date(std::string_view text, DateOrder order) {
  if (const auto iso = parse_iso(text)) return iso;
  auto tokens = date_tokens(text);
  if (!tokens) return std::nullopt;
  DateReader in(std::move(*tokens));
  in.blanks();
  if (in.time_follows()) {
    const auto time = read_time(in);
    in.blanks();
    return in.done() ? time : std::nullopt;
  }
  const auto day = read_day(in, order);
  if (!day) return std::nullopt;
  if (in.done()) return day;
  (void)in.take_sign(',');
  in.blanks();
  (void)in.take_word("t");
  if (in.done()) return day;
  const auto time = read_time(in);
  in.blanks();
  if (!time || !in.done()) return std::nullopt;
  return *day + *time;
}

bool is_date(std::string_view text) {
  return parse_date(text, DateOrder::day_first) || parse_date(text, DateOrder::month_first);
}

std::optional<FoundDates> find_dates(std::span<const std::pair<std::string, int64_t>> texts) {
  int64_t all = 0, days = 0, months = 0;
  bool differ = false;
  for (const auto& [text, times] : texts) {
    all += times;
    const auto by_day = parse_date(text, DateOrder::day_first),
               by_month = parse_date(text, DateOrder::month_first);
    if (by_day) days += times;
    if (by_month) months += times;
    differ = differ || by_day != by_month;
    // Most columns are no dates, and the first values show it.
    if (all - std::max(days, months) > 100 && all > 2 * std::max(days, months)) return std::nullopt;
  }
  const int64_t most = std::max(days, months);
  if (most == 0 || all - most > all / 100) return std::nullopt;
  return FoundDates{days > months ? DateOrder::day_first : DateOrder::month_first, differ && days == months};
}

std::optional<double> date_of_digits(double number) {
  constexpr double least = 1900'01'01, most = 2100'12'31;
  if (!(number >= least && number <= most) || number != std::floor(number)) return std::nullopt;
  const auto digits = static_cast<int64_t>(number);
  return days_of(digits / 10000, 4, digits / 100 % 100, digits % 100);
}

std::string date_text(double days) {
  const double whole = std::floor(days);
  if (!(std::abs(whole) < 1e6)) return fmt::format("{:g} days", days);
  const std::chrono::year_month_day date(
      std::chrono::sys_days(std::chrono::days(static_cast<int64_t>(whole))));
  const auto seconds = static_cast<int64_t>(std::lround((days - whole) * 86400));
  std::string text =
      fmt::format("{:04}-{:02}-{:02}", int{date.year()}, unsigned{date.month()}, unsigned{date.day()});
  if (whole == 0 && seconds > 0)
    return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (seconds > 0) text += fmt::format(" {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return text;
}

}  // namespace millrace::data
