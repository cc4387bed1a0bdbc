#include "data/table/select.h"

#include <doctest/doctest.h>
#include <numeric>
#include <set>

#include "base/file.h"
#include "data/table/join.h"
#include "data/table/labels.h"
#include "data/table/read_columns.h"
#include "support/datasets.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/refusal.h"
#include "support/rows_dataset.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;

namespace {

/// What read_run() gives is what read() gives, of all samples and of some in the middle, and of columns that
/// are asked for twice; in memory that was used before.
void check_runs(const Dataset& dataset) {
  std::vector<size_t> columns(dataset.columns().size());
  std::iota(columns.rbegin(), columns.rend(), size_t{0});
  columns.insert(columns.end(), {columns.back(), columns.front()});
  const int64_t count = dataset.count();
  std::vector<ColumnValues> values;
  for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, count}, {count / 3, count / 2}}) {
    REQUIRE(dataset.read_run(first, rows, columns, values));
    testing::Rows got(static_cast<size_t>(rows)), wanted = got;
    for (size_t k = 0; k < columns.size(); ++k) {
      CHECK(values[k].kind == dataset.columns()[columns[k]].kind);
      const auto shared = std::make_shared<const ColumnValues>(values[k]);
      for (int64_t i = 0; i < rows; ++i) {
        got[static_cast<size_t>(i)].push_back(value_at(shared, static_cast<size_t>(i)));
        wanted[static_cast<size_t>(i)].push_back(dataset.read(first + i, columns[k]));
      }
    }
    CHECK(testing::difference(got, wanted) == "");
  }
}

/// Rows of which each third lacks its number.
std::string table(const char* names, int rows) {
  std::string text = std::string(names) + "\n";
  for (int i = 0; i < rows; ++i)
    text += (i % 3 == 2 ? "" : std::to_string(i)) + ",t" + std::to_string(i % 7) + "," +
            std::to_string(i * 0.5 + 0.25) + "\n";
  return text;
}

/// Counts how often another sample is asked for than before.
class Counting final : public Dataset {
 public:
  Counting() : Dataset("counting") {
    columns_ = {{"a", ColumnKind::integer}, {"b", ColumnKind::real}, {"c", ColumnKind::text}};
  }
  int64_t count() const override { return 10; }
  Value read(int64_t index, size_t column) const override {
    changes += index != last;
    last = index;
    if (index == 4) return {};
    if (column == 0) return index;
    if (column == 1) return static_cast<double>(index) / 2;
    return "t" + std::to_string(index);
  }
  mutable int changes = 0;
  mutable int64_t last = -1;
};

}  // namespace

TEST_CASE("a sample of a source is spread over it and keeps its classes") {
  const testing::TempFolder folder;
  for (const char* name : {"cat", "dog", "owl"})
    for (int i = 0; i < 4; ++i)
      testing::put_file(folder / name / (std::to_string(i) + ".jpg"), testing::make_jpeg(4, 4, 1, 1));
  const std::shared_ptr<const Dataset> whole = testing::open_labelled(folder.path().string());
  const testing::LabelledPictures part(sample_of(whole, 6));
  CHECK(part.count() == 6);
  CHECK(part.classes() == Labels(*whole).names());
  CHECK(part.path() == whole->path());
  std::set<std::string> names;
  for (int64_t i = 0; i < 6; ++i) {
    names.insert(part.name(i));
    CHECK(part.label(i) == i / 2);
    CHECK(part.picture(i).bytes.size() > 0);
  }
  CHECK(names.size() == 6);
  CHECK(sample_of(whole, 12) == whole);
  CHECK(sample_of(whole, 100) == whole);
}

TEST_CASE("choices, joins and numbered classes of tables are read by runs, as the tables are") {
  const testing::TempFolder folder;
  write_file(folder / "a.csv", table("n,word,x", 3000));
  write_file(folder / "b.csv", table("x,word,n", 50));
  const std::shared_ptr<const Dataset> whole = open_dataset(folder / "a.csv"),
                                       other = open_dataset(folder / "b.csv");
  check_runs(*where(whole, "word = 't3'"));
  check_runs(*where(whole, "word != 't3'"));
  check_runs(*select(whole, {2999, 5, 5, 4, 1000, 999, 1020, 7, 0}));
  check_runs(*slice(select(whole, {2999, 5, 5, 4, 1000, 999, 1020, 7, 0}), 2, 6));
  check_runs(*join({{"a", whole}, {"b", other}}));
  check_runs(*numbered(whole, 1));
  check_runs(*select(numbered(whole, 1), {9, 8, 100}));
  check_runs(*join({{"a", numbered(whole, 1)}, {"b", numbered(select(other, {0, 1, 6, 3}), 1)}}));
}

TEST_CASE("numbers of classes that have names are asked for by these, too") {
  const testing::RowsDataset rows("rows", {{"label", ColumnKind::integer}},
                                  {{int64_t{1}}, {int64_t{0}}, {int64_t{2}}, {int64_t{1}}},
                                  {"ant", "bee", "cat"});
  const auto asked = [&](const char* condition) { return matching(rows, Query::parse(condition)); };
  CHECK(asked("label = 'bee'") == std::vector<int64_t>{0, 3});
  CHECK(asked("label in ('cat', 'ant')") == std::vector<int64_t>{1, 2});
  CHECK(asked("label = 1 or 'cat' = label") == std::vector<int64_t>{0, 2, 3});
  CHECK(testing::refusal([&] {
          (void)asked("label = 'caat'");
        }).find("there is no class 'caat'; did you mean 'cat'?") != std::string::npos);
}

TEST_CASE("what cannot be read by runs is read sample by sample") {
  const Counting counting;
  const std::vector<size_t> columns = {2, 0, 1};
  const auto values = read_columns(counting, 3, 4, columns);
  CHECK(counting.changes == 4);
  CHECK(values[0].contents[0] == "t3");
  CHECK(values[1].integers[3] == 6);
  CHECK(values[2].reals[2] == 2.5);
  for (const ColumnValues& each : values) CHECK((each.has(0) && !each.has(1) && each.has(2)));
}
