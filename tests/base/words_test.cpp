#include "base/words.h"

#include <doctest/doctest.h>

using namespace millrace;

TEST_CASE("words are listed as people list them") {
  const std::vector<std::string> words = {"one", "two", "three"};
  CHECK(listed({words.data(), 0}).empty());
  CHECK(listed({words.data(), 1}) == "one");
  CHECK(listed({words.data(), 2}) == "one and two");
  CHECK(listed(words, "or") == "one, two or three");
}

TEST_CASE("words of a text are runs of letters and digits") {
  CHECK(words_in("Don't PANIC: 42 Äpfel!") == std::vector<std::string>{"don", "t", "panic", "42", "Äpfel"});
  CHECK(words_in(" ... ").empty());
}
