#include "base/word_settings.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

using namespace millrace;

TEST_CASE("a text that is usually something may be missing, and a file's name has spaces") {
  const std::vector<Setting> settings = {
      {"KIND", "a word", std::string("plain")},
      {.name = "FILE", .doc = "a name", .usual = std::string(), .path = true}};
  CHECK(usage_of("write", settings) == "write [KIND] FILE");
  CHECK(parse_words("line", "write fine my own file", settings).text("FILE") == "my own file");
  const Settings usual = parse_words("line", "write", {settings[0]});
  CHECK(!usual.given("KIND"));
  CHECK(usual.text("KIND") == "plain");
  CHECK_THROWS_WITH_AS(parse_words("line", "write fine", settings),
                       "line \"write fine\": FILE is missing; write it as write [KIND] FILE", InputError);
}
