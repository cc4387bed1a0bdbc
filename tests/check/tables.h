// Tables for tests of checks that look at data, and what they find there.
#pragma once

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "subjects.h"
#include "support/temp_folder.h"

namespace millrace::testing {

/// A table as it is written: what `row` gives for each row, under the names of columns.
inline std::string table_text(const std::string& header, int64_t rows,
                              const std::function<std::string(RandomStream&, int64_t)>& row,
                              uint64_t seed = 1) {
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
inline Row draw_row(RandomStream& random) {
  Row row;
  row.a = 2 * random.uniform() - 1;
  row.b = 3 * random.uniform();
  row.kind = std::vector<std::string>{"oak", "elm", "fir"}[random.below(3)];
  row.label = row.a + row.b - 1.5 + (random.uniform() - 0.5) > 0 ? "yes" : "no";
  row.price = 3 * row.a + row.b + random.uniform();
  return row;
}
inline std::string usual_row(RandomStream& random) {
  const Row r = draw_row(random);
  return fmt::format("{:.5f},{:.5f},{},{}", r.a, r.b, r.kind, r.label);
}
inline std::string usual_price(RandomStream& random) {
  const Row r = draw_row(random);
  return fmt::format("{:.5f},{:.5f},{},{:.4f}", r.a, r.b, r.kind, r.price);
}

/// A recipe's findings on files in a folder of its own.
class Desk {
 public:
  void write(const std::string& name, const std::string& text) { write_file(folder_ / name, text); }
  check::Finding find(const std::string& check, const std::string& data, const std::string& output,
                      const std::string& input = "kind = \"table\"",
                      const std::string& training = "train.csv") const {
    const std::string text = fmt::format(
        "[data]\nbase = \"{}\"\n{}\n[input]\n{}\n{}{}\n[train]\nbatch = 32\n", folder_.path().string(), data,
        input, output.starts_with("[") ? "" : "[output]\n", output);
    task::Recipe recipe = task::parse_recipe(text, "test.toml");
    recipe.data.train = (folder_ / training).string();
    if (recipe.data.test_share == 0) recipe.data.test = (folder_ / "test.csv").string();
    check::Options options;
    options.only = {check};
    return check::check(recipe, options).at(0);
  }

 private:
  TempFolder folder_;
};

inline const char* const by_class = "kind = \"class\"\ncolumn = \"label\"";
inline const char* const by_price = "kind = \"number\"\ncolumn = \"price\"";
inline const char* const share = "test_share = 0.25";

/// What a check makes of one table that is divided.
inline check::Finding of_table(const std::string& check, const std::string& header, int64_t rows,
                               const std::function<std::string(RandomStream&, int64_t)>& row,
                               const char* output) {
  Desk desk;
  desk.write("train.csv", table_text(header, rows, row));
  return desk.find(check, share, output);
}
/// And of two.
inline check::Finding of_tables(const std::string& check, const std::string& training,
                                const std::string& tests, const char* output) {
  Desk desk;
  desk.write("train.csv", training);
  desk.write("test.csv", tests);
  return desk.find(check, "", output);
}

inline void is_caught(const check::Finding& finding) {
  CAPTURE(finding.check);
  CAPTURE(finding.saw);
  CHECK((finding.verdict == check::Verdict::warn || finding.verdict == check::Verdict::fail));
  CHECK(!finding.advice.empty());
}
inline void is_well(const check::Finding& finding) {
  CAPTURE(finding.check);
  CAPTURE(finding.saw);
  CHECK((finding.verdict == check::Verdict::pass || finding.verdict == check::Verdict::does_not_apply));
}

inline const std::string class_header = "a,b,kind,label", price_header = "a,b,kind,price";

}  // namespace millrace::testing
