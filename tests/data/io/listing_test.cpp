#include "data/io/listing.h"

#include <doctest/doctest.h>
#include <string>

using namespace millrace::data;

TEST_CASE("names are percent-encoded as RFC 3986 has it, and decoded again") {
  const std::string plain = "azAZ09-_.~";
  CHECK(percent_encoded(plain, "") == plain);
  CHECK(percent_encoded("a b/ü%", "") == "a%20b%2F%C3%BC%25");
  CHECK(percent_encoded("a b/ü%", "/") == "a%20b/%C3%BC%25");
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  CHECK(percent_decoded(percent_encoded(all, "")) == all);
  CHECK(percent_decoded("a+b%2bc") == "a b+c");
  // What is no code of a character stays.
  for (const char* odd : {"%", "%4", "%zz", "%4z"}) CHECK(percent_decoded(odd) == odd);
  CHECK(percent_decoded("%41") == "A");
}
