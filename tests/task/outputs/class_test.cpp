#include <cmath>
#include <doctest/doctest.h>

#include "task/kind_sections.h"

using namespace millrace;
using namespace millrace::testing;
using data::ColumnKind;

namespace {

using ClassNames = std::vector<std::string>;

std::shared_ptr<const data::Dataset> texts(const std::vector<std::string>& labels) {
  std::vector<std::vector<data::Value>> rows;
  for (const std::string& label : labels) rows.push_back({label});
  return rows_of({{"label", ColumnKind::text}}, std::move(rows));
}

std::shared_ptr<const data::Dataset> numbers(const std::vector<int64_t>& labels, ClassNames names = {}) {
  std::vector<std::vector<data::Value>> rows;
  for (const int64_t label : labels) rows.push_back({label});
  return rows_of({{"label", ColumnKind::integer}}, std::move(rows), std::move(names));
}

}  // namespace

TEST_CASE("classes are sorted: texts by the alphabet, numbers by size, in whatever order they come") {
  CHECK(learnt_output("class", {}, texts({"pear", "apple", "pear"}))->classes() ==
        ClassNames{"apple", "pear"});
  const auto whole = learnt_output("class", {}, numbers({10, 9, -1, 10}));
  CHECK(whole->classes() == ClassNames{"-1", "9", "10"});
  CHECK(targets_of<int64_t>(*whole, numbers({9, 10, -1})) == std::vector<int64_t>{1, 2, 0});
  CHECK(learnt_output("class", {}, texts({"10", "9"}))->classes() == ClassNames{"9", "10"});
}

TEST_CASE("whole numbers from 0 on are classes as they are, those between that no sample has, too") {
  const auto output = learnt_output("class", {}, numbers({3, 0, 1, 1}));
  CHECK(output->classes() == ClassNames{"0", "1", "2", "3"});
  CHECK(targets_of<int64_t>(*output, numbers({2, 3})) == std::vector<int64_t>{2, 3});
  CHECK(output->notes().back() == "no sample to train on is of the class '2'");
  // But not where most would be empty, or they do not begin with 0.
  CHECK(learnt_output("class", {}, numbers({0, 1, 9}))->classes() == ClassNames{"0", "1", "9"});
  CHECK(learnt_output("class", {}, numbers({1, 2, 4}))->classes() == ClassNames{"1", "2", "4"});
}

TEST_CASE("texts of digits stay the texts that they are: 007 is not 7") {
  const auto output = learnt_output("class", {}, texts({"007", "7", "10"}));
  CHECK(output->classes() == ClassNames{"007", "7", "10"});
  CHECK(targets_of<int64_t>(*output, texts({"7", "007"})) == std::vector<int64_t>{1, 0});
  // A test file whose values all look like numbers has a column of numbers.
  CHECK(targets_of<int64_t>(*output, numbers({7, 10})) == std::vector<int64_t>{1, 2});
}

TEST_CASE(
    "names of the data stand for their numbers, also where the data that follow have them in another order") {
  const auto output = learnt_output("class", {}, numbers({1, 0}, {"dog", "cat", "cow"}));
  CHECK(output->classes() == ClassNames{"dog", "cat", "cow"});
  CHECK(targets_of<int64_t>(*output, numbers({0, 1, 2}, {"cow", "dog", "cat"})) ==
        std::vector<int64_t>{2, 0, 1});
  CHECK(output->notes().back() == "no sample to train on is of the class 'cow'");
  // Without names a number is the place of the class.
  CHECK(targets_of<int64_t>(*output, numbers({2, 0})) == std::vector<int64_t>{2, 0});
}

TEST_CASE("what is written is kept and read back, with bytes that are no UTF-8") {
  const auto output = learnt_output("class", {{"trim", std::string(".")}}, texts({"a.", "b", "\xe9", ".b"}));
  CHECK(output->classes() == ClassNames{"a", "b", "\xe9"});
  CHECK(output->settings().text("column") == "label");
  const auto loaded = task::output_kinds().at("class").load(
      output_section("class", {{"trim", std::string(".")}}), output->encoding(), {});
  CHECK(loaded->classes() == output->classes());
  CHECK(loaded->ignorance() == output->ignorance());
  CHECK(loaded->encoding() == output->encoding());
  CHECK(targets_of<int64_t>(*loaded, texts({"\xe9", "..a", "b."})) == std::vector<int64_t>{2, 0, 1});
  CHECK(refusal([] {
          task::output_kinds().at("class").load(output_section("class"), "{\"column\": \"x\"}", {});
        }).starts_with("what the checkpoint knows of output is damaged"));
}

