#include "data/formats/text_sniff.h"

#include <doctest/doctest.h>
#include <string>

using namespace millrace::data;

namespace {

std::string kind_of(std::string_view text, bool lines = false, bool whole = true) {
  const char* const found = text_format(text, whole, lines);
  return found ? found : "none";
}

}  // namespace

TEST_CASE("delimited rows are known without a name") {
  for (const char* text :
       {"a,b\n1,2\n3,4\n", "a;b\n1;2\n", "a\tb\nx\ty\n",
        "\xef\xbb\xbf"
        "a|b\n1|2\n",
        "1,2,3\n", "1,2,3", "city,country\nParis,France\nRome,Italy\n",
        "39, State-gov, 77516\n50, Private, 83311\n", "name,text\nx,\"a, b\nc\"\ny,\"d\"\n",
        "a,b\r\n1,2\r\n\r\n", "size\n1\n2\n", "a,b\n,\n1,2\n", "sep=;\r\na;b\r\n1;2\r\n",
        "# of 2024\na,b\n1,2\n", "text\tlabel\nhe said \"hi\tham\n"})
    CHECK_MESSAGE(kind_of(text) == "csv", text);
  CHECK(kind_of("a,b\n1,2\n3,4,", false, false) == "csv");  // what the head cuts off is no row
}

TEST_CASE("blanks delimit numbers, and nothing else") {
  for (const char* text : {"Weight Waist Pulse\n191 36 50\n189 37 52\n", "59 2 32.1\n48 1 21.6\n",
                           "  1  0.5\n 10 -0.5 \n", "a b\n1 NA\n2 3\n"})
    CHECK_MESSAGE(kind_of(text, true) == "csv", text);
  for (const char* text :
       {"one two\nthree four\n", "1 2\n3\n4 5 6\n", "the 5\nhas 6\n", "1 2 3\n", "a 2\n3 4\n"})
    CHECK_MESSAGE(kind_of(text, true) == "text", text);
}

TEST_CASE("prose, JSON lines and what no one writes are no rows") {
  for (const char* text :
       {"Hello, world\nGood day, moon\n", "to be or not to be\nthat is the question\n", "one, two\nthree\n",
        "hello\n", "hello, you", "I came, I saw, I won\nand left\n"}) {
    CHECK_MESSAGE(kind_of(text) == "none", text);
    CHECK_MESSAGE(kind_of(text, true) == "text", text);
  }
  CHECK(kind_of("{\"a\": 1, \"b\": 2}\n{\"a\": 3, \"b\": 4}\n") == "jsonl");
  CHECK(kind_of("{ \"a\": 1}") == "jsonl");
  CHECK(kind_of("{braces}, {of}\n{prose}, {here}\n", true) == "text");
  CHECK(kind_of(std::string_view("a,b\0c,d\n", 8), true) == "none");
  CHECK(kind_of("", true) == "none");
  CHECK(kind_of("# a heading", true) == "text");
  CHECK(kind_of("\x89PNG\r\n\x1a\n", true) == "none");
}

TEST_CASE("a text whose lines all have as many tabs is a table") {
  CHECK(is_delimited_by_tabs("a\tb\n1\t2\n", true));
  CHECK(is_delimited_by_tabs("ham\tsee you, then\r\n\r\nspam\tWIN a prize\r\n", true));
  CHECK(is_delimited_by_tabs("1\t2\t3\n4\t5\t6\n7\t", false));  // the last goes on
  CHECK_FALSE(is_delimited_by_tabs("1\t2\t3\n4\t5\t6\n7\t", true));
  CHECK_FALSE(is_delimited_by_tabs("a\tb\n1\t2\t3\n", true));
  CHECK_FALSE(is_delimited_by_tabs("one line\tof a text\n", true));
  CHECK_FALSE(is_delimited_by_tabs("to be\nor not\n", true));
  CHECK_FALSE(is_delimited_by_tabs("", true));
}
