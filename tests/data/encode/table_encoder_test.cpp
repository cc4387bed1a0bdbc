#include "data/encode/table_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <map>
#include <set>

#include <millrace/error.h>
#include <millrace/program.h>
#include <millrace/rewrite.h>

#include "base/file.h"
#include "base/format.h"
#include "base/murmur3.h"
#include "data/encode/table_graph.h"
#include "data/formats/open_dataset.h"
#include "support/datasets.h"
#include "support/pictures.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

#include "table_values.inc"

std::unique_ptr<Dataset> open_text(const TempFolder& folder, const std::string& name,
                                   const std::string& text) {
  write_file(folder / name, text);
  return open_dataset(folder / name);
}

TableOptions with_codes() {
  TableOptions options;
  options.leave_out = {"size", "class"};
  options.categories = {"code"};
  return options;
}

struct EncodedRows {
  Array dense, ids;  // f32 [rows, dense().size()], i64 [rows, categories().size()]
};

/// What a model is given of samples.
EncodedRows encode_rows(const TableEncoder& encoder, const Dataset& dataset, int64_t first = 0,
                        int64_t count = -1) {
  if (count < 0) count = dataset.count() - first;
  Array numbers(f64, {count, raw_numbers(encoder.dense())}),
      ids(i64, {count, static_cast<int64_t>(encoder.categories().size())});
  encoder.read_raw(dataset, first, count, numbers.as<double>().data(), ids.as<int64_t>().data());
  return {encode_numbers(Tensor(std::move(numbers)), encoder.dense()).to_array(), std::move(ids)};
}

void check(const EncodedRows& rows, const std::vector<double>& dense, const std::vector<int64_t>& ids) {
  REQUIRE(rows.dense.count() == static_cast<int64_t>(dense.size()));
  for (size_t i = 0; i < dense.size(); ++i)
    CHECK(std::abs(rows.dense.at(static_cast<int64_t>(i)) - dense[i]) < 1e-6 * (1 + std::abs(dense[i])));
  REQUIRE(rows.ids.count() == static_cast<int64_t>(ids.size()));
  for (size_t i = 0; i < ids.size(); ++i) CHECK(rows.ids.int_at(static_cast<int64_t>(i)) == ids[i]);
}

}  // namespace

TEST_CASE("columns are encoded as pandas and scikit-learn encode them, and as the saved encoder does") {
  const TempFolder folder;
  const auto train = open_text(folder, "train.csv", train_table),
             test = open_text(folder, "test.csv", test_table);
  const TableEncoder encoder = TableEncoder::learn(*train, with_codes());
  REQUIRE(encoder.dense().size() == 3);
  CHECK(encoder.dense()[0].column == "age");
  CHECK(encoder.dense()[1].flag);
  CHECK(encoder.categories()[0].column == "colour");
  CHECK(encoder.categories()[1].ids == 4);
  check(encode_rows(encoder, *train), train_dense, train_ids);
  check(encode_rows(encoder, *test), test_dense, test_ids);
  CHECK(std::count(test_ids.begin(), test_ids.end(), 0) > 0);  // pink, which training did not have
  const TableEncoder saved = TableEncoder::parse(encoder.json());
  CHECK(saved.json() == encoder.json());
  check(encode_rows(saved, *test), test_dense, test_ids);
  // By parts, and from another format that reads value by value.
  CHECK(encode_rows(encoder, *test, 3, 2).ids.int_at(0) == test_ids[6]);
  Rows rows = read_rows(*train);
  for (auto& row : rows)
    for (data::Value& value : row)
      if (std::holds_alternative<std::monostate>(value)) value = {};
  write_rows("parquet", folder / "train.parquet", train->columns(), rows);
  CHECK(TableEncoder::learn(*open_dataset(folder / "train.parquet"), with_codes()).json() == encoder.json());
}