TEST_CASE("classes that are not UTF-8 stay different where they are told") {
  const auto output = learnt_output("class", {}, texts({"caf\xe9", "caf\xea"}));
  const task::Prediction told = output->predict(std::vector<float>{1, 0}, 2);
  CHECK(told.json[0].second == R"("caf\\xe9")");
  CHECK(told.json[1].second.find(R"("caf\\xe9": )") != std::string::npos);
  CHECK(told.json[1].second.find(R"("caf\\xea": )") != std::string::npos);
  CHECK(told.text.starts_with("caf\\xe9 73.1 %"));
  CHECK(output->target_text(std::as_bytes(std::span<const int64_t>(std::vector<int64_t>{1}))) == "caf\\xea");
}

TEST_CASE("a pattern finds the class in a text, and says which text has none") {
  const Items items = {{"pattern", std::string("_([a-z]+)\\.wav$")}};
  const auto output = learnt_output("class", items, texts({"1_no.wav", "2_yes.wav", "3_no.wav"}));
  CHECK(output->classes() == ClassNames{"no", "yes"});
  CHECK(refusal([&] { targets_of<int64_t>(*output, texts({"4.wav"})); }) ==
        "rows#0: its label, '4.wav', does not match output.pattern");
}

TEST_CASE("an unknown class or a missing one is named; in a stream the sample is bad") {
  const auto output = learnt_output("class", {}, texts({"ham", "spam"}));
  CHECK(refusal([&] {
          targets_of<int64_t>(*output, texts({"ham", "eggs"}));
        }) == "rows#1: has the class 'eggs', which the model does not know (it knows ham, spam)");
  const auto missing = rows_of({{"label", ColumnKind::text}}, {{std::string("ham")}, {data::Value()}});
  CHECK(refusal([&] { learnt_output("class", {}, missing); }).starts_with("rows#1: has no label"));

  task::Recipe recipe;
  task::Reading stream{recipe, texts({"eggs"})};
  stream.streamed = true;
  const auto part = output->part(stream);
  std::vector<std::byte> stored(part->stored_bytes());
  CHECK(part->read(*stream.samples, 0, nullptr, nullptr, stored.data())
            .find("has the class 'eggs', which the model does not know") != std::string::npos);
  CHECK(part->read(*texts({"spam"}), 0, nullptr, nullptr, stored.data()).empty());
  int64_t padded = 0;
  auto* row = reinterpret_cast<std::byte*>(&padded);
  part->pad({{}, 0, {}}, {&row, 1});
  CHECK(padded == -1);
}

TEST_CASE("a list of classes fixes their order, and is all that there is of a stream") {
  const Items items = {{"classes", ClassNames{"1..3", "0"}}};
  const auto output = learnt_output("class", items, numbers({0, 1, 1}));
  CHECK(output->classes() == ClassNames{"1", "2", "3", "0"});
  CHECK(targets_of<int64_t>(*output, numbers({0, 3})) == std::vector<int64_t>{3, 2});
  task::Recipe recipe;
  task::Reading stream{recipe, numbers({1})};
  stream.streamed = true;
  const task::OutputKind& kind = task::output_kinds().at("class");
  const auto named = kind.learn(output_section("class", {{"classes", ClassNames{"cat", "dog"}}}), stream, {});
  CHECK(targets_of<int64_t>(*named, numbers({1, 0})) == std::vector<int64_t>{1, 0});
  CHECK(std::isnan(named->ignorance()));
  CHECK(refusal([&] { (void)kind.learn(output_section("class"), stream, {}); }).find("set output.classes") !=
        std::string::npos);
}

TEST_CASE("orders by class get the class of each sample") {
  const auto samples = texts({"b", "a", "b"});
  const auto output = learnt_output("class", {}, samples);
  const task::Recipe recipe;
  CHECK(output->labels({recipe, samples}) == std::vector<int64_t>{1, 0, 1});
  CHECK(output->labels({recipe, texts({"a"})}) == std::vector<int64_t>{0});
}

TEST_CASE("ignorance is the entropy of the classes") {
  CHECK(learnt_output("class", {}, texts({"a", "b", "b", "b"}))->ignorance() ==
        doctest::Approx(-0.25 * std::log(0.25) - 0.75 * std::log(0.75)));
  CHECK(learnt_output("class", {{"classes", ClassNames{"a", "b"}}}, texts({"a", "a"}))->ignorance() == 0);
  CHECK_THROWS_WITH_AS(learnt_output("class", {}, texts({"a", "a"})), doctest::Contains("nothing to learn"),
                       InputError);
}

