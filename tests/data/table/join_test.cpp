#include "data/table/join.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/open_dataset.h"
#include "data/table/contents.h"
#include "data/table/labels.h"
#include "data/table/read_columns.h"
#include "data/table/select.h"
#include "support/rows_dataset.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using testing::RowsDataset;

namespace {

using Names = std::vector<std::string>;

Bytes bytes(const std::string& text) { return Bytes(std::vector<uint8_t>(text.begin(), text.end())); }

std::string content(const Dataset& set, int64_t index) {
  return std::string(std::get<Bytes>(Contents(set, ColumnKind::picture).read(index)).text());
}

/// "3 as a real", "9 as a text".
std::string shown(const Value& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{} as an integer", *whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{} as a real", *real);
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text + " as a text" : "missing";
}

}  // namespace

TEST_CASE("classes are numbers: texts in order of the alphabet, whole numbers as they are") {
  const auto texts = std::make_shared<RowsDataset>(
      "t", std::vector<Column>{{"x", ColumnKind::real}, {"class", ColumnKind::text}},
      std::vector<std::vector<Value>>{{1.0, "dog"}, {2.0, "ant"}, {3.0, "dog"}});
  REQUIRE(find_label(*texts) == 1);
  CHECK(!Labels(*texts).there());
  CHECK(Labels(*texts)[0] == -1);
  const auto set = numbered(texts, 1);
  const Labels labels(*set);
  REQUIRE(labels.there());
  CHECK(labels.names() == Names{"ant", "dog"});
  CHECK(labels[0] == 1);
  CHECK(labels[1] == 0);
  CHECK(set->columns()[1] == Column{"class", ColumnKind::integer});
  CHECK(numbers_of(*set, "x") == std::vector<double>{1, 2, 3});
  // Those of the whole stay when samples are chosen.
  const auto one = select(set, std::vector<int64_t>{1});
  CHECK(Labels(*one).names() == Names{"ant", "dog"});
  CHECK(Labels(*one)[0] == 0);

  const std::vector<Column> number = {{"n", ColumnKind::integer}};
  const auto whole =
      std::make_shared<RowsDataset>("n", number, std::vector<std::vector<Value>>{{int64_t{3}}, {int64_t{1}}});
  CHECK(find_label(*whole) == 0);  // the only one of whole numbers
  CHECK(Labels(*numbered(whole, 0)).names() == Names{"0", "1", "2", "3"});
  const auto named = std::make_shared<RowsDataset>(
      "n", number, std::vector<std::vector<Value>>{{int64_t{0}}, {int64_t{2}}}, Names{"a", "b"});
  CHECK_THROWS_WITH_AS(numbered(named, 0), doctest::Contains("names only 2 classes"), InputError);
  for (const Value& bad : {Value(int64_t{-1}), Value(), Value(int64_t{1} << 40)})
    CHECK_THROWS_AS(
        numbered(std::make_shared<RowsDataset>("n", number, std::vector<std::vector<Value>>{{bad}}), 0),
        InputError);
}

TEST_CASE("data sets of other columns are joined by their names, their classes by the names of classes") {
  const auto first = std::make_shared<RowsDataset>(
      "1.tar",
      std::vector<Column>{{"jpg", ColumnKind::picture}, {"cls", ColumnKind::text}, {"w", ColumnKind::real}},
      std::vector<std::vector<Value>>{{bytes("a"), "10", 0.5}, {bytes("b"), "9", 1.5}});
  const auto second = std::make_shared<RowsDataset>(
      "2.rec",
      std::vector<Column>{
          {"w", ColumnKind::real}, {"label", ColumnKind::text}, {"image", ColumnKind::picture}},
      std::vector<std::vector<Value>>{{2.5, "100", bytes("c")}});
  const auto labelled_both =
      join({{"one", labelled(first, ColumnKind::picture)}, {"two", labelled(second, ColumnKind::picture)}});
  const Dataset& both = *labelled_both;
  REQUIRE(both.count() == 3);
  CHECK(both.path() == "one, two");
  CHECK(both.name(2) == "two: 2.rec#0");
  const Labels labels(both);
  CHECK(labels.names() == Names{"9", "10", "100"});
  CHECK(labels[0] == 1);
  CHECK(labels[1] == 0);
  CHECK(labels[2] == 2);
  for (int64_t i = 0; i < 3; ++i) CHECK(content(both, i) == std::string(1, "abc"[i]));
  CHECK(numbers_of(both, "w") == std::vector<double>{0.5, 1.5, 2.5});
  CHECK(!both.has(2, both.column("jpg")));
  // What has no numbers yet has no classes together.
  CHECK(!join({{"one", first}, {"two", second}})->class_column());
}

TEST_CASE("numbers that are whole in one file, or texts in another, are one column") {
  const TempFolder folder;
  write_file(folder / "whole.csv", "x,code,y\n3,7,a\n,8,b\n5,9,a\n");
  write_file(folder / "others.csv", "code,x,y\nB2,0.25,b\n1.5,4.5,a\n");
  const auto open = [&](const char* name) {
    return std::shared_ptr<const Dataset>(open_dataset((folder / name).string()));
  };
  for (const bool whole_first : {true, false}) {
    CAPTURE(whole_first);
    std::vector<std::pair<std::string, std::shared_ptr<const Dataset>>> sets = {{"a", open("whole.csv")},
                                                                                {"b", open("others.csv")}};
    if (!whole_first) std::swap(sets[0], sets[1]);
    const auto both = join(sets);
    REQUIRE(both->columns().size() == 3);
    const size_t x = both->column("x"), code = both->column("code");
    CHECK(both->columns()[x].kind == ColumnKind::real);
    CHECK(both->columns()[code].kind == ColumnKind::text);
    const int64_t a = whole_first ? 0 : 2, b = whole_first ? 3 : 0;
    CHECK(shown(both->read(a, x)) == "3 as a real");
    CHECK(shown(both->read(a + 1, x)) == "missing");
    CHECK(shown(both->read(b + 1, x)) == "4.5 as a real");
    CHECK(shown(both->read(a + 2, code)) == "9 as a text");
    CHECK(shown(both->read(b, code)) == "B2 as a text");
    CHECK(shown(both->read(b + 1, code)) == "1.5 as a text");
    // A run of rows gives the same as each by itself.
    for (const auto& columns : {std::vector<size_t>{x}, std::vector<size_t>{x, code}}) {
      const auto run = read_columns(*both, 0, 5, columns);
      for (size_t k = 0; k < columns.size(); ++k) {
        const auto values = std::make_shared<ColumnValues>(run[k]);
        for (int64_t i = 0; i < 5; ++i)
          CHECK(shown(value_at(values, static_cast<size_t>(i))) == shown(both->read(i, columns[k])));
      }
    }
  }
}
