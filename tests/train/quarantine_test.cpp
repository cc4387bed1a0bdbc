#include "train/quarantine.h"

#include <doctest/doctest.h>

#include "base/file.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::train;
using namespace millrace::testing;

TEST_CASE("a limit below 1 is a share that lets a few pass, from 1 on a number, 0 none") {
  CHECK(!too_many_bad({100, 8}, 0.01));
  CHECK(too_many_bad({100, 9}, 0.01));
  CHECK(!too_many_bad({1000, 10}, 0.01));
  CHECK(too_many_bad({1000, 11}, 0.01));
  CHECK(!too_many_bad({10, 3}, 3));
  CHECK(too_many_bad({1000000, 4}, 3));
  CHECK(!too_many_bad({10, 0}, 0));
  CHECK(too_many_bad({1000, 1}, 0));
}

TEST_CASE("the list of bad samples has each once, after a kill in the middle of a line too") {
  TempFolder folder;
  const auto path = folder / "bad_samples.jsonl";
  {
    BadList list(path);
    CHECK(!std::filesystem::exists(path));
    list.add("train", {{3, "c.jpg", "truncated \"here\""}, {7, "h.jpg", "empty"}});
    list.add("test", {{3, "t.jpg", "empty"}});
    list.add("train", {{3, "c.jpg", "truncated"}, {8, "i.jpg", "empty"}});
  }
  const std::string whole = read_text(path);
  CHECK(whole ==
        "{\"set\": \"train\", \"index\": 3, \"name\": \"c.jpg\", \"why\": \"truncated \\\"here\\\"\"}\n"
        "{\"set\": \"train\", \"index\": 7, \"name\": \"h.jpg\", \"why\": \"empty\"}\n"
        "{\"set\": \"test\", \"index\": 3, \"name\": \"t.jpg\", \"why\": \"empty\"}\n"
        "{\"set\": \"train\", \"index\": 8, \"name\": \"i.jpg\", \"why\": \"empty\"}\n");
  write_file(path, whole.substr(0, whole.size() - 20));
  BadList list(path);
  list.add("train", {{3, "c.jpg", "truncated"}, {8, "i.jpg", "empty"}});
  CHECK(read_text(path) == whole);
  write_file(path,
             "[1]\nno json\n{\"set\": 1}\n{\"set\": \"train\", \"index\": 1e99}\n"
             "{\"index\": 1}\n{\"set\": \"train\"}\n{}\n{\"set\": \"test\", \"index\": 2}\n");
  CHECK_NOTHROW(BadList{path});
  CHECK(read_text(path) == "{\"set\": \"test\", \"index\": 2}\n");
}
