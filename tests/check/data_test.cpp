// Mistakes in data that checks must find, and data without any.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "base/file.h"
#include "subjects.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::testing;

namespace {

/// A table as it is written: what `row` gives for each row, under the names of columns.
std::string table_text(const std::string& header, int64_t rows,
                       const std::function<std::string(RandomStream&, int64_t)>& row, uint64_t seed = 1) {
  std::string text = header + "\n";
  RandomStream random(seed, 5);
  for (int64_t i = 0; i < rows; ++i) text += row(random, i) + "\n";
  return text;
}

/// Two numbers and a kind, from which a class, or a number, follows more or less.
struct Row {
  double a, b;
  std::string kind, label;
  double price;
};
Row draw_row(RandomStream& random) {
  Row row;
  row.a = 2 * random.uniform() - 1;
  row.b = 3 * random.uniform();
  row.kind = std::vector<std::string>{"oak", "elm", "fir"}[random.below(3)];
  row.label = row.a + row.b - 1.5 + (random.uniform() - 0.5) > 0 ? "yes" : "no";
  row.price = 3 * row.a + row.b + random.uniform();
  return row;
}
std::string usual_row(RandomStream& random) {
  const Row r = draw_row(random);
  return fmt::format("{:.5f},{:.5f},{},{}", r.a, r.b, r.kind, r.label);
}
std::string usual_price(RandomStream& random) {
  const Row r = draw_row(random);
  return fmt::format("{:.5f},{:.5f},{},{:.4f}", r.a, r.b, r.kind, r.price);
}

/// A recipe's findings on files in a folder of its own.
class Desk {
 public:
  void write(const std::string& name, const std::string& text) { write_file(folder_ / name, text); }
  check::Finding find(const std::string& check, const std::string& data, const std::string& output,
                      const std::string& input = "kind = \"table\"") const {
    const std::string text =
        fmt::format("[data]\nbase = \"{}\"\n{}\n[input]\n{}\n[output]\n{}\n[train]\nbatch = 32\n",
                    folder_.path().string(), data, input, output);
    task::Recipe recipe = task::parse_recipe(text, "test.toml");
    recipe.data.train = (folder_ / "train.csv").string();
    if (recipe.data.test_share == 0) recipe.data.test = (folder_ / "test.csv").string();
    check::Options options;
    options.only = {check};
    return check::check(recipe, options).at(0);
  }

 private:
  TempFolder folder_;
};

const char* const by_class = "kind = \"class\"\ncolumn = \"label\"";
const char* const by_price = "kind = \"number\"\ncolumn = \"price\"";
const char* const share = "test_share = 0.25";

/// What a check makes of one table that is divided.
check::Finding of_table(const std::string& check, const std::string& header, int64_t rows,
                        const std::function<std::string(RandomStream&, int64_t)>& row, const char* output) {
  Desk desk;
  desk.write("train.csv", table_text(header, rows, row));
  return desk.find(check, share, output);
}
/// And of two.
check::Finding of_tables(const std::string& check, const std::string& training, const std::string& tests,
                         const char* output) {
  Desk desk;
  desk.write("train.csv", training);
  desk.write("test.csv", tests);
  return desk.find(check, "", output);
}

void is_caught(const check::Finding& finding) {
  CAPTURE(finding.check);
  CAPTURE(finding.saw);
  CHECK((finding.verdict == check::Verdict::warn || finding.verdict == check::Verdict::fail));
  CHECK(!finding.advice.empty());
}
void is_well(const check::Finding& finding) {
  CAPTURE(finding.check);
  CAPTURE(finding.saw);
  CHECK((finding.verdict == check::Verdict::pass || finding.verdict == check::Verdict::does_not_apply));
}

const std::string class_header = "a,b,kind,label", price_header = "a,b,kind,price";

}  // namespace

TEST_CASE("check: healthy tables pass what looks at data") {
  for (const check::Kind& kind : check::kinds()) {
    if (kind.group != "data") continue;
    is_well(of_table(
        kind.name, class_header, 800, [](RandomStream& r, int64_t) { return usual_row(r); }, by_class));
    is_well(of_table(
        kind.name, price_header, 800, [](RandomStream& r, int64_t) { return usual_price(r); }, by_price));
    is_well(of_tables(kind.name,
                      table_text(class_header, 600, [](RandomStream& r, int64_t) { return usual_row(r); }),
                      table_text(
                          class_header, 300, [](RandomStream& r, int64_t) { return usual_row(r); }, 9),
                      by_class));
  }
}

