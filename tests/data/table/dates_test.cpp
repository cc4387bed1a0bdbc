#include "data/table/dates.h"

#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

using namespace millrace::data;

TEST_CASE("dates as programs write them are read the quick way as the others are") {
  for (const char* text : {"2024-12-31",
                           "0001-01-01",
                           "9999-12-31",
                           "2023-02-29",
                           "2024-02-29",
                           "2024-13-01",
                           "2024-00-10",
                           "2024-10-00",
                           "2024-12-31 23:59:59",
                           "2024-12-31T00:00:01Z",
                           "2024-12-31 12:30:00.5",
                           "2024-12-31 12:30:00.123456789Z",
                           "2024-12-31 12:30:00.1234567890",
                           "2024-12-31 24:00:00",
                           "2024-12-31 23:60:00",
                           "2024-12-31 23:59:60",
                           "2024-12-31 23:59",
                           "2024-12-31 12:30:00.",
                           "2024-12-31 12:30:00.5x",
                           "2024-12-31 12:30:00+02:00",
                           "2024-12-31Z",
                           "2024-12-3a",
                           "20a4-12-31",
                           "2024-12-31 ",
                           "2024-12-31 1 :30:00",
                           "2024-12-31 12:30:00Zx"}) {
    CAPTURE(text);
    // A blank before it keeps it from the quick way.
    for (const DateOrder order : {DateOrder::day_first, DateOrder::month_first})
      CHECK(parse_date(text, order) == parse_date(std::string(" ") + text, order));
  }
}

TEST_CASE("dates as people and programs write them are the days that Python's datetime counts") {
  const auto day = [](const char* text, DateOrder order = DateOrder::month_first) {
    const auto found = parse_date(text, order);
    return found ? *found : -1e9;
  };
  // (date(2024, 12, 31) - date(1970, 1, 1)).days == 20088
  for (const char* text :
       {"2024-12-31", "2024/12/31", "31.12.2024", "12/31/2024", "12/31/24", "31 Dec 2024", "31-Dec-24",
        "Dec 31, 2024", "December 31, 2024", "2024-12-31T00:00:00Z", "2024-12-31 00:00", " 2024-12-31 "}) {
    CAPTURE(text);
    CHECK(day(text) == 20088);
  }
  CHECK(day("31/12/2024", DateOrder::day_first) == 20088);
  CHECK(day("01/02/1970", DateOrder::day_first) == 31);
  CHECK(day("01/02/1970") == 1);
  CHECK(day("1969-12-31") == -1);
  CHECK(day("2000-02-29") == 11016);
  CHECK(day("2024-12-31 18:00") == 20088.75);
  CHECK(day("2024-12-31T18:00:00.000+02:00") == doctest::Approx(20088 + 16 / 24.0));
  CHECK(day("2024-12-31 18:00:00-0500") == doctest::Approx(20088 + 23 / 24.0));
  CHECK(day("12/31/2024 1:30 PM") == doctest::Approx(20088 + 13.5 / 24));
  CHECK(day("12/31/2024 12:00 AM") == 20088);
  for (const char* text : {"2024-12", "2024/12", "Dec 2024", "december 2024"}) CHECK(day(text) == 20058);
  CHECK(day("2024-12-31 18:00 EST") == doctest::Approx(20088 + 23 / 24.0));
  CHECK(day("2024-12-31 18:00:00 CET") == doctest::Approx(20088 + 17 / 24.0));
  CHECK(day("14:06") == doctest::Approx(14.1 / 24));
  CHECK(day("00:00") == 0);
  CHECK(day("2:06:00 pm") == doctest::Approx(14.1 / 24));
  CHECK(date_of_digits(20241231) == 20088);
  CHECK(date_of_digits(20000229) == 11016);
  for (const double number : {20241301.0, 20230229.0, 20241231.5, 2024.0, 18991231.0, 1e300, -20241231.0})
    CHECK_FALSE(date_of_digits(number));
  CHECK(date_text(14.1 / 24) == "14:06:00");
  for (const char* text : {"2024-13", "2024.12", "24-12", "2010-2011", "25:00", "14:60", "14:05 x", "14",
                           "2024-12-31 18:00 XYZ"})
    CHECK_FALSE(parse_date(text, DateOrder::month_first));
  for (const char* text : {"", "1", "2024", "2024-13-01", "2023-02-29", "31/12/2024", "10-20", "1.5", "a b c",
                           "2024-12-31 25:00", "2024-12-31 10", "May", "5 apples 2024", "2024-12-31 18:00 x",
                           "1-2-3-4", "192.168.10.1", "999999999999-1-1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_date(text, DateOrder::month_first));
  }
  CHECK(date_text(20088) == "2024-12-31");
  CHECK(date_text(20088.75) == "2024-12-31 18:00:00");
  CHECK(date_text(-1) == "1969-12-31");
}

TEST_CASE("the order of day and month is the one that fits all, and doubt is told") {
  using List = std::vector<std::pair<std::string, int64_t>>;
  const auto order = [](const List& list) { return find_dates(list); };
  CHECK(order({{"01/02/2024", 5}, {"13/02/2024", 1}})->order == DateOrder::day_first);
  CHECK(order({{"01/02/2024", 5}, {"02/13/2024", 1}})->order == DateOrder::month_first);
  CHECK(order({{"01/02/2024", 5}})->either);
  CHECK_FALSE(order({{"2024-01-02", 5}})->either);
  CHECK_FALSE(order({{"2024-01-02", 5}, {"soon", 1}}));
  CHECK(order({{"2024-01-02", 500}, {"soon", 1}}));
  CHECK_FALSE(order({{"a", 5}}));
  CHECK_FALSE(order({}));
}
