#include <cmath>
#include <doctest/doctest.h>

#include "task/kind_sections.h"

using namespace millrace;
using namespace millrace::testing;
using data::ColumnKind;

TEST_CASE("classes: labels of a text, kept and read back") {
  const auto column = [](const std::vector<std::string>& values) {
    std::vector<std::vector<data::Value>> rows;
    for (const std::string& value : values) rows.push_back({value});
    return rows_of({{"tags", ColumnKind::text}}, std::move(rows));
  };
  const auto output = learnt_output("classes", {}, column({"red, round", "", "red", "green"}));
  CHECK(output->classes() == std::vector<std::string>{"green", "red", "round"});
  CHECK(targets_of<float>(*output, column({"round,red", ""})) == std::vector<float>{0, 1, 1, 0, 0, 0});
  const double quarter = -0.25 * std::log(0.25) - 0.75 * std::log(0.75);
  CHECK(output->ignorance() == doctest::Approx((2 * quarter + std::log(2.0)) / 3));
  const auto loaded =
      task::output_kinds().at("classes").load(output_section("classes"), output->encoding(), {});
  CHECK(loaded->encoding() == output->encoding());
  CHECK(refusal([&] { targets_of<float>(*loaded, column({"blue"})); }) ==
        "rows#0: has the label 'blue', which the model does not know (it knows green, red, round)");
  const auto values =
      judged(*output, {-1, 1, -1, 1, -1, -1, 9, 9, 9}, std::vector<float>{0, 1, 1, 0, 0, 0, 0, 0, 0},
             {1, 1, 0}, {"label-accuracy", "f1"});
  CHECK(values.at("label-accuracy") == doctest::Approx(4.0 / 6));
  CHECK(values.at("f1") == doctest::Approx(0.5));
  CHECK(output->predict(std::vector<float>{-1, 2, 1}, 2).json.at(0).second == "[\"red\", \"round\"]");
}

TEST_CASE("classes: lists of labels") {
  const auto column = [](const std::vector<data::Value>& values) {
    std::vector<std::vector<data::Value>> rows;
    for (const data::Value& value : values) rows.push_back({value});
    return rows_of({{"tags", ColumnKind::json}}, std::move(rows));
  };
  const auto text = [](const char* json) { return data::Value(std::string(json)); };
  const auto output = learnt_output(
      "classes", {},
      column({text(R"(["red", "a,b"])"), text("[]"), data::Value(), text(R"(["green", null])")}));
  CHECK(output->classes() == std::vector<std::string>{"a,b", "green", "red"});
  CHECK(targets_of<float>(*output, column({text(R"(["red","a,b"])"), text("null")})) ==
        std::vector<float>{1, 0, 1, 0, 0, 0});
  for (const char* wrong : {R"({"red": 1})", "[1, 2]", R"(["red")", "\"red\""})
    CHECK(refusal([&] { targets_of<float>(*output, column({text(wrong)})); }) ==
          "rows#0: its tags is no list of texts, which are the labels that hold");
}

TEST_CASE("classes: columns of zeros and ones") {
  const auto samples = rows_of({{"a", ColumnKind::integer}, {"b", ColumnKind::real}},
                               {{int64_t{1}, 0.0}, {int64_t{0}, 1.0}, {int64_t{1}, 1.0}});
  const Items items = {{"columns", std::vector<std::string>{"b", "a"}}};
  const auto output = learnt_output("classes", items, samples);
  CHECK(output->classes() == std::vector<std::string>{"b", "a"});
  CHECK(targets_of<float>(*output, samples) == std::vector<float>{0, 1, 1, 0, 1, 1});
  const auto wrong = rows_of({{"a", ColumnKind::integer}, {"b", ColumnKind::real}}, {{int64_t{2}, 0.0}});
  CHECK(refusal([&] { targets_of<float>(*output, wrong); }).starts_with("rows#0: its a is neither 0 nor 1"));
  const std::vector<data::Column> texts = {{"a", ColumnKind::text}, {"b", ColumnKind::text}};
  const std::string t = "True", f = "false", other = "yes";
  CHECK(targets_of<float>(*output, rows_of(texts, {{t, f}, {f, t}})) == std::vector<float>{0, 1, 1, 0});
  CHECK(refusal([&] {
          targets_of<float>(*output, rows_of(texts, {{t, other}}));
        }).find("its b is neither") != std::string::npos);
}
