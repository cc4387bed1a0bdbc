// Dates and times as people and programs write them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::data {

/// Which way round days and months stand, where both are numbers: 31/12/2024 or 12/31/2024. Years that come
/// first are always followed by the month.
enum class DateOrder { day_first, month_first };

/// Days since 1970-01-01 00:00, the time of day as a fraction, an offset from UTC or a zone that is named
/// taken off: "2024-12-31", "2024/12/31 23:59", "2024-12-31T23:59:59.5Z", "2024-12-31 23:59 CET",
/// "31.12.2024", "12/31/24 1:05 pm", "31 Dec 2024", "December 31, 2024". Years of two digits are those from
/// 1970 to 2069. A month ("2024-12", "Dec 2024") is its first day, a time of day alone ("14:05") a fraction.
/// Nothing when it is none.
std::optional<double> parse_date(std::string_view text, DateOrder order);

/// Is it one, whichever way round?
bool is_date(std::string_view text);

/// The order that all but one in a hundred of the texts (or all) fit, and whether the other one fits as well;
/// nothing when they are no dates. `texts`: each with how often it occurs.
struct FoundDates {
  DateOrder order = DateOrder::month_first;
  bool either = false;
};
std::optional<FoundDates> find_dates(std::span<const std::pair<std::string, int64_t>> texts);

/// Days since 1970-01-01 of a whole number that is written as a date is, 20241231, from 1900 to 2100; nothing
/// when it is none.
std::optional<double> date_of_digits(double number);

/// "2024-12-31", with the time of day where it is not midnight; a fraction of a day is a time alone.
std::string date_text(double days);

}  // namespace millrace::data
