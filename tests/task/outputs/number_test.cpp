#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "task/kind_sections.h"

using namespace millrace;
using namespace millrace::testing;
using data::ColumnKind;

namespace {

std::shared_ptr<const data::Dataset> prices(const std::vector<double>& values) {
  std::vector<std::vector<data::Value>> rows;
  for (const double value : values) rows.push_back({value, int64_t{7}});
  return rows_of({{"price", ColumnKind::real}, {"rooms", ColumnKind::integer}}, std::move(rows));
}

const Items of_price = {{"column", std::string("price")}};

}  // namespace

TEST_CASE(
    "numbers: targets and loss are in standard deviations, predictions and the progress have the unit "
    "again") {
  const auto samples = prices({100, 200, 300, 400});
  const auto output = learnt_output("number", of_price, samples);
  CHECK(output->width() == 1);
  const double deviation = std::sqrt(12500.0);
  const std::vector<float> learnt = targets_of<float>(*output, samples);
  for (size_t i = 0; i < 4; ++i)
    CHECK(learnt[i] == doctest::Approx((100.0 * static_cast<double>(i) - 150) / deviation));
  CHECK(output->target_text(std::as_bytes(std::span(learnt).first(1))) == "price 100");
  const Tensor logits = Tensor::of({2, 1}, {1, 0}), targets = Tensor::of({2, 1}, {1, 2});
  CHECK(double(output->loss(logits, targets, true).item()) == doctest::Approx(2));
  CHECK(output->loss(logits, targets, false).to_array().at(1) == doctest::Approx(4));
  CHECK(output->predictions(logits).to_array().at(0) == doctest::Approx(250 + deviation));
  CHECK(output->progress(logits, targets).to_array().at(1) == doctest::Approx(2 * deviation));
  CHECK(output->ignorance() == doctest::Approx(1));
}

TEST_CASE("numbers far from zero are told apart by what they differ by") {
  const auto samples = prices({1e12, 1e12 + 0.5, 1e12 + 1, 1e12 + 1.5});
  const auto output = learnt_output("number", of_price, samples);
  const std::vector<float> learnt = targets_of<float>(*output, samples);
  CHECK(learnt[1] - learnt[0] == doctest::Approx(0.5 / std::sqrt(0.3125)));
  CHECK(output->predictions(Tensor::of({1, 1}, {learnt[1]})).to_array().at(0) ==
        doctest::Approx(1e12 + 0.5).epsilon(1e-16));
  std::vector<float> wrong = learnt;
  wrong[2] += static_cast<float>(1 / std::sqrt(0.3125));
  const auto values = judged(*output, wrong, learnt, {1, 1, 1, 1}, {"mae", "r2"});
  CHECK(values.at("mae") == doctest::Approx(0.25).epsilon(1e-3));
  CHECK(values.at("r2") == doctest::Approx(1 - 1 / 1.25).epsilon(1e-3));
}

TEST_CASE("numbers: ignorance is what the loss of the mean is, of any loss") {
  const auto samples = prices({0, 0, 0, 4});  // mean 1, variance 3
  const auto raw = [&](Items items) {
    items["column"] = std::string("price");
    items["standardise"] = false;
    return learnt_output("number", items, samples)->ignorance();
  };
  CHECK(raw({}) == doctest::Approx(3));
  CHECK(raw({{"loss", std::string("huber")}, {"loss.delta", 2.0}}) == doctest::Approx((3 * 0.5 + 4.0) / 4));
  CHECK(raw({{"loss", std::string("quantile")}, {"loss.q", 0.9}}) ==
        doctest::Approx((3 * 0.1 + 0.9 * 3) / 4));
}

TEST_CASE("numbers: judging is in the unit, over the rows that count") {
  const auto samples = prices({100, 200, 300, 400});
  const auto output = learnt_output("number", of_price, samples);
  const double deviation = std::sqrt(12500.0);
  const auto values = judged(*output, {0, 0, 9}, std::vector<float>{1, -3, 1}, {1, 1, 0}, {"mae", "rmse"});
  CHECK(values.at("mae") == doctest::Approx(2 * deviation));
  CHECK(values.at("rmse") == doctest::Approx(std::sqrt(5.0) * deviation));
}

