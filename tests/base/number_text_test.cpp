#include "base/number_text.h"

#include <doctest/doctest.h>

using namespace millrace;

TEST_CASE("measured numbers have the digits that say something, whatever their size") {
  CHECK(number_text(0.6931) == "0.6931");
  CHECK(number_text(0) == "0.0000");
  CHECK(number_text(-12.34567) == "-12.3457");
  CHECK(number_text(1.23456e-7) == "1.2346e-07");
  CHECK(number_text(0.000123456) == "0.00012346");
  CHECK(number_text(51234.5678) == "51234.57");
  CHECK(number_text(3e9) == "3000000000");
  CHECK(number_text(3.14159e20) == "3.1416e+20");
  CHECK(number_text(INFINITY) == "inf");
  CHECK(number_text(-NAN) == "-");
  CHECK(number_text(0.00003, 2) == "0.0000");
  CHECK(number_text(1.9e-7, 2e-7) == "1.9e-07");
  CHECK(number_text(2.9123456e9, 3e9) == "2912345600");
}
