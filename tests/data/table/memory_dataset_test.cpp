#include <doctest/doctest.h>

#include <millrace/dataset.h>
#include <millrace/error.h>

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
  const Pixels pixels{1, 1, 1, {}};
  CHECK(memory_dataset("p", {{"picture", ColumnKind::picture}}, {{Bytes()}, {pixels}, {Value()}})->count() ==
        3);
  CHECK_THROWS_AS(memory_dataset("p", {{"sound", ColumnKind::audio}}, {{pixels}}), InputError);

  CHECK(std::get<std::string>(select(set, {2, 0})->read(0, 0)) == "c");
  CHECK_THROWS_WITH_AS(select(set, {2, 3}), "rows: there is no sample 3, only 3", InputError);
  CHECK(slice(set, 1, 2)->count() == 2);
  CHECK_THROWS_AS(slice(set, 2, 2), InputError);
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

}  // namespace millrace::data