TEST_CASE("numbers: several columns, what is kept of them, and how they are told") {
  const auto samples = prices({251000, 251000, 251000});
  const Items items = {{"columns", std::vector<std::string>{"rooms", "price"}}};
  const auto output = learnt_output("number", items, samples);
  CHECK(targets_of<float>(*output, prices({251001, 251002})) == std::vector<float>{0, 1, 0, 2});
  CHECK(output->ignorance() == 0);  // all alike
  CHECK(output->predict(std::vector<float>{0.25F, 0}, 1).text == "rooms 7.25, price 251000");
  const auto loaded =
      task::output_kinds().at("number").load(output_section("number", items), output->encoding(), {});
  CHECK(loaded->predict(std::vector<float>{0.25F, 0}, 1).json ==
        output->predict(std::vector<float>{0.25F, 0}, 1).json);
  CHECK(loaded->ignorance() == output->ignorance());
  CHECK(loaded->width() == 2);
}

TEST_CASE("numbers: a target is told as the data have it, as far as a feed knows it") {
  const auto told = [](const std::vector<double>& of) {
    const auto samples = prices(of);
    const auto output = learnt_output("number", of_price, samples);
    std::string all;
    for (const float target : targets_of<float>(*output, samples))
      all += output->target_text(std::as_bytes(std::span(&target, 1))).substr(std::string("price").size());
    return all;
  };
  CHECK(told({0, 1, 2, 5, 3}) == " 0 1 2 5 3");
  CHECK(told({0, 2, 5, 16777217}) == " 0 2 5 16777217");
  CHECK(told({251000, -0.25, 1.0 / 3}) == " 251000 -0.25 0.33");
}

TEST_CASE("numbers: what is missing or no number is named") {
  CHECK(refusal([] {
          learnt_output("number", of_price, prices({1, NAN}));
        }).starts_with("rows#1: its price is nan"));
  const auto missing = rows_of({{"price", ColumnKind::real}}, {{1.0}, {data::Value()}});
  CHECK(refusal([&] { learnt_output("number", of_price, missing); }).starts_with("rows#1: has no price"));
  const auto output = learnt_output("number", of_price, prices({1, 2}));
  const auto texts = rows_of({{"price", ColumnKind::text}}, {{std::string("1e3")}, {std::string("much")}});
  CHECK(refusal([&] { targets_of<float>(*output, texts); }) ==
        "rows#1: its price is 'much', which is no number");
}

TEST_CASE("numbers: what is judged are the data's own, which f32 beside a large deviation has lost") {
  const auto samples = prices({0, 0.001, -0.002, 1e6});
  const auto output = learnt_output("number", of_price, samples);
  const auto part = output->judged_part({task::Recipe(), samples});
  REQUIRE(part);
  CHECK(part->fields()[0].name == "judged");
  std::vector<double> exact(4);
  for (int64_t i = 0; i < 4; ++i)
    CHECK(part->read(*samples, i, nullptr, nullptr,
                     reinterpret_cast<std::byte*>(&exact[static_cast<size_t>(i)]))
              .empty());
  CHECK(exact == std::vector<double>{0, 0.001, -0.002, 1e6});
  const std::vector<float> logits = {0, 0, 0, 0};  // each the mean
  const double mean = (0.001 - 0.002 + 1e6) / 4, least = std::numeric_limits<double>::epsilon();
  const double wanted =
      (mean / least + (mean - 0.001) / 0.001 + (mean + 0.002) / 0.002 + (1e6 - mean) / 1e6) / 4;
  CHECK(judged(*output, logits, exact, {1, 1, 1, 1}, {"mape"}).at("mape") == doctest::Approx(wanted));
}
