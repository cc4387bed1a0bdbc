#include "base/format.h"

#include <doctest/doctest.h>
#include <string>

using namespace millrace;

TEST_CASE("a byte 0 in what a message quotes does not end the message") {
  const std::string value("n\0ein\0", 6);
  CHECK_THROWS_WITH_AS(fail<InputError>("'{}' is no class", value), "'n\\0ein\\0' is no class", InputError);
}
