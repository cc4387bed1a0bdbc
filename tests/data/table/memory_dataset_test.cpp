#include <doctest/doctest.h>

#include <millrace/dataset.h>
#include <millrace/error.h>

namespace millrace::data {

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

  CHECK(std::get<std::string>(select(set, {2, 0})->read(0, 0)) == "c");
  CHECK_THROWS_WITH_AS(select(set, {2, 3}), "rows: there is no sample 3, only 3", InputError);
  CHECK(slice(set, 1, 2)->count() == 2);
  CHECK_THROWS_AS(slice(set, 2, 2), InputError);
  CHECK(std::get<std::string>(where(set, "label > 3")->read(0, 0)) == "c");
  CHECK_THROWS_AS(where(set, "label > 9"), InputError);
  CHECK_THROWS_AS(where(set, "label >"), InputError);
}

}  // namespace millrace::data
