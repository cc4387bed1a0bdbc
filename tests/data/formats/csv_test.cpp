#include <doctest/doctest.h>

#include <millrace/dataset.h>
#include <millrace/error.h>

#include "base/file.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "support/datasets.h"
#include "support/refusal.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

std::unique_ptr<Dataset> open_text(const std::string& name, const std::string& text,
                                   OpenOptions options = {}) {
  const TempFolder folder;
  write_file(folder / name, text);
  return open_dataset(folder / name, options);
}

Rows rows_of(const std::string& text, OpenOptions options = {}) {
  return read_rows(*open_text("x.csv", text, options));
}

std::string names(const Dataset& dataset) {
  std::string list;
  for (const Column& column : dataset.columns()) list += column.name + ":" + kind_name(column.kind) + " ";
  return list;
}

Value text(const std::string& content) { return content; }

/// read_run() of these samples, as rows.
Rows run_of(const Dataset& dataset, int64_t first, int64_t count) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < dataset.columns().size(); ++c) columns.push_back(c);
  std::vector<ColumnValues> values;
  REQUIRE(dataset.read_run(first, count, columns, values));
  Rows rows(static_cast<size_t>(count));
  for (const ColumnValues& each : values) {
    const auto shared = std::make_shared<const ColumnValues>(each);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].push_back(value_at(shared, i));
  }
  return rows;
}

}  // namespace

TEST_CASE("CSV: the corners of RFC 4180") {
  const auto check = [](const std::string& csv, const Rows& wanted) {
    CAPTURE(csv);
    const auto dataset = open_text("x.csv", csv, {.header = false});
    CHECK(difference(read_rows(*dataset), wanted) == "");
    CHECK(difference(run_of(*dataset, 0, dataset->count()), wanted) == "");
  };
  check("a,b\nc,d", {{text("a"), text("b")}, {text("c"), text("d")}});
  check("a,b\r\nc,d\r\n", {{text("a"), text("b")}, {text("c"), text("d")}});
  check("\"a,b\",c\n", {{text("a,b"), text("c")}});
  check("\"a\nb\",\"c\r\nd\"\n", {{text("a\nb"), text("c\r\nd")}});
  check("\"a\"\"b\",\"\"\"\"\n", {{text("a\"b"), text("\"")}});
  check("\"\"\"\",\"\"\"a\",\"a\"\"\"\n", {{text("\""), text("\"a"), text("a\"")}});
  // An empty text and a text in quotes that would mean missing are texts.
  check("\"\",x\n\"NA\",y\n", {{text(""), text("x")}, {text("NA"), text("y")}});
  check("a,,NA\n?,null,b\n", {{text("a"), Value(), Value()}, {Value(), Value(), text("b")}});
  // A quote within a text is one; what follows a closing quote belongs to the text.
  check("5\" pipe,b\n\"x\" y,z\n", {{text("5\" pipe"), text("b")}, {text("x y"), text("z")}});
  check(" a , \"b \" \n", {{text("a"), text("b ")}});
  check("a,b\n\n\r\nc,d\n\n", {{text("a"), text("b")}, {text("c"), text("d")}});
  check(
      "\xef\xbb\xbf"
      "a,b\nc,d\n",
      {{text("a"), text("b")}, {text("c"), text("d")}});
  check("a\tb\nc\td\n", {{text("a"), text("b")}, {text("c"), text("d")}});
  // Where quotes do not close at the end of a value, they are letters in tab-separated texts.
  check("a\t\"b\nc\t\"d\" e\n", {{text("a"), text("\"b")}, {text("c"), text("\"d\" e")}});
  check("a\t\"b\tc\"\nc\td\n", {{text("a"), text("b\tc")}, {text("c"), text("d")}});
  check("a;1,5\nb;2,5\n", {{text("a"), 1.5}, {text("b"), 2.5}});
  check("a|b\nc|d\n", {{text("a"), text("b")}, {text("c"), text("d")}});
}

