// What training data give away of the target or of the test set, which checks must find.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "subjects.h"
#include "tables.h"

using namespace millrace;
using namespace millrace::testing;

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