TEST_CASE("check labels: one class for nearly all, sorted files, numbers that are words for missing") {
  is_caught(of_table(
      "labels", class_header, 2000,
      [](RandomStream& r, int64_t i) {
        const Row row = draw_row(r);
        return fmt::format("{:.4f},{:.4f},{},{}", row.a, row.b, row.kind, i % 100 == 7 ? "yes" : "no");
      },
      by_class));
  // The test file is the end of a sorted one.
  const auto sorted = [](const char* label, const char* other) {
    return [=](RandomStream& r, int64_t i) {
      const Row row = draw_row(r);
      return fmt::format("{:.4f},{:.4f},{},{}", row.a, row.b, row.kind, i % 10 ? label : other);
    };
  };
  is_caught(of_tables("labels", table_text(class_header, 500, sorted("no", "yes")),
                      table_text(class_header, 200, sorted("yes", "no"), 4), by_class));
  is_caught(of_table(
      "labels", price_header, 4000,
      [](RandomStream& r, int64_t i) {
        const Row row = draw_row(r);
        return fmt::format("{:.4f},{:.4f},{},{}", row.a, row.b, row.kind, i == 1500 ? -9999 : row.price);
      },
      by_price));
}

TEST_CASE(
    "check labels: many classes are as frequent in both sets as chance has it, or have too few samples") {
  const auto classes = [](uint64_t kinds, bool all) {
    return [=](RandomStream& r, int64_t i) {
      const Row row = draw_row(r);
      const uint64_t of = all ? static_cast<uint64_t>(i) % kinds : r.below(kinds);
      return fmt::format("{:.4f},{:.4f},{},c{}", row.a, row.b, row.kind, of);
    };
  };
  // 40 samples of each of 100 classes, half a sample of each to test on.
  const auto text = [&](uint64_t kinds, int64_t rows, bool all) {
    return table_text(class_header, rows, classes(kinds, all));
  };
  is_well(of_tables("labels", text(100, 4000, true), text(100, 60, false), by_class));
  const check::Finding few = of_tables("labels", text(800, 1600, true), text(800, 200, false), by_class);
  is_caught(few);
  CHECK(few.saw.find("samples of each") != std::string::npos);
  CHECK(few.saw.find("as frequent") == std::string::npos);
}

TEST_CASE("check labels: codes of classes that are taken for amounts") {
  const auto codes = [](int64_t kinds, double of) {
    return [=](RandomStream& r, int64_t i) {
      const Row row = draw_row(r);
      return fmt::format("{:.4f},{:.4f},{},{}", row.a, row.b, row.kind,
                         of * static_cast<double>(i * 7 % kinds));
    };
  };
  is_caught(of_table("labels", price_header, 900, codes(2, 1), by_price));
  is_caught(of_table("labels", price_header, 900, codes(3, 1), by_price));
  is_well(of_table("labels", price_header, 900, codes(5, 1), by_price));
  is_well(of_table("labels", price_header, 900, codes(3, .5), by_price));
}

TEST_CASE("check labels: weights that leave one class, next to nothing to test on") {
  const auto with = [](const char* weights, int64_t tests) {
    Desk desk;
    const auto row = [](RandomStream& r, int64_t) { return usual_row(r); };
    desk.write("train.csv", table_text(class_header, 600, row));
    desk.write("test.csv", table_text(class_header, tests, row, 2));
    return desk.find("labels", "", std::string(by_class) + weights);
  };
  is_caught(with("\nclass_weights = [1000, 1]", 200));
  is_caught(with("\nclass_weights = { yes = 200 }", 200));
  is_well(with("\nclass_weights = [5, 1]", 200));
  is_well(with("\nclass_weights = \"balanced\"", 200));
  is_caught(with("", 9));
}

