// Mistakes in data that checks must find, and data without any.
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "subjects.h"
#include "tables.h"

using namespace millrace;
using namespace millrace::testing;

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
  // What inputs tell goes up with a grade or a count, and with codes of classes as chance has it.
  const auto told = [](std::vector<int> names, double noise) {
    return [=](RandomStream& r, int64_t) {
      const Row row = draw_row(r);
      const double at = (row.a + 1) / 2 + noise * (r.uniform() - 0.5);
      const auto part = std::clamp<size_t>(
          static_cast<size_t>(std::max(at, 0.0) * static_cast<double>(names.size())), 0, names.size() - 1);
      return fmt::format("{:.4f},{:.4f},{},{}", row.a, row.b, row.kind, names[part]);
    };
  };
  for (const double noise : {0.1, 0.6}) {
    is_caught(of_table("labels", price_header, 900, told({3, 0, 4, 1, 2}, noise), by_price));
    is_caught(of_table("labels", price_header, 900, told({5, 2, 7, 1, 4, 3, 6}, noise), by_price));
    is_well(of_table("labels", price_header, 900, told({1, 2, 3, 4, 5}, noise), by_price));
    is_well(of_table("labels", price_header, 900, told({9, 8, 7, 6, 5, 4, 3}, noise), by_price));
    is_well(of_table("labels", price_header, 900, told({0, 0, 0, 0, 1, 2, 3, 4, 7}, noise), by_price));
  }
}

TEST_CASE("check labels: codes of classes and grades of columns of words, and of texts") {
  // Each code has its kind; a grade in the middle may have one, too.
  const auto kinds = [](RandomStream& r, int64_t) {
    const auto code = r.below(7);
    return fmt::format("{:.4f},{:.4f},{},{}", static_cast<double>(code * 5 % 7) + 3 * r.uniform(),
                       r.uniform(), std::string(1, static_cast<char>('a' + code)), code);
  };
  const auto grades = [](RandomStream& r, int64_t) {
    const auto grade = r.below(7);
    return fmt::format("{:.4f},{:.4f},{},{}", static_cast<double>(grade) + 3 * r.uniform(), r.uniform(),
                       std::string(1, static_cast<char>('a' + (grade + r.below(2)))), grade);
  };
  is_caught(of_table("labels", price_header, 900, kinds, by_price));
  is_well(of_table("labels", price_header, 900, grades, by_price));
  const auto text = [](bool grade) {
    return [=](RandomStream& r, int64_t) {
      static const std::vector<std::string> topics = {"goal match", "bank stock", "film actor", "star orbit",
                                                      "vote law",   "soup oven",  "road wheel", "rain cloud"};
      const auto of = r.below(8);
      std::string words = "it was the day";
      for (unsigned i = 0; i < 7; ++i) words += grade ? (i < of ? " good" : " bad") : " " + topics[of];
      return fmt::format("{},{}", words, of);
    };
  };
  const auto of_texts = [&](bool grade) {
    Desk desk;
    desk.write("train.csv", table_text("words,price", 800, text(grade)));
    return desk.find("labels", share, by_price, "kind = \"text\"\ncolumn = \"words\"\nlength = 110");
  };
  is_caught(of_texts(false));
  is_well(of_texts(true));
}

TEST_CASE("check labels, giveaway: of each output") {
  const auto of = [](const char* check, const char* kind,
                     const std::function<std::string(RandomStream&, const Row&)>& second) {
    Desk desk;
    desk.write("train.csv", table_text("a,b,label,also", 600, [&](RandomStream& r, int64_t) {
                 const Row row = draw_row(r);
                 return fmt::format("{:.4f},{:.4f},{},{}", row.a, row.b, row.label, second(r, row));
               }));
    return desk.find(
        check, share,
        fmt::format("[outputs.one]\n{}\n[outputs.two]\nkind = \"{}\"\ncolumn = \"also\"", by_class, kind));
  };
  const auto told = [](RandomStream& r, const Row& row) {
    return fmt::format("{:.3f}", row.price + r.uniform());
  };
  const auto copied = [](RandomStream&, const Row& row) { return fmt::format("{:.4f}", 2 * row.b); };
  for (const char* check : {"labels", "giveaway"}) is_well(of(check, "number", told));
  const check::Finding constant = of("labels", "number", [](RandomStream&, const Row&) { return "3"; });
  is_caught(constant);
  CHECK(constant.saw.find("outputs.two") != std::string::npos);
  is_caught(
      of("labels", "class", [](RandomStream& r, const Row&) { return r.below(60) ? "usual" : "rare"; }));
  is_caught(of("giveaway", "number", copied));
}

TEST_CASE("check initial-loss: amounts of which a few are most of the loss") {
  is_well(of_table(
      "initial-loss", price_header, 900,
      [](RandomStream& r, int64_t) {
        const Row row = draw_row(r);
        return fmt::format("{:.4f},{:.4f},{},{:.4f}", row.a, row.b, row.kind,
                           std::exp(6 * (r.uniform() + r.uniform() + r.uniform() + r.uniform() - 2) * 1.73));
      },
      by_price));
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