TEST_CASE("judging leaves out what does not count") {
  const auto output = learnt_output("class", {}, texts({"a", "b"}));
  const std::vector<float> logits = {2, 0, 0, 2, 5, 0, 1, 0};
  const std::vector<int64_t> targets = {0, 0, -1, 0};
  const auto all = judged(*output, logits, targets, {1, 1, 1, 1}, {"accuracy", "log-loss"});
  CHECK(all.at("accuracy") == doctest::Approx(2.0 / 3));
  CHECK(all.at("log-loss") ==
        doctest::Approx(
            (std::log1p(std::exp(-2.0)) + std::log1p(std::exp(2.0)) + std::log1p(std::exp(-1.0))) / 3));
  CHECK(judged(*output, logits, targets, {0, 1, 1, 0}, {"accuracy"}).at("accuracy") == 0);
}

TEST_CASE("a prediction names the most probable classes") {
  const auto output = learnt_output("class", {}, texts({"a", "b", "c\""}));
  const task::Prediction told = output->predict(std::vector<float>{0, 1, std::log(2.0F)}, 2);
  CHECK(told.text == "b 47.5 %, c\" 35.0 %");
  CHECK(told.json.at(0) == std::pair<std::string, std::string>{"class", "\"b\""});
  CHECK(told.json.at(1).second.find("\"c\\\"\": 0.3") != std::string::npos);
  CHECK(told.json.at(2).second.starts_with("[0, 1, 0.69"));
  CHECK(output->target_text(bytes_of(std::vector<int64_t>{2})) == "c\"");
}

TEST_CASE("texts and few whole numbers are classes; real numbers and many whole ones are numbers") {
  const task::OutputKind &cls = task::output_kinds().at("class"), &number = task::output_kinds().at("number");
  CHECK(cls.rank > number.rank);
  std::vector<std::vector<data::Value>> rows;
  for (int64_t i = 0; i < 300; ++i)
    rows.push_back({i % 5, i, 0.5 * static_cast<double>(i), std::string("x")});
  const auto samples = rows_of({{"few", ColumnKind::integer},
                                {"many", ColumnKind::integer},
                                {"real", ColumnKind::real},
                                {"text", ColumnKind::text}},
                               std::move(rows));
  CHECK(cls.refuses(*samples, "few").empty());
  CHECK(cls.refuses(*samples, "text").empty());
  CHECK(cls.refuses(*samples, "many").find("more than 100") != std::string::npos);
  std::vector<std::vector<data::Value>> own;  // few samples, of which most differ
  for (int64_t i = 0; i < 30; ++i) own.push_back({i / 2 * 2 + 100, i / 2 * 2 + i % 2 + 100});
  const auto amounts =
      rows_of({{"halves", ColumnKind::integer}, {"amounts", ColumnKind::integer}}, std::move(own));
  CHECK(cls.refuses(*amounts, "halves").empty());
  CHECK(cls.refuses(*amounts, "amounts").find("more than half") != std::string::npos);
  CHECK(cls.refuses(*samples, "real").find("real numbers") != std::string::npos);
  CHECK(number.refuses(*samples, "many").empty());
  CHECK(number.refuses(*samples, "real").empty());
  CHECK(number.refuses(*samples, "text").find("not numbers") != std::string::npos);
  CHECK(cls.recognise(*texts({"a"})) == "label");
  CHECK(cls.recognise(*rows_of({{"target", ColumnKind::real}}, {{0.5}})).empty());
  CHECK(number.recognise(*rows_of({{"target", ColumnKind::real}}, {{0.5}})) == "target");
}

TEST_CASE("a loss that does not apply, or is told what it does not know, is refused by its key") {
  const auto samples = texts({"a", "b"});
  CHECK(refusal([&] {
          learnt_output("class", {{"loss", std::string("mse")}}, samples);
        }).starts_with("output.loss = \"mse\" does not apply to an output of kind class"));
  CHECK(refusal([&] {
          learnt_output("class", {{"loss", std::string("cross-entorpy")}}, samples);
        }).find("did you mean 'cross-entropy'?") != std::string::npos);
  CHECK(refusal([&] {
          learnt_output("class", {{"loss.label_smoothing", 2.0}}, samples);
        }).starts_with("output.loss.label_smoothing must be from 0"));
  const auto smooth = learnt_output("class", {{"loss.label_smoothing", 0.2}}, samples);
  const Tensor logits = Tensor::of({1, 2}, {3, 0});
  const Tensor target = Tensor::of({1}, {0}, i64);
  const double right = std::log1p(std::exp(-3.0)), wrong = right + 3;
  CHECK(double(smooth->loss(logits, target, true).item()) == doctest::Approx(0.9 * right + 0.1 * wrong));
}