TEST_CASE("check spelling: values in several ways, and otherwise in the test set") {
  const auto kinds = [](std::vector<std::string> oaks) {
    return [=](RandomStream& r, int64_t i) {
      Row row = draw_row(r);
      if (row.kind == "oak") row.kind = oaks[static_cast<size_t>(i) % oaks.size()];
      return fmt::format("{:.4f},{:.4f},{},{}", row.a, row.b, row.kind, row.label);
    };
  };
  const auto both = [&](std::vector<std::string> one, std::vector<std::string> other) {
    return of_tables("spelling", table_text(class_header, 600, kinds(std::move(one))),
                     table_text(class_header, 200, kinds(std::move(other)), 7), by_class);
  };
  is_well(both({"oak"}, {"oak"}));
  is_well(both({"oak", "oak 2"}, {"oak", "oak 2"}));
  is_caught(both({"oak", "Oak"}, {"oak", "Oak"}));
  is_caught(both({"old oak", "old\u00A0 oak"}, {"old oak"}));
  is_caught(both({"chêne", "Chêne"}, {"chêne"}));
  is_caught(both({"chêne", "che\u0302ne"}, {"chêne"}));  // an accent of its own
  is_caught(both({"oak"}, {"OAK"}));
  is_caught(both({"oak"}, {"fir", "chêne"}));
  // Many kinds, a quarter of which the test set calls otherwise; kinds that are there once make new ones
  // likely.
  const auto numbered = [](uint64_t values, const char* last) {
    return [=](RandomStream& r, int64_t i) {
      const Row row = draw_row(r);
      const uint64_t kind = r.below(static_cast<uint32_t>(values));
      return fmt::format("{:.4f},{:.4f},k{}{},{}", row.a, row.b, kind, i % 4 ? "" : last, row.label);
    };
  };
  const auto many = [&](uint64_t values, const char* last) {
    return of_tables("spelling", table_text(class_header, 900, numbered(values, "")),
                     table_text(class_header, 300, numbered(values, last), 7), by_class);
  };
  is_well(many(90, ""));
  is_caught(many(90, "x"));
  is_well(many(300, ""));
  is_caught(of_table(
      "spelling", class_header, 600,
      [](RandomStream& r, int64_t i) {
        const Row row = draw_row(r);
        return fmt::format("{:.4f},{:.4f},{},{}", row.a, row.b, row.kind, i % 9 ? row.label : "Yes");
      },
      by_class));
}

TEST_CASE("check giveaway: a target that two columns make together") {
  const auto parts = [](const char* sign, double off) {
    return [=](RandomStream& r, int64_t) {
      const Row row = draw_row(r);
      const double part = 1 + 4 * r.uniform() * r.uniform();
      const double rest = *sign == '+'   ? row.price - part
                          : *sign == '/' ? row.price * part
                                         : row.price / part;
      return fmt::format("{:.4f},{:.4f},{},{:.4f}", part, rest + off * r.uniform(), row.kind, row.price);
    };
  };
  for (const char* sign : {"+", "*", "/"}) {
    CAPTURE(sign);
    is_caught(of_table("giveaway", price_header, 800, parts(sign, 0), by_price));
    is_well(of_table("giveaway", price_header, 800, parts(sign, 3), by_price));
  }
}

TEST_CASE("check overlap: columns in another order, numbers that were rounded") {
  const auto as = [](const char* form, const char* header, uint64_t seed, int64_t rows) {
    return table_text(
        header, rows,
        [=](RandomStream& r, int64_t) {
          const Row row = draw_row(r);
          return fmt::format(fmt::runtime(form), row.a, row.b, row.kind, row.label);
        },
        seed);
  };
  const std::string training = as("{0:.5f},{1:.5f},{2},{3}", "a,b,kind,label", 1, 800);
  is_caught(
      of_tables("overlap", training, as("{3},{2},{1:.5f},{0:.5f}", "label,kind,b,a", 1, 200), by_class));
  is_caught(
      of_tables("overlap", training, as("{0:.3f},{1:.3f},{2},{3}", "a,b,kind,label", 1, 200), by_class));
  is_well(of_tables("overlap", training, as("{3},{2},{1:.5f},{0:.5f}", "label,kind,b,a", 2, 200), by_class));
  is_well(of_tables("overlap", training, as("{0:.3f},{1:.3f},{2},{3}", "a,b,kind,label", 2, 200), by_class));
}