TEST_CASE("what is learnt does not depend on threads") {
  const TempFolder folder;
  std::string text = "x,y,t\n";
  for (int64_t i = 0; i < 100'000; ++i)
    text += std::to_string(i * 7919 % 1013) + "." + std::to_string(i % 97) + "," +
            (i % 11 ? std::to_string(i % 501) : "") + ",t" + std::to_string(i * i % 977) + "\n";
  const auto table = open_text(folder, "t.csv", text);
  TableOptions one, many;
  one.threads = 1;
  many.threads = 4;
  const TableEncoder a = TableEncoder::learn(*table, one), b = TableEncoder::learn(*table, many);
  CHECK(a.json() == b.json());
}

TEST_CASE("deviations are those of all rows, also where parts of a table lie apart") {
  const TempFolder folder;
  std::string text = "x\n";
  for (int i = 0; i < 40'000; ++i) text += i < 20'000 ? "1\n" : "11\n";
  const TableEncoder encoder = TableEncoder::learn(*open_text(folder, "t.csv", text), {});
  CHECK(encoder.dense()[0].mean == doctest::Approx(6));
  CHECK(encoder.dense()[0].deviation == doctest::Approx(5));
}

TEST_CASE("rare categories, hashes, missing numbers") {
  const TempFolder folder;
  const auto table = open_text(folder, "t.csv", "a,n\nx,1\nx,2\ny,3\nz,\ny,4\nx,5\n,\n");
  TableOptions options;
  options.least_count = 2;
  const TableEncoder rare = TableEncoder::learn(*table, options);
  CHECK(rare.categories()[0].vocabulary == std::vector<std::string>{"x", "y"});
  const double two = std::sqrt(2.0);  // the deviation; the mean is 3
  check(encode_rows(rare, *table), {-two, 0, -two / 2, 0, 0, 0, 0, 1, two / 2, 0, two, 0, 0, 1},
        {1, 1, 2, 0, 2, 1, 0});
  options.least_count = 1;
  options.hash_ids = 100;
  const EncodedRows hashed = encode_rows(TableEncoder::learn(*table, options), *table);
  CHECK(hashed.ids.int_at(0) == 1 + murmur3_32("x") % 99);
  CHECK(hashed.ids.int_at(1) == hashed.ids.int_at(0));
  CHECK(hashed.ids.int_at(6) == 0);
  CHECK(encode_rows(TableEncoder::parse(TableEncoder::learn(*table, options).json()), *table)
            .ids.identical(hashed.ids));
}

TEST_CASE("tables that cannot be encoded are refused with the reason") {
  const TempFolder folder;
  const auto train = open_text(folder, "train.csv", train_table);
  const auto learn = [&](const std::function<void(TableOptions&)>& change, const Dataset& of) {
    return refusal([&] {
      TableOptions options = with_codes();
      change(options);
      (void)TableEncoder::learn(of, options);
    });
  };
  CHECK(learn([](auto& o) { o.leave_out = {"clas"}; }, *train).find("did you mean 'class'") !=
        std::string::npos);
  CHECK(learn([](auto& o) { o.hash_ids = 1; }, *train).find("2 ids or more") != std::string::npos);
  const TableEncoder encoder = TableEncoder::learn(*train, with_codes());
  const auto encode = [&](const char* table) {
    return refusal([&] { (void)encode_rows(encoder, *open_text(folder, "x.csv", table)); });
  };
  CHECK(encode("age,wage,colour,size\n1,2,red,small\n").find("no column 'code'") != std::string::npos);
  CHECK(encode("age,wage,colour,size,code,class\nold,2,red,small,3,no\n")
            .find("in training the column holds numbers") != std::string::npos);
  std::string json = encoder.json();
  CHECK(refusal([&] { (void)TableEncoder::parse(json.substr(0, json.size() / 2)); }).find("damaged") !=
        std::string::npos);
  json.replace(json.find("\"ids\": 4"), 8, "\"ids\": 9");
  CHECK(refusal([&] { (void)TableEncoder::parse(json); }).find("do not go together") != std::string::npos);
}

TEST_CASE("the graph encodes numbers as f64 arithmetic rounded once does, to the same bits on ref and cpu") {
  const TempFolder folder;
  std::string text = "a,b,c,d\n";
  for (int i = 0; i < 50; ++i)
    text +=
        fmt::format("{},{},{},{}\n", i % 7 == 3 ? std::string() : fmt::format("{}", 0.1 * i * i - 3),
                    i == 9 ? std::string() : std::to_string(i * 1000003), i % 5 == 0 ? "1e300" : "2.5", 7);
  const auto table = open_text(folder, "t.csv", text);
  const TableEncoder encoder = TableEncoder::learn(*table, {});
  REQUIRE(encoder.dense().size() == 7);  // a, b and c with flags
  REQUIRE(raw_numbers(encoder.dense()) == 4);
  Array raw(f64, {50, 4}), judge(f32, {50, 7});
  encoder.read_raw(*table, 0, 50, raw.as<double>().data(), nullptr);
  for (size_t i = 0; i < 50; ++i)
    for (size_t c = 0, at = 0; c < 7; ++c, ++at) {
      const TableEncoder::Dense& column = encoder.dense()[c];
      const double value = raw.as<double>()[4 * i + at];
      const bool there = std::abs(value) <= 3.4028234663852886e38;
      judge.as<float>()[7 * i + c] =
          there ? static_cast<float>((value - column.mean) * (1 / column.deviation)) : 0.0f;
      if (c + 1 < 7 && encoder.dense()[c + 1].flag) judge.as<float>()[7 * i + ++c] = there ? 0.0f : 1.0f;
    }
  const Type types[] = {raw.type()};
  const Graph graph = capture(
      [&](std::span<const Tensor> in) { return std::vector<Tensor>{encode_numbers(in[0], encoder.dense())}; },
      types);
  for (const char* target : {"ref", "cpu"}) {
    Program program = Program::compile(graph, {.target = target});
    std::copy_n(raw.as<double>().begin(), 200, program.input(0).as<double>().begin());
    program.run();
    CHECK(program.output(0).identical(judge));
  }
}

TEST_CASE(
    "a saved encoder knows texts in Latin-1 from each other, and numbers that no float holds are missing") {
  const TempFolder folder;
  const auto train =
      open_text(folder, "train.csv",
                "gr\xf6\xdf"
                "e,colour,class\n1e308,gr\xfcn,h\xe9\n1,gr\xfbn,h\xea\n-1e308,gr\xfcn,h\xe9\n3,,h\xea\n");
  TableOptions options;
  options.leave_out = {"class"};
  const TableEncoder learnt = TableEncoder::learn(*train, options),
                     saved = TableEncoder::parse(learnt.json());
  for (const TableEncoder* encoder : {&learnt, &saved})
    check(encode_rows(*encoder, *train), {0, 1, -1, 0, 0, 1, 1, 0}, {1, 3, 1, 2});
}

TEST_CASE("Adult: categories by count, missing values") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no real data (set MILLRACE_DATA)");
    return;
  }
  const auto train = open_dataset(data + "/tabular/adult-train.csv");
  TableOptions options;
  options.leave_out = {"c14"};
  const TableEncoder encoder = TableEncoder::learn(*train, options);
  REQUIRE(encoder.dense().size() == 6);  // no number is missing
  CHECK(encoder.dense()[0].mean == doctest::Approx(38.58164675532078));
  CHECK(encoder.dense()[0].deviation == doctest::Approx(13.640223092304275));
  REQUIRE(encoder.categories().size() == 8);
  const auto& work = encoder.categories()[0];
  // As adult.names and pandas' value_counts say: 22,696 private, 2,541 self-employed, 2,093 local, 1,836
  // unknown …
  CHECK(work.vocabulary == std::vector<std::string>{"Private", "Self-emp-not-inc", "Local-gov", "",
                                                    "State-gov", "Self-emp-inc", "Federal-gov", "Without-pay",
                                                    "Never-worked"});
  CHECK(encoder.categories()[7].ids == 43);  // 41 countries, unknown, and other
  const EncodedRows again = encode_rows(encoder, *train);
  int64_t unknown = 0;
  for (int64_t i = 0; i < 32'561; ++i) unknown += again.ids.int_at(8 * i) == 4;
  CHECK(unknown == 1'836);
}

TEST_CASE("what columns are is decided by what they hold, and by those who know better") {
  const TempFolder folder;
  std::string csv = "id,name,cabin,town,member,day,price,empty\n";
  for (int i = 0; i < 300; ++i)
    csv += fmt::format("{},Name {},{},{},{},2024-01-{:02} {:02}:00,{},\n", i + 1, i,
                       i % 4 ? "" : fmt::format("C{}", i),
                       i % 3    ? "Bern"
                       : i == 0 ? "Rome"
                                : "Oslo",
                       i % 2 ? "yes" : "No", 1 + i % 28, i % 24, i * 7 % 290);
  const auto table = open_text(folder, "t.csv", csv);
  const TableEncoder encoder = TableEncoder::learn(*table, usual_table(*table));
  std::map<std::string, TableColumn> of;
  for (const TableColumn& each : encoder.decisions()) of[each.column] = each;
  CHECK(of["id"].taken_as == "left out");
  CHECK(of["id"].why == "it counts the rows");
  CHECK(of["name"].taken_as == "left out");
  CHECK(of["cabin"].taken_as == "there or not");
  CHECK(of["cabin"].missing == 225);
  CHECK(of["town"].taken_as == "category");
  CHECK(of["town"].values == 2);
  CHECK(of["town"].rare == 1);  // Rome, which shares the id of towns that are yet to come
  CHECK(of["member"].taken_as == "yes or no");
  CHECK(of["day"].taken_as == "date");
  CHECK(of["price"].taken_as == "number");
  CHECK(of["empty"].taken_as == "left out");

  // Days, two waves of the week and two of the day: 28 days say nothing of the year.
  CHECK(raw_numbers(encoder.dense()) == 3);
  CHECK(encoder.dense().size() == 7);
  const EncodedRows rows = encode_rows(encoder, *table, 0, 30);
  const auto column = [&](const std::string& name, double period, bool cosine) {
    for (size_t d = 0; d < encoder.dense().size(); ++d)
      if (encoder.dense()[d].column == name && encoder.dense()[d].period == period &&
          encoder.dense()[d].cosine == cosine)
        return static_cast<int64_t>(d);
    return int64_t{-1};
  };
  REQUIRE(column("day", 7, true) >= 0);
  for (int64_t i = 0; i < 30; ++i) {
    // 2024-01-01 is day 19723.
    const double days = 19723 + static_cast<double>(i % 28) + static_cast<double>(i % 24) / 24;
    const auto at = [&](int64_t c) { return rows.dense.to_doubles()[static_cast<size_t>(i * 7 + c)]; };
    const auto rounded = [](double x) { return std::floor(x * 4096 + 0.5) / 4096; };
    CHECK(at(column("day", 7, false)) == rounded(std::sin(2 * M_PI * days / 7)));
    CHECK(at(column("day", 7, true)) == rounded(std::cos(2 * M_PI * days / 7)));
    CHECK(at(column("day", 1, false)) == rounded(std::sin(2 * M_PI * days)));
  }
  CHECK(rows.ids.shape()[1] == Dim(2));
  CHECK(rows.ids.int_at(1) == 0);  // Rome

  const TableEncoder saved = TableEncoder::parse(encoder.json());
  CHECK(saved.json() == encoder.json());
  CHECK(encode_rows(saved, *table).dense.identical(encode_rows(encoder, *table).dense));
  CHECK(encode_rows(saved, *table).ids.identical(encode_rows(encoder, *table).ids));

  TableOptions said = usual_table(*table);
  said.numbers = {"id"};
  said.categories = {"name", "member"};
  said.dates = {"price"};  // microseconds
  const TableEncoder other = TableEncoder::learn(*table, said);
  of.clear();
  for (const TableColumn& each : other.decisions()) of[each.column] = each;
  CHECK(of["id"].taken_as == "number");
  CHECK(of["name"].taken_as == "category");
  CHECK(of["name"].rare == 300);
  CHECK(of["member"].taken_as == "category");
  CHECK(of["price"].taken_as == "date");

  // The only column stays, whatever it says; that it holds dates is seen all the same.
  TableOptions rest = usual_table(*table);
  rest.leave_out = {"name", "cabin", "town", "member", "day", "price", "empty"};
  CHECK(TableEncoder::learn(*table, rest).decisions().at(0).taken_as == "number");
  rest.leave_out = {"id", "name", "cabin", "town", "member", "price", "empty"};
  CHECK(TableEncoder::learn(*table, rest).decisions().at(0).taken_as == "date");
}

TEST_CASE("months, times of day and digits are dates, also in the file that is predicted") {
  const TempFolder folder;
  std::string csv = "month,time,zone,digits,micro\n";
  for (int i = 0; i < 240; ++i)
    csv += fmt::format("{}-{:02},{:02}:{:02},2024-01-{:02} 10:00 CET,2024{:02}{:02},{}\n", 2000 + i / 12,
                       1 + i % 12, i % 24, i % 60, 1 + i % 28, 1 + i % 12, 1 + i % 28,
                       86400000000 * (20000 + i % 9));
  const auto table = open_text(folder, "t.csv", csv);
  TableOptions options = usual_table(*table);
  std::map<std::string, TableColumn> of;
  const TableEncoder found = TableEncoder::learn(*table, options);
  for (const TableColumn& each : found.decisions()) of[each.column] = each;
  CHECK(of["month"].taken_as == "date");
  CHECK(of["time"].taken_as == "date");
  CHECK(of["time"].why == "times of day");
  CHECK(of["zone"].taken_as == "date");
  CHECK(of["digits"].taken_as == "number");
  CHECK(of["digits"].why.find("input.dates") != std::string::npos);
  CHECK(of["micro"].why.empty());

  options.dates = {"digits", "micro"};
  const TableEncoder encoder = TableEncoder::parse(TableEncoder::learn(*table, options).json());
  std::vector<std::string> waves;
  for (const TableDense& dense : encoder.dense()) CHECK(!dense.day_first);
  for (const TableDense& dense : encoder.dense())
    if (dense.period > 0 && !dense.cosine)
      waves.push_back(fmt::format("{} {:g}", dense.column, dense.period));
  CHECK(waves == std::vector<std::string>{"month 365.243", "month 7", "time 1", "zone 7", "zone 1",
                                          "digits 365.243", "digits 7", "micro 7"});
  // As `predict` opens it: these columns were no texts.
  CHECK(encoder.text_columns() == std::vector<std::string>{"month", "time", "zone"});
  write_file(
      folder / "few.csv",
      std::string(
          "month,time,zone,digits,micro\n2024-12,18:00,2024-12-31 10:00 EST,20241231,1728000000000000\n"
          "2024-12,18:00,2024-12-31 10:00 EST,20241331,1728000000000000\n"));
  OpenOptions written;
  written.texts = encoder.text_columns();
  const auto few = open_dataset(folder / "few.csv", written);
  double numbers[10];
  encoder.read_raw(*few, 0, 1, numbers, nullptr);
  CHECK(numbers[0] == 20058);
  CHECK(numbers[1] == 0.75);
  CHECK(numbers[2] == doctest::Approx(20088.625));
  CHECK(numbers[3] == 20088);
  CHECK(numbers[4] == 20000);
  CHECK_THROWS_AS(encoder.read_raw(*few, 1, 1, numbers, nullptr), InputError);
  encoder.read_raw(*few, 1, 1, numbers, nullptr, TableEncoder::Bad::missing);
  CHECK(std::isnan(numbers[3]));
  REQUIRE(encoder.bad_cells(*few).size() == 1);
  CHECK(encoder.bad_cells(*few)[0].text == "20241331");
}

TEST_CASE("small tables are not learnt by heart either: row numbers and names are left out") {
  const TempFolder folder;
  const auto decided = [&](const std::string& csv) {
    const auto table = open_text(folder, "small.csv", csv);
    std::map<std::string, std::string> of;
    const TableEncoder encoder = TableEncoder::learn(*table, usual_table(*table));
    for (const TableColumn& each : encoder.decisions()) of[each.column] = each.taken_as;
    return of;
  };
  const auto rows = [&](int from, int count, int step) {
    std::string csv = "id,name,town,size,age\n";
    for (int i = from; i < count; i += step)
      csv += fmt::format("{},Name {},{},{},{}\n", i + 1, i, i % 3 ? "Bern" : "Oslo", i * 7 % 90, 20 + i);
    return csv;
  };
  // The numbers of rows of which every third is tested on count rows, too.
  for (const auto& [from, count, left] : {std::tuple{0, 71, 71}, {0, 20, 20}, {1, 99, 98}}) {
    CAPTURE(left);
    auto of = decided(rows(from, count, 1));
    CHECK(of["id"] == "left out");
    CHECK(of["name"] == "left out");
    CHECK(of["town"] == "category");
    CHECK(of["size"] == "number");
    CHECK(of["age"] == "number");  // it begins at 20
  }
  auto of = decided(rows(0, 12, 1));
  CHECK(of["id"] == "left out");
  CHECK(of["name"] == "category");
  of = decided(rows(0, 9, 1));
  CHECK(of["id"] == "number");

  // The whole table and what a division leaves of it are decided on alike.
  std::string all = "id,name,x\n", part = all;
  for (int i = 0; i < 111; ++i) {
    const std::string row = fmt::format("{},Car {},{}\n", i + 1, i, i * 37 % 111);
    all += row;
    if (i % 5 != 3) part += row;
  }
  CHECK(decided(all) == decided(part));
  CHECK(decided(part)["name"] == "left out");
  CHECK(decided(part)["id"] == "left out");
}

TEST_CASE("rows to predict are read as training read them, whatever a few rows look like") {
  const TempFolder folder;
  std::string csv = "price;day;code\n";
  for (int i = 0; i < 200; ++i) csv += fmt::format("{},5;{}.01.2024;{}\n", i, 1 + i % 28, i % 3);
  const auto table = open_text(folder, "t.csv", csv);
  TableOptions options = usual_table(*table);
  options.categories = {"code"};
  const TableEncoder encoder = TableEncoder::learn(*table, options);
  CHECK(encoder.dense()[0].decimal_comma);
  write_file(folder / "few.csv",
             std::string("price;day;code\n1.234;02.01.2024;01\nnone;;\nabc;02.01.2024;1\n"));
  OpenOptions written;
  written.texts = encoder.columns();
  const auto few = open_dataset(folder / "few.csv", written);
  double numbers[4];
  int64_t ids[2];
  encoder.read_raw(*few, 0, 2, numbers, ids);
  CHECK(numbers[0] == 1234);
  CHECK(numbers[1] == 19724);
  CHECK(std::isnan(numbers[2]));
  CHECK(std::isnan(numbers[3]));
  CHECK(encoder.categories()[0].vocabulary.at(static_cast<size_t>(ids[0]) - 1) == "1");
  try {
    encoder.read_raw(*few, 2, 1, numbers, ids);
    FAIL("'abc' is no price");
  } catch (const InputError& error) {
    CHECK(std::string(error.what())
              .find("few.csv, line 4: its price is 'abc', and in training the column holds numbers") !=
          std::string::npos);
  }

  // What a model is measured on or learns from keeps the row.
  encoder.read_raw(*few, 2, 1, numbers, ids, TableEncoder::Bad::missing);
  CHECK(std::isnan(numbers[0]));
  CHECK(numbers[1] == 19724);
  const std::vector<TableBadCells> bad = encoder.bad_cells(*few);
  REQUIRE(bad.size() == 1);
  CHECK(bad[0].column == "price");
  CHECK(bad[0].kind == "numbers");
  CHECK(bad[0].bad == 1);
  CHECK(bad[0].values == 2);  // "none" is missing
  CHECK(bad[0].text == "abc");
  CHECK(bad[0].sample == 2);
  CHECK(encoder.bad_cells(*table).empty());
}

TEST_CASE("codes that were learnt as they are written are found where they are numbers") {
  const TempFolder folder;
  std::string csv = "code;x\n";
  for (int i = 0; i < 30; ++i) csv += fmt::format("{};{}\n", i % 3 == 0 ? "" : i % 3 == 1 ? "1.0" : "07", i);
  TableOptions options;
  options.categories = {"code"};
  OpenOptions written;
  written.texts = {"code"};
  write_file(folder / "t.csv", csv);
  const TableEncoder encoder = TableEncoder::learn(*open_dataset(folder / "t.csv", written), options);
  const auto name_of = [&](double code) {
    const auto set =
        memory_dataset("m", {{"code", ColumnKind::real}, {"x", ColumnKind::real}}, {{code, 1.0}});
    double number = 0;
    int64_t id = 0;
    encoder.read_raw(*set, 0, 1, &number, &id);
    return id == 0 ? std::string() : encoder.categories()[0].vocabulary.at(static_cast<size_t>(id) - 1);
  };
  CHECK(name_of(1.0) == "1.0");
  CHECK(name_of(7.0) == "07");
  CHECK(name_of(2.0).empty());
  // A text is what is written.
  write_file(folder / "few.csv", std::string("code;x\n7;1\n07;2\n1;3\n01;4\n1.0;5\n"));
  const auto few = open_dataset(folder / "few.csv", written);
  double numbers[5];
  int64_t ids[5];
  encoder.read_raw(*few, 0, 5, numbers, ids);
  CHECK(ids[0] == 0);
  CHECK(ids[1] != 0);
  CHECK(ids[2] == ids[4]);
  CHECK(ids[3] == 0);
  // JSON lines give numbers to those who ask for texts.
  write_file(folder / "few.jsonl", std::string("{\"code\": 1, \"x\": 1}\n{\"code\": 1.0, \"x\": 2}\n"));
  encoder.read_raw(*open_dataset(folder / "few.jsonl", written), 0, 2, numbers, ids);
  CHECK(ids[0] == ids[4]);
  CHECK(ids[1] == ids[4]);
}

TEST_CASE("numbers are also told by where they stand among ranges of equally many rows") {
  const TempFolder folder;
  std::string text = "amount,flag,none,way\n";
  for (int i = 0; i < 101; ++i) text += fmt::format("{},{},{},x{}\n", i < 51 ? 0 : i, i % 2, i, i % 3);
  const auto table = open_text(folder, "x.csv", text);
  TableOptions options;
  options.leave_out = {"none"};
  options.bins = 4;
  const TableEncoder encoder = TableEncoder::learn(*table, options);
  // Quantiles 0, 0, 0, 75, 100: two ranges are left of the amounts, and none of two values.
  std::vector<std::string> columns;
  for (const auto& dense : encoder.dense())
    columns.push_back(fmt::format("{} {:g} {:g}", dense.column, dense.low, dense.high));
  CHECK(columns == std::vector<std::string>{"amount 0 0", "amount 0 75", "amount 75 100", "flag 0 0"});

  const auto rows = open_text(
      folder, "y.csv", "amount,flag,none,way\n-5,0,1,x\n15,1,1,x\n75,0,1,x\n95,0,1,x\n1e30,0,1,x\n,0,1,x\n");
  const Array dense = encode_rows(encoder, *rows).dense;
  const double shares[6][2] = {{0, 0}, {0.2, 0}, {1, 0}, {1, 0.8}, {1, 1}, {0, 0}};
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t k = 0; k < 2; ++k) {
      CAPTURE(row);
      CHECK(dense.at(row * 4 + 1 + k) == doctest::Approx(shares[row][k]).epsilon(1e-6));
    }
  const TableEncoder again = TableEncoder::parse(encoder.json());
  CHECK(again.dense() == encoder.dense());
  CHECK(encode_rows(again, *rows).dense.to_doubles() == dense.to_doubles());

  std::string damaged = encoder.json();
  const size_t at = damaged.find("\"high\": 75");
  REQUIRE(at != std::string::npos);
  damaged.replace(at, 10, "\"high\": -1");
  CHECK_THROWS_WITH_AS(TableEncoder::parse(damaged), doctest::Contains("damaged"), InputError);
}

TEST_CASE("ranges are those of all rows, where more are looked at than are kept") {
  const TempFolder folder;
  std::string text = "a,b\n";
  for (int i = 0; i < 250'000; ++i) text += fmt::format("{}.5,{}\n", (i * 7919LL) % 250'000, i % 5);
  const auto table = open_text(folder, "x.csv", text);
  TableOptions options;
  options.bins = 4;
  std::vector<double> highs;
  const TableEncoder encoder = TableEncoder::learn(*table, options);
  for (const auto& dense : encoder.dense())
    if (dense.column == "a" && dense.ranged()) highs.push_back(dense.high);
  REQUIRE(highs.size() == 4);
  for (size_t k = 0; k < 4; ++k)
    CHECK(highs[k] == doctest::Approx(62'500 * static_cast<double>(k + 1)).epsilon(0.01));
}