TEST_CASE("TSV: quotes that open a value and close rows later, or nowhere, are letters") {
  const auto check = [](const std::string& tsv, const Rows& wanted) {
    CAPTURE(tsv.substr(0, 100));
    const auto dataset = open_text("x.tsv", tsv, {.header = false});
    CHECK(difference(read_rows(*dataset), wanted) == "");
  };
  check("a\t\"b\nc\td\"\ne\tf\n",
        {{text("a"), text("\"b")}, {text("c"), text("d\"")}, {text("e"), text("f")}});
  check("a\tb\nc\t\"d\ne\tf\n", {{text("a"), text("b")}, {text("c"), text("\"d")}, {text("e"), text("f")}});
  // One of two lines is none of two rows.
  check("a\t\"b\nc\"\ne\tf\n", {{text("a"), text("b\nc")}, {text("e"), text("f")}});
  // Rows that quotes alone hold together.
  check("a\t\"b\nc\td\"\ne\t\"f\ng\"\n", {{text("a"), text("b\nc\td")}, {text("e"), text("f\ng")}});
  // Code in quotes, of lines that begin with tabs; all values in quotes; one that only they hold together.
  check("a\t\"if b:\n\tc\"\ne\tf\n", {{text("a"), text("if b:\n\tc")}, {text("e"), text("f")}});
  check("\"a\"\t\"b\nc\td\"\n\"e\"\t\"f\"\n", {{text("a"), text("b\nc\td")}, {text("e"), text("f")}});
  check("a\t\"b\nc\td\"\ne\t\"f\tg\"\n", {{text("a"), text("b\nc\td")}, {text("e"), text("f\tg")}});
  // Far behind what is looked at first, and across chunks.
  std::string tsv;
  Rows wanted;
  for (int i = 0; i < 60'000; ++i) {
    const std::string value =
        (i == 30'000 ? "\"" : "") + std::string("text of a row") + (i == 55'000 ? "\"" : "");
    tsv += "x\t" + value + " " + std::to_string(i % 10) + (i == 55'000 ? "\"" : "") + "\n";
    wanted.push_back({text("x"), text(value + " " + std::to_string(i % 10) + (i == 55'000 ? "\"" : ""))});
  }
  check(tsv, wanted);
  const auto noted = [](const char* tsv_text) {
    return open_text("x.tsv", tsv_text, {.header = false})->notes();
  };
  REQUIRE(noted("a\t\"b\nc\td\"\ne\tf\n").size() == 1);
  CHECK(noted("a\t\"b\nc\td\"\ne\tf\n")[0].find("are taken as letters") != std::string::npos);
  CHECK(noted("a\t\"b\nc\td\"\ne\t\"f\tg\"\n")[0].find(
            "a value in quotes has several lines that look like rows") != std::string::npos);
}

TEST_CASE("CSV: kinds of columns are decided by all their values") {
  const auto dataset =
      open_text("x.csv", "i,r,t,m,q\n1,2,3,,\"7\"\n-9223372036854775808,1e3,x,?,\"\"\n+5,-.5,4,NA,8\n");
  CHECK(names(*dataset) == "i:integer r:real t:text m:text q:integer ");
  CHECK(difference(read_rows(*dataset), {{int64_t{1}, 2.0, text("3"), Value(), int64_t{7}},
                                         {INT64_MIN, 1000.0, text("x"), Value(), Value()},
                                         {int64_t{5}, -0.5, text("4"), Value(), int64_t{8}}}) == "");
  // Whole numbers beyond 64 bits are reals; 19 digits are looked at closely.
  CHECK(names(*open_text("x.csv", "a,b\n9223372036854775807,9223372036854775808\n1,1\n")) ==
        "a:integer b:real ");
  CHECK(names(*open_text("x.csv", "a,b,c,d\n1 2,1e,0x10,--1\n1,1,1,1\n", {.header = true})) ==
        "a:text b:text c:text d:text ");
}

TEST_CASE("CSV: names are found, made up and told") {
  CHECK(names(*open_text("x.csv", "1,a\n2,b\n")) == "c0:integer c1:text ");
  CHECK(names(*open_text("x.csv", "n,t\n2,b\n")) == "n:integer t:text ");
  CHECK(names(*open_text("x.csv", "a,b\nc,d\n")) == "c0:text c1:text ");
  CHECK(names(*open_text("x.csv", "a,b\nc,d\n", {.header = true})) == "a:text b:text ");
  CHECK(names(*open_text("x.csv", "n,t\n2,b\n", {.header = false})) == "c0:text c1:text ");
  const auto repeated = open_text("x.csv", "id,size,size,kind\n1,2,3,x\n2,3,4,y\n");
  CHECK(names(*repeated) == "id:integer size:integer size_2:integer kind:text ");
  REQUIRE(repeated->notes().size() == 1);
  CHECK(repeated->notes()[0].find("come again; the later ones are called size_2") != std::string::npos);
  // Texts alone say nothing, where two of a row are the same.
  CHECK(names(*open_text("x.csv", "red,red\nblue,red\ngreen,blue\n")) == "c0:text c1:text ");
  CHECK(names(*open_text("x.csv", "a,a,\n1,2,3\n", {.header = true})) == "a:integer a_2:integer c2:integer ");
  CHECK(names(*open_text("x.csv", ",a\n0,2\n")) == "c0:integer a:integer ");
  // Texts only: a name stands where it never comes again over few values that do.
  std::string labels = "Label\tSMS\n";
  for (int i = 0; i < 50; ++i) labels += (i % 3 ? "ham\ttext " : "spam\ttext ") + std::to_string(i) + "\n";
  CHECK(names(*open_text("x.tsv", labels)) == "Label:text SMS:text ");
}

TEST_CASE("CSV: rows across the edges of chunks, with newlines in quotes") {
  // Rows of every length, so that edges fall everywhere, also into quotes that look like rows of their own.
  std::string csv = "id,a,b\n";
  Rows wanted;
  for (int64_t i = 0; csv.size() < 5'000'000; ++i) {
    std::string content(static_cast<size_t>(i * 7919 % 3001), 'x');
    for (size_t k = 0; k < content.size(); k += 37) content.replace(k, 1, k % 2 ? "\n" : "\"");
    for (size_t k = 20; k + 9 < content.size(); k += 500) content.replace(k, 8, "\n1,\"a,b\n");
    std::string quoted;
    for (const char c : content) quoted.append(c == '"' ? 2 : 1, c);
    csv += std::to_string(i) + ",\"" + quoted + "\"," + std::to_string(i % 10) + "\n";
    wanted.push_back({i, content, i % 10});
  }
  const auto dataset = open_text("x.csv", csv);
  REQUIRE(dataset->count() == static_cast<int64_t>(wanted.size()));
  CHECK(difference(read_rows(*dataset), wanted) == "");
  const auto count = dataset->count();
  CHECK(difference(run_of(*dataset, 0, count), wanted) == "");
  CHECK(difference(run_of(*dataset, count / 2 - 5, 11),
                   Rows(wanted.begin() + count / 2 - 5, wanted.begin() + count / 2 + 6)) == "");
  // A single text of some megabytes.
  const std::string long_text(3'000'000, '\n');
  const Rows one = rows_of("1,\"" + long_text + "\"\n2,x\n");
  CHECK(difference(one, {{int64_t{1}, long_text}, {int64_t{2}, text("x")}}) == "");
}

TEST_CASE("CSV: what is no table is refused with its place") {
  const auto refused = [](const std::string& csv) { return refusal([&] { (void)rows_of(csv); }); };
  CHECK(refused("a,b\n1,2\n3,4,5\n6,7\n").find("line 3 has 3 values, the first row has 2") !=
        std::string::npos);
  CHECK(refused("a,b\n1,2\n3,\"4\n6,7\n").find("the quote in the row in line 3 is never closed") !=
        std::string::npos);
  CHECK(refused("\"a\n").find("no whole row") != std::string::npos);
  CHECK(refused("\n\n").find("no whole row") != std::string::npos);
  CHECK(refused("\xff\xfe"
                "a")
            .find("UTF-16") != std::string::npos);
  CHECK(refusal([] { (void)open_text("r.toml", "[data]\ntrain = \"x.csv\"\n"); }).find("is TOML") !=
        std::string::npos);
  CHECK(refusal([] { (void)rows_of("a,b\n", {.header = true}); }).find("and no rows") != std::string::npos);
}

TEST_CASE("CSV: several files are one table") {
  const TempFolder folder;
  write_file(folder / "1.csv", "a,b\n1,x\n");
  write_file(folder / "2.csv", "a,b\n2.5,y\n");
  write_file(folder / "3.csv", "a,c\n2.5,y\n");
  const auto dataset = open_dataset(folder / "{1,2}.csv");
  CHECK(names(*dataset) == "a:real b:text ");
  CHECK(difference(read_rows(*dataset), {{1.0, text("x")}, {2.5, text("y")}}) == "");
  CHECK(dataset->extent(1)->file == 1);
  // Of texts alone nobody could say that the first are names; those of the file before are.
  write_file(folder / "4.csv", "a,b\nz,x\n");
  CHECK(open_dataset(folder / "{1,4}.csv")->count() == 2);
  CHECK(refusal([&] { (void)open_dataset(folder / "{1,3}.csv"); }).find("has the columns a, c") !=
        std::string::npos);
}

TEST_CASE("CSV comes back as it was written") {
  const std::vector<Column> columns = {{"a b", ColumnKind::text},
                                       {"n", ColumnKind::integer},
                                       {"r,\"", ColumnKind::real},
                                       {"j", ColumnKind::json}};
  Rows rows;
  for (const char* content :
       {"", " ", "NA", "?", "null", "a\"b", "\"", "a\nb", "a\r", ",", ";", "\t", "é", "x y"})
    rows.push_back({text(content), int64_t{-3}, 0.1, text("{\"k\": [1, 2]}")});
  rows.push_back({Value(), Value(), Value(), Value()});
  rows.push_back({text("-"), INT64_MAX, 1e-300, text("[]")});
  const TempFolder folder;
  for (const char* name : {"x.csv", "x.tsv"}) {
    write_rows("csv", folder / name, columns, rows);
    const auto dataset = open_dataset(folder / name, OpenOptions{.header = true});
    CHECK(names(*dataset) == "a b:text n:integer r,\":real j:text ");
    CHECK(difference(read_rows(*dataset), rows) == "");
  }
  CHECK(refusal([&] {
          (void)formats().at("csv").create(folder / "y.csv", {{"p", ColumnKind::picture}});
        }).find("'p' (picture)") != std::string::npos);
}

TEST_CASE("CSV: words for what is missing, and cells of numbers that are none") {
  std::string csv = "n,x\n";
  for (int i = 0; i < 200; ++i) csv += std::to_string(i) + "," + std::to_string(i) + ".5\n";
  const std::string words[] = {"NULL", "None", "N/A", "n/a",     "#N/A", "NaN",  "nan",    "-",
                               ".",    "?",    "",    "missing", "null", "-nan", "1.#IND", "-1.#QNAN"};
  for (const std::string& word : words) csv += word + ",\"" + word + "\"\n";
  const auto dataset = open_text("x.csv", csv + "#REF!,7\n");
  CHECK(names(*dataset) == "n:integer x:real ");
  const Rows rows = read_rows(*dataset);
  for (size_t i = 200; i < 200 + std::size(words); ++i) {
    CAPTURE(words[i - 200]);
    CHECK(std::holds_alternative<std::monostate>(rows[i][0]));
    CHECK(std::holds_alternative<std::monostate>(rows[i][1]));
  }
  CHECK(difference(run_of(*dataset, 0, dataset->count()), rows) == "");
  REQUIRE(dataset->notes().size() == 1);
  CHECK(dataset->notes()[0].find(
            "n: 1 of 201 cells is no number (the first: '#REF!' in line 218) and counts") !=
        std::string::npos);
  // More than one in a hundred: texts, said so.
  const auto texts = open_text("x.csv", csv + "#REF!,7\nabc,8\ndef,9\n");
  CHECK(names(*texts) == "n:text x:real ");
  CHECK(texts->notes().at(0).find("3 of 203 cells are no numbers") != std::string::npos);
  // Words of the user's own; in columns of texts, too.
  const auto own = open_text("x.csv", "n,t\n1,a\n-999,unknown\nnone yet,b\n",
                             {.missing = {"-999", "unknown", "none yet"}});
  CHECK(names(*own) == "n:integer t:text ");
  CHECK(difference(read_rows(*own), {{int64_t{1}, text("a")}, {Value(), Value()}, {Value(), text("b")}}) ==
        "");
}

TEST_CASE("CSV: numbers as people write them, where a column agrees on it") {
  const auto reals = [](const std::string& csv) {
    const auto dataset = open_text("x.csv", csv);
    std::vector<double> all;
    if (dataset->columns()[0].kind != ColumnKind::real) return all;
    for (const auto& row : read_rows(*dataset)) all.push_back(std::get<double>(row[0]));
    return all;
  };
  using List = std::vector<double>;
  CHECK(reals("a;b\n1,5;x\n-2,25;y\n1.234,5;z\n") == List{1.5, -2.25, 1234.5});
  // Nothing is grouped behind a zero: not 456.
  CHECK(reals("a;b\n1,5;x\n0.456;y\n2,5;z\n").empty());
  CHECK(reals("a,b\n\"0,125\",x\n\"1,5\",y\n\"2,250\",z\n") == List{.125, 1.5, 2.25});
  CHECK(reals("a;b\n1,5;x\n0,125;y\n-0,250;z\n") == List{1.5, .125, -.25});
  CHECK(reals("a,b\n\"1,234\",x\n\"12,345,678.9\",y\n17,z\n") == List{1234, 12345678.9, 17});
  CHECK(reals("a,b\n$5,x\n-$1.50,y\n$-2,z\n") == List{5, -1.5, -2});
  CHECK(reals("a,b\n5 \xe2\x82\xac,x\n1 234 \xe2\x82\xac,y\n7,z\n") == List{5, 1234, 7});
  CHECK(reals("a,b\n12 %,x\n3.5%,y\n0%,z\n") == List{12, 3.5, 0});
  CHECK(reals("a,b\n1'234.5,x\n2,y\n3,z\n") == List{1234.5, 2, 3});
  // What fits both ways goes by the delimiter: semicolons stand where commas are decimal.
  CHECK(reals("a;b\n1,234;x\n2,500;y\n") == List{1.234, 2.5});
  CHECK(reals("a\tb\n1,234\tx\n2,500\ty\n") == List{1234, 2500});
  // A single decimal comma decides for all: 1.234 is a thousand then.
  CHECK(reals("a;b\n1.234;x\n2,5;y\n") == List{1234, 2.5});
  // They do not agree: texts.
  CHECK(reals("a,b\n$5,x\n\xe2\x82\xac"
              "5,y\n")
            .empty());
  CHECK(reals("a,b\n12 %,x\n0.5,y\n").empty());
  CHECK(reals("a,b\n1-2,x\n12-3,y\n").empty());
  CHECK(reals("a,b\n\"1,23,4\",x\n\"2,3\",y\n").empty());
}

TEST_CASE("CSV: line ends of old Macs, Excel's line of the delimiter, a delimiter behind each line") {
  const Rows wanted = {{int64_t{1}, text("x")}, {int64_t{2}, text("y")}};
  CHECK(difference(rows_of("a,b\r1,x\r2,y\r"), wanted) == "");
  CHECK(difference(rows_of("a,b\r1,x\r2,y"), wanted) == "");
  CHECK(difference(rows_of("sep=;\r\na;b\r\n1;x\r\n2;y\r\n"), wanted) == "");
  CHECK(difference(rows_of("a,b,\n1,x,\n2,y,\n"),
                   {{int64_t{1}, text("x"), Value()}, {int64_t{2}, text("y"), Value()}}) == "");
  CHECK(difference(rows_of("# made by x\n# on Monday; or so\na,b\n1,x\n2,y\n"), wanted) == "");
  CHECK(names(*open_text("x.csv", "#id,b\n1,x\n2,y\n")) == "#id:integer b:text ");
  // Many of them: where chunks begin, rows do.
  std::string mac = "n,t\r";
  for (int i = 0; i < 300'000; ++i) mac += std::to_string(i) + ",\"a\rb\"\r";
  const auto dataset = open_text("x.csv", mac);
  REQUIRE(dataset->count() == 300'000);
  CHECK(std::get<int64_t>(dataset->read(299'999, 0)) == 299'999);
  CHECK(std::get<std::string>(dataset->read(150'000, 1)) == "a\rb");
}

TEST_CASE("CSV: a line of names may have numbers among them") {
  const auto years = open_text("x.csv", "Month,Day,1978,1979\nJanuary,1,,14.2\n,2,14.1,\n");
  CHECK(names(*years) == "Month:text Day:integer 1978:real 1979:real ");
  // Missing in the first row is no name.
  CHECK(names(*open_text("x.csv", "a,NA,3\nb,2,4\nc,3,5\n")) == "c0:text c1:integer c2:integer ");
}

TEST_CASE("CSV: names without rows are told from a row without names") {
  const auto refused = [](const std::string& csv, OpenOptions options = {}) {
    return testing::refusal([&] { (void)open_text("x.csv", csv, options); });
  };
  CHECK(refused("name,age,town\n").find("has names of columns (name, age, town) and no rows") !=
        std::string::npos);
  CHECK(refused("1,age,town\n") == "");
  CHECK(refused("name,age,town\n", {.header = false}) == "");
  CHECK(refused("name,age,town\n", {.texts = {"c0"}}) == "");
}

TEST_CASE("CSV: whole numbers with zeros in front are codes, and stay as they are written") {
  const std::string csv = "zip,x,day\n01234,1,2024-01-01\n20500,0.5,2024-01-02\n02139,-3,2024-01-03\n";
  const auto set = open_text("x.csv", csv);
  CHECK(names(*set) == "zip:text x:real day:text ");
  CHECK(std::get<std::string>(set->read(0, 0)) == "01234");
  REQUIRE(set->notes().size() == 1);
  CHECK(
      set->notes()[0].ends_with("zip: 2 of 3 numbers begin with 0, as codes do (007): its values are texts"));
  // Padding alone, quotes, and codes among numbers of another kind.
  CHECK(names(*open_text("x.csv", "a,b,c\n007,\"00\",01\n008,\"01\",2.5\n")) == "a:text b:text c:text ");
  // None of these are.
  CHECK(names(*open_text("x.csv", "a,b,c,d\n0,0.5,-05,00\n10,00.5,7,1\n", {.missing = {"00"}})) ==
        "a:integer b:real c:integer d:integer ");
}

TEST_CASE("CSV: years and other numbers are names of columns, too") {
  const auto first = [](const std::string& csv) { return names(*open_text("x.csv", csv)); };
  CHECK(
      first("\"Country Name\",\"Indicator Name\",\"1990\",\"2000\",\"2010\"\n\"Aruba\",\"GDP\",0.5,0.1,0.2\n"
            "\"Spain\",\"GDP\",0.5,,3\n") ==
      "Country Name:text Indicator Name:text 1990:real 2000:real 2010:real ");
  CHECK(first("country,1990,2000,2010,y\nB,0.5,0.2,0.5,u\nA,0.9,0.1,0.6,u\nA,7,0.7,0.7,v\n") ==
        "country:text 1990:real 2000:real 2010:real y:text ");
  CHECK(first("\"\",\"1940\",\"1945\"\n\"Food\",22.2,44.5\n\"Health\",10.5,15.5\n") ==
        "c0:text 1940:real 1945:real ");
  CHECK(first("\"1\",\"2\",\"10\"\n0.5,0.2,3\n0.1,0.2,4\n") == "1:real 2:real 10:integer ");
  // Rows: years above years, a word that comes again, one number, numbers that do not grow.
  CHECK(first("Ada,1815,1852\nAlan,1912,1954\nGrace,1906,1992\n").starts_with("c0:"));
  CHECK(first("a,1990,2000\nb,5,6\na,7,8\n").starts_with("c0:"));
  CHECK(first("a,1990,u\nb,5,v\nc,7,w\n").starts_with("c0:"));
  CHECK(first("a,2000,1990\nb,5,6\nc,7,8\n").starts_with("c0:"));
  CHECK(first("\"1\",\"2\"\n\"3\",\"4\"\n").starts_with("c0:"));
}

TEST_CASE("CSV: words that stand apart from the texts below them are names") {
  const auto names_of = [](const std::string& text) { return names(*open_text("x.csv", text)); };
  CHECK(names_of("outlook,wind,play\nsunny,weak,no\nsunny,strong,no\novercast,weak,yes\nrain,weak,yes\n"
                 "rain,strong,no\novercast,weak,yes\n") == "outlook:text wind:text play:text ");
  CHECK(names_of("id,text\na7,a fine day\nb3,no rain\n") == "id:text text:text ");
  CHECK(names_of("Question,Answer\nwho?,me\nwhen?,now\n") == "Question:text Answer:text ");
  // Rows like all others.
  CHECK(names_of(
            "sunny,weak,no\nsunny,strong,no\nrain,weak,yes\nrain,weak,yes\nsunny,weak,no\nrain,weak,no\n") ==
        "c0:text c1:text c2:text ");
  CHECK(names_of("time,temps\ndog,chien\ncat,chat\n") == "c0:text c1:text ");
  CHECK(names_of("image\ncat\ndog\n") == "c0:text ");
  CHECK(names_of("Ada,Lovelace\nAlan,Turing\nGrace,Hopper\n") == "c0:text c1:text ");
  CHECK(names_of("label,text\nlabel,message\ntext,label\n") == "c0:text c1:text ");
}

TEST_CASE("CSV: blanks between numbers, one or more, where nothing else delimits") {
  const auto check = [](const std::string& csv, const std::string& columns, const Rows& wanted) {
    CAPTURE(csv);
    const auto dataset = open_text("x.csv", csv);
    CHECK(names(*dataset) == columns);
    CHECK(difference(read_rows(*dataset), wanted) == "");
    CHECK(difference(run_of(*dataset, 0, dataset->count()), wanted) == "");
  };
  const Rows rows = {{int64_t{191}, 36.5}, {int64_t{-9}, 1e3}};
  check("Weight Waist\n191 36.5\n-9 1e3\n", "Weight:integer Waist:real ", rows);
  check("  Weight   Waist \r\n\r\n 191     36.5\r\n  -9      1e3 \r\n", "Weight:integer Waist:real ", rows);
  check("191 36.5\n-9 1e3", "c0:integer c1:real ", rows);
  check("a b\n1 NA\n2 3\n", "a:integer b:integer ", {{int64_t{1}, Value()}, {int64_t{2}, int64_t{3}}});
  std::string many;
  Rows all;
  for (int64_t i = 0; i < 3000; ++i) {
    many +=
        std::to_string(i) + std::string(static_cast<size_t>(1 + i % 70), ' ') + std::to_string(i * 7) + "\n";
    all.push_back({i, i * 7});
  }
  check(many, "c0:integer c1:integer ", all);
  // Texts, prose, and numbers with blanks between their thousands.
  CHECK(names(*open_text("x.csv", "name\nAda Lovelace\nAlan Turing\n")) == "name:text ");
  CHECK(names(*open_text("x.csv", "name\n1 Ada\n2 Alan\n")) == "name:text ");
  CHECK(names(*open_text("x.csv", "1 234\n5 678\n")) == "c0:real ");
}