TEST_CASE("check preprocessing: columns that have changed places in the test set") {
  const auto as = [](const char* form) {
    return [=](RandomStream& r, int64_t) {
      const Row row = draw_row(r);
      return fmt::format(fmt::runtime(form), row.a, 4 * row.b, row.kind, row.label);
    };
  };
  const std::string training = table_text(class_header, 800, as("{0:.5f},{1:.5f},{2},{3}"));
  const check::Finding moved = of_tables(
      "preprocessing", training, table_text(class_header, 300, as("{1:.5f},{0:.5f},{2},{3}"), 3), by_class);
  is_caught(moved);
  CHECK(moved.saw.find("changed places") != std::string::npos);
  is_well(of_tables("preprocessing", training,
                    table_text(class_header, 300, as("{0:.5f},{1:.5f},{2},{3}"), 3), by_class));
}

TEST_CASE("check time-overlap: whole numbers that are seconds") {
  const auto seconds = [](int64_t each, int64_t times) {
    return [=](RandomStream& r, int64_t i) {
      return fmt::format("{},{}", times * (1'600'000'000 + i * each), usual_row(r));
    };
  };
  const std::string header = "recorded," + class_header;
  is_caught(of_table("time-overlap", header, 800, seconds(3600, 1), by_class));
  is_caught(of_table("time-overlap", header, 800, seconds(3600, 1000), by_class));
  is_well(
      of_table("time-overlap", header, 800, seconds(3'000'000, 1), by_class));  // beyond the years of clocks
}

TEST_CASE("check shifted-targets: a row too many on one side") {
  // The label, or price, of the row before or behind.
  const auto moved = [](int64_t by, bool prices) {
    std::vector<Row> rows;
    RandomStream random(3, 5);
    for (int64_t i = 0; i < 900; ++i) rows.push_back(draw_row(random));
    std::string text = (prices ? price_header : class_header) + "\n";
    for (int64_t i = 0; i < 900; ++i) {
      const Row &own = rows[static_cast<size_t>(i)], &other = rows[static_cast<size_t>((i + 900 + by) % 900)];
      text += fmt::format("{:.4f},{:.4f},{},{}\n", own.a, own.b, own.kind,
                          prices ? fmt::format("{:.4f}", other.price) : other.label);
    }
    return text;
  };
  for (const bool prices : {false, true}) {
    CAPTURE(prices);
    const char* const output = prices ? by_price : by_class;
    const auto found = [&](int64_t by) {
      Desk desk;
      desk.write("train.csv", moved(by, prices));
      return desk.find("shifted-targets", share, output);
    };
    is_caught(found(1));
    is_caught(found(-1));
    is_caught(found(2));
    is_well(found(0));
    // Targets that go with nothing are another matter.
    is_well(found(300));
  }
  // Rows that are like those beside them, as in the order of time, are well.
  is_well(of_table(
      "shifted-targets", price_header, 900,
      [](RandomStream& r, int64_t i) {
        const double a = std::sin(static_cast<double>(i) / 40);
        return fmt::format("{:.4f},{:.4f},oak,{:.4f}", a, r.uniform(), 3 * a + .1 * r.uniform());
      },
      by_price));
}

TEST_CASE("check constant-columns: always the same, the same twice, the same in other words") {
  const auto with = [](const char* header, std::function<std::string(const Row&)> more, const char* output) {
    return of_table(
        "constant-columns", header, 400,
        [=](RandomStream& r, int64_t) {
          const Row row = draw_row(r);
          return fmt::format("{:.5f},{:.5f},{},{},{}", row.a, row.b, row.kind, more(row),
                             output == by_class ? row.label : fmt::format("{:.4f}", row.price));
        },
        output);
  };
  is_caught(with(
      "a,b,kind,more,label", [](const Row&) { return "7"; }, by_class));
  is_caught(with(
      "a,b,kind,more,price", [](const Row& row) { return fmt::format("{:.5f}", row.a); }, by_price));
  is_caught(with(
      "a,b,kind,more,label",
      [](const Row& row) { return row.kind == "oak"   ? "Q"
                                  : row.kind == "elm" ? "U"
                                                      : "A"; }, by_class));
}

TEST_CASE("check giveaway: the target in other words, in other units, in what is missing") {
  const auto with = [](const char* header, std::function<std::string(RandomStream&, const Row&)> more,
                       const char* output) {
    return of_table(
        "giveaway", header, 800,
        [=](RandomStream& r, int64_t) {
          const Row row = draw_row(r);
          return fmt::format("{:.5f},{:.5f},{},{},{}", row.a, row.b, row.kind, more(r, row),
                             output == by_class ? row.label : fmt::format("{:.4f}", row.price));
        },
        output);
  };
  is_caught(with(
      "a,b,kind,outcome,label",
      [](RandomStream&, const Row& row) { return row.label == "yes" ? "closed" : "open"; }, by_class));
  is_caught(with(
      "a,b,kind,total,price",
      [](RandomStream&, const Row& row) { return fmt::format("{:.2f}", 1.19 * row.price + 4); }, by_price));
  is_caught(with(
      "a,b,kind,paid,label",
      [](RandomStream& r, const Row& row) {
        return row.label == "yes" ? fmt::format("{:.3f}", r.uniform()) : "";
      },
      by_class));
}

TEST_CASE("check overlap: rows of training in the test file") {
  const auto lines_of = [](const std::string& text, size_t first, size_t count) {
    std::string lines;
    size_t at = text.find('\n') + 1;
    for (size_t i = 0; i < first + count; ++i) {
      const size_t end = text.find('\n', at) + 1;
      if (i >= first) lines += text.substr(at, end - at);
      at = end;
    }
    return lines;
  };
  for (const auto& [header, row, output] :
       {std::tuple{class_header, &usual_row, by_class}, {price_header, &usual_price, by_price}}) {
    const auto draw = [row = row](RandomStream& r, int64_t) { return row(r); };
    const std::string training = table_text(header, 600, draw);
    is_caught(of_tables("overlap", training, table_text(header, 150, draw, 6) + lines_of(training, 20, 40),
                        output));
  }
  // Each row is there twice before the table is divided.
  std::string last;
  is_caught(of_table(
      "overlap", class_header, 800,
      [&](RandomStream& r, int64_t i) { return i % 2 ? last : last = usual_row(r); }, by_class));
  Desk desk;
  const auto message = [](RandomStream& r, int64_t i) {
    std::string text;
    for (int w = 0; w < 6; ++w) text += fmt::format("w{} ", r.below(400));
    return fmt::format("{},{}", text, i % 2 ? "spam" : "ham");
  };
  const std::string texts = table_text("text,label", 400, message);
  desk.write("train.csv", texts);
  desk.write("test.csv", table_text("text,label", 90, message, 3) + lines_of(texts, 5, 30));
  is_caught(desk.find("overlap", "", by_class,
                      "kind = \"text\"\ncolumn = \"text\"\ntokenizer = \"byte\"\nlength = 64"));
}

TEST_CASE("check group-overlap and time-overlap: patients and days on both sides") {
  const auto with = [](const std::string& check, const char* column,
                       std::function<std::string(int64_t, RandomStream&)> more, const char* output,
                       const char* how = share) {
    Desk desk;
    desk.write("train.csv",
               table_text(fmt::format("a,b,{},{}", column, output == by_class ? "label" : "price"), 900,
                          [&](RandomStream& r, int64_t i) {
                            const Row row = draw_row(r);
                            return fmt::format(
                                "{:.5f},{:.5f},{},{}", row.a, row.b, more(i, r),
                                output == by_class ? row.label : fmt::format("{:.4f}", row.price));
                          }));
    return desk.find(check, how, output);
  };
  const auto group = [](int64_t i, RandomStream&) { return fmt::format("p{}", i % 60); };
  is_caught(with("group-overlap", "patient", group, by_class));
  is_caught(with(
      "group-overlap", "userId", [](int64_t i, RandomStream&) { return fmt::format("{}", 1000 + i % 45); },
      by_price));
  is_caught(
      with("group-overlap", "session_id", group, by_class, "test_share = 0.25\ntest_by = \"stratified\""));
  is_well(
      with("group-overlap", "patient", group, by_class, "test_share = 0.25\ntest_by = \"group:patient\""));
  const auto day = [](int64_t, RandomStream& r) {
    return fmt::format("2024-{:02}-{:02}", 1 + r.below(12), 1 + r.below(28));
  };
  is_caught(with("time-overlap", "sold", day, by_price));
  is_caught(with(
      "time-overlap", "timestamp",
      [](int64_t, RandomStream& r) { return fmt::format("{}", 1700000000 + 7 * r.below(100000)); },
      by_class));
  is_caught(with(
      "time-overlap", "year", [](int64_t, RandomStream& r) { return fmt::format("{}", 1990 + r.below(30)); },
      by_class));
  is_well(with("time-overlap", "sold", day, by_price, "test_share = 0.25\ntest_by = \"time:sold\""));
}

TEST_CASE("check fitted-statistics: scaled or filled up before the data was divided") {
  // Column a of both sets together, changed as whole columns are.
  const auto both = [](std::function<void(std::vector<double>&)> change, bool price) {
    std::vector<Row> rows;
    RandomStream random(3, 1);
    for (int i = 0; i < 800; ++i) rows.push_back(draw_row(random));
    std::vector<double> column;
    for (const Row& row : rows) column.push_back(row.a);
    change(column);
    std::string sets[2];
    for (int s = 0; s < 2; ++s) {
      sets[s] = price ? "a,b,kind,price\n" : "a,b,kind,label\n";
      for (size_t i = s ? 560 : 0; i < (s ? 800 : 560); ++i)
        sets[s] += fmt::format("{:.9f},{:.5f},{},{}\n", column[i], rows[i].b, rows[i].kind,
                               price ? fmt::format("{:.4f}", rows[i].price) : rows[i].label);
    }
    return of_tables("fitted-statistics", sets[0], sets[1], price ? by_price : by_class);
  };
  const auto standardise = [](std::vector<double>& x) {
    double mean = 0, squares = 0;
    for (const double v : x) mean += v / static_cast<double>(x.size());
    for (const double v : x) squares += (v - mean) * (v - mean);
    for (double& v : x) v = (v - mean) / std::sqrt(squares / static_cast<double>(x.size()));
  };
  is_caught(both(standardise, false));
  is_caught(both(standardise, true));
  is_caught(both(
      [](std::vector<double>& x) {
        x[600] = -2;
        x[700] = 3;
        for (double& v : x) v = (v + 2) / 5;
      },
      false));
  is_caught(both(
      [](std::vector<double>& x) {
        double mean = 0, count = 0;
        for (size_t i = 0; i < x.size(); ++i)
          if (i % 20) {
            mean += x[i];
            ++count;
          }
        for (size_t i = 0; i < x.size(); i += 20) x[i] = mean / count;
      },
      true));
}

TEST_CASE("check preprocessing: other units, other order, another scale") {
  const auto draw = [](std::function<std::string(const Row&)> text) {
    return [=](RandomStream& r, int64_t) { return text(draw_row(r)); };
  };
  const auto plain = draw(
      [](const Row& row) { return fmt::format("{:.5f},{:.5f},{},{}", row.a, row.b, row.kind, row.label); });
  const std::string training = table_text(class_header, 500, plain);
  is_caught(of_tables("preprocessing", training, table_text(class_header, 200, draw([](const Row& row) {
                                                              return fmt::format("{:.5f},{:.5f},{},{}",
                                                                                 1000 * row.a, row.b,
                                                                                 row.kind, row.label);
                                                            })),
                      by_class));
  is_caught(of_tables("preprocessing", training, table_text(class_header, 200, draw([](const Row& row) {
                                                              return fmt::format("{:.5f},{:.5f},{},{}",
                                                                                 row.b + 2, row.a, row.kind,
                                                                                 row.label);
                                                            })),
                      by_class));
  is_caught(of_tables("preprocessing",
                      table_text(price_header, 500, [](RandomStream& r, int64_t) { return usual_price(r); }),
                      table_text(price_header, 200, draw([](const Row& row) {
                                   return fmt::format("{:.6f},{:.6f},{},{:.4f}", row.a / 255, row.b / 255,
                                                      row.kind, row.price);
                                 })),
                      by_price));
}

TEST_CASE("check preprocessing: a few rows with large numbers are no other scale") {
  // Counts, of which one in two hundred is a thousand times as large, by chance more in one of the sets; and
  // a column that is hardly ever more than 0.
  const auto rows = [](int64_t every, double large) {
    return [=](RandomStream& r, int64_t i) {
      const Row row = draw_row(r);
      return fmt::format("{:.4f},{:.4f},{},{}", i % every == 3 ? large * (1 + row.a) : row.b,
                         i % (every + 40) == 5 ? 1.0 : 0.0, row.kind, row.label);
    };
  };
  is_well(of_tables("preprocessing", table_text(class_header, 600, rows(200, 300)),
                    table_text(class_header, 300, rows(150, 9000), 4), by_class));
  is_well(of_tables("preprocessing", table_text(class_header, 600, rows(150, 9000)),
                    table_text(class_header, 300, rows(1000, 9000), 4), by_class));
  // Another unit is another unit, large numbers or not.
  is_caught(of_tables("preprocessing", table_text(class_header, 600, rows(200, 300)),
                      table_text(
                          class_header, 300,
                          [](RandomStream& r, int64_t i) {
                            const Row row = draw_row(r);
                            return fmt::format("{:.4f},{:.4f},{},{}", 1000 * row.b, i % 40 == 5 ? 1.0 : 0.0,
                                               row.kind, row.label);
                          },
                          4),
                      by_class));
}

TEST_CASE("check end-of-sequence: an end that is never a target") {
  check::Subject s = tokens_subject(small_gpt());
  s.end_token = test_vocabulary - 1;
  CHECK_PASSES("end-of-sequence", s);
  for (auto& batch : s.batches)
    for (int64_t i = 0; i < batch[1].count(); ++i)
      if (batch[1].int_at(i) == s.end_token) batch[1].set_int(i, 0);
  CHECK_CAUGHT("end-of-sequence", s);
}

namespace {

/// What "schedule" or another check of the loop makes of a plan for 600 rows in batches of 32.
check::Finding of_plan(const std::string& check, const std::string& plan) {
  TempFolder folder;
  write_file(folder / "train.csv",
             table_text(class_header, 600, [](RandomStream& r, int64_t) { return usual_row(r); }));
  task::Recipe recipe =
      task::parse_recipe(fmt::format("[data]\ntrain = \"{}\"\n[output]\n{}\n[train]\nbatch = 32\n{}\n",
                                     (folder / "train.csv").string(), by_class, plan),
                         "test.toml");
  check::Options options;
  options.only = {check};
  return check::check(recipe, options).at(0);
}

}  // namespace

TEST_CASE("check schedule: a rate that is gone, or never comes; few steps; an average of the beginning") {
  is_well(of_plan("schedule", "epochs = 10"));
  is_well(of_plan("schedule", "epochs = 10\nschedule = { kind = \"cosine\", warmup = 1 }\nema = 0.95"));
  is_well(of_plan("schedule", "epochs = 10\nschedule = { kind = \"step\", every = 3, factor = 0.1 }"));
  is_caught(of_plan("schedule", "epochs = 10\nschedule = { kind = \"step\", every = 0.2, factor = 0.1 }"));
  is_caught(of_plan("schedule", "epochs = 10\nschedule = { kind = \"constant\", warmup = 40 }"));
  is_caught(of_plan("schedule", "epochs = 10\nlr_scale = 0.01"));
  is_caught(of_plan("schedule", "steps = 3"));
  is_caught(of_plan("schedule", "epochs = 10\nema = 0.9999"));
}

TEST_CASE("check updates and frozen: rates by name count, and what is frozen as it was drawn is said") {
  is_well(of_plan("updates", "rates = [\"emb* 0.5\"]"));
  is_caught(of_plan("updates", "rates = [\"* 0.00001\"]"));
  is_caught(of_plan("frozen", "freeze = [\"emb0 0\"]"));
  is_well(of_plan("frozen", "freeze = [\"emb0 1\"]"));
}
