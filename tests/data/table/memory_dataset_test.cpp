#include <doctest/doctest.h>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "data/table/contents.h"
#include "data/table/read_columns.h"

namespace millrace::data {
namespace {

/// A data set of a program, of one column and row.
class OwnDataset final : public Dataset {
 public:
  OwnDataset(ColumnKind kind, Value value) : Dataset("own"), value_(std::move(value)) {
    columns_ = {{"x", kind}};
  }
  int64_t count() const override { return 1; }
  Value read(int64_t /*index*/, size_t /*column*/) const override { return value_; }

 private:
  Value value_;
};

std::vector<ColumnValues> columns_in(ColumnKind kind, Value value) {
  const size_t column = 0;
  return read_columns(OwnDataset(kind, std::move(value)), 0, 1, {&column, 1});
}

}  // namespace

TEST_CASE("rows in memory are a data set") {
  const std::vector<Column> columns = {{"text", ColumnKind::text}, {"label", ColumnKind::integer}};
  const std::shared_ptr<const Dataset> set = memory_dataset(
      "rows", columns,
      {{std::string("a"), int64_t{3}}, {std::string("b"), {}}, {std::string("c"), int64_t{5}}});
  CHECK(set->count() == 3);
  CHECK(set->columns() == columns);
  CHECK(std::get<std::string>(set->read(1, set->column("text"))) == "b");
  CHECK(!set->has(1, 1));
  CHECK(set->name(2) == "rows#2");
  CHECK_THROWS_WITH_AS(memory_dataset("rows", columns, {{std::string("a")}}),
                       "rows#0: 1 values for 2 columns", InputError);

  CHECK_THROWS_WITH_AS(memory_dataset("rows", columns, {{std::string("a"), 3.0}}),
                       "rows#0: the column 'label' is of kind integer, and its value is of type double",
                       InputError);
  const Pixels pixels{1, 1, 1, Bytes(std::vector<uint8_t>(1))};
  CHECK(memory_dataset("p", {{"picture", ColumnKind::picture}}, {{Bytes()}, {pixels}, {Value()}})->count() ==
        3);
  CHECK_THROWS_AS(memory_dataset("p", {{"sound", ColumnKind::audio}}, {{pixels}}), InputError);

  CHECK(std::get<std::string>(select(set, {2, 0})->read(0, 0)) == "c");
  CHECK_THROWS_WITH_AS(select(set, {2, 3}), "rows: there is no sample 3, only 3", InputError);
  CHECK(slice(set, 1, 2)->count() == 2);
  CHECK_THROWS_AS(slice(set, 2, 2), InputError);
  CHECK_THROWS_WITH_AS(slice(set, 2, INT64_MAX), doctest::Contains("samples from 2 on, only 3"), InputError);
  CHECK_THROWS_AS(slice(nullptr, 0, 1), InputError);
  CHECK_THROWS_AS(select(nullptr, {0}), InputError);
  CHECK_THROWS_AS(where(nullptr, "label > 3"), InputError);
  CHECK(std::get<std::string>(where(set, "label > 3")->read(0, 0)) == "c");
  CHECK_THROWS_AS(where(set, "label > 9"), InputError);
  CHECK_THROWS_AS(where(set, "label >"), InputError);
}

TEST_CASE("numbers and texts that are not of their column's kind are refused, not taken for others") {
  CHECK(columns_in(ColumnKind::real, 0.5)[0].reals == std::vector<double>{0.5});
  CHECK(!columns_in(ColumnKind::text, {})[0].has(0));
  for (const auto& [kind, value] : std::vector<std::pair<ColumnKind, Value>>{{ColumnKind::real, int64_t{1}},
                                                                             {ColumnKind::integer, 0.5},
                                                                             {ColumnKind::integer, "1"},
                                                                             {ColumnKind::text, int64_t{1}}})
    CHECK_THROWS_WITH_AS(columns_in(kind, value), doctest::Contains("own#0: the column 'x' is of kind"),
                         InputError);
}

TEST_CASE("pixels are as many as their picture has") {
  const auto refused = [](Pixels pixels, const std::string& why) {
    CHECK_THROWS_WITH_AS(memory_dataset("m", {{"x", ColumnKind::picture}}, {{pixels}}),
                         doctest::Contains(why.c_str()), InputError);
    CHECK_FALSE(stored_picture(pixels).fault().empty());
  };
  const Bytes bytes(std::vector<uint8_t>(192));
  CHECK(memory_dataset("m", {{"x", ColumnKind::picture}}, {{Pixels{8, 8, 3, bytes}}, {bytes}})->count() == 2);
  refused({8, 8, 2, bytes}, "m#0: the column 'x': 8 × 8 pixels of 2 channels have 128 bytes, not 192");
  refused({8, 9, 3, bytes}, "have 216 bytes, not 192");
  refused({-8, 8, -3, bytes}, "-8 × 8 pixels of -3 channels are none");
  refused({8, 8, 0, Bytes()}, "8 × 8 pixels of 0 channels are none");
  refused({65536, 65536, 1, Bytes()}, "have 4294967296 bytes, not 0");
}

}  // namespace millrace::data
