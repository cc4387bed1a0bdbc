// Conditions on streams.
#include <doctest/doctest.h>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "base/format.h"
#include "data/formats/open_dataset.h"
#include "data/formats/streams/stream.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "support/pictures.h"
#include "support/streams.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

TEST_CASE("a condition chooses the samples of a stream that it chooses of the indexed form") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(40, {4}) + end_mark);
  const auto chosen = [&](const std::string& condition) {
    const auto stream = select(open_stream(path), condition);
    std::vector<int64_t> numbers;
    StreamRecord record;
    while (stream->next(record)) numbers.push_back(record.at.number);
    return numbers;
  };
  // As of the indexed form.
  const std::shared_ptr<const Dataset> dataset = open_dataset(path);
  for (const std::string condition :
       {"label = 1", "cls in (0, 2) and width = 8", "__key__ like '*7'", "label > 0 or __key__ = '00003'",
        "not (label = 2)", "height < 9 and not label in (1)"}) {
    CAPTURE(condition);
    CHECK(chosen(condition) == matching(*dataset, Query::parse(condition)));
  }
  CHECK(refusal([&] { chosen("label = 7"); }).find("no sample matches the condition label = 7, of 40") !=
        std::string::npos);
  CHECK(refusal([&] { chosen("lable = 1"); }).find("did you mean 'cls'") != std::string::npos);
  CHECK(refusal([&] { chosen("label = 'x'"); }).find("holds numbers; this is a text") != std::string::npos);
  CHECK(refusal([&] { chosen("label ="); }) != "");
}

TEST_CASE("what a record of a stream lacks is missing, and what cannot be read is kept to be counted") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.jsonl").string();
  put_file(
      path,
      "{\"n\": 1, \"t\": \"x\"}\n{\"n\": 2}\n{\"n\": \"no number\"}\n{\"n\": 4.5, \"t\": \"y\"}\n{broken\n");
  const auto chosen = [&](const std::string& condition) {
    const auto stream = select(open_stream(path), condition);
    std::vector<int64_t> numbers;
    StreamRecord record;
    while (stream->next(record)) numbers.push_back(record.at.number);
    return numbers;
  };
  CHECK(chosen("n > 1") == std::vector<int64_t>{1, 3, 4});
  CHECK(chosen("t = 'x' or n = 2") == std::vector<int64_t>{0, 1, 4});
  CHECK(chosen("not t = 'x'") == std::vector<int64_t>{3, 4});
  CHECK(chosen("n not in (1, 2)") == std::vector<int64_t>{3, 4});
  CHECK(refusal([&] { chosen("t = 'z'"); }).find("no sample matches") != std::string::npos);
}
