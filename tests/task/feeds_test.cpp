#include "task/feeds.h"

#include <algorithm>
#include <doctest/doctest.h>

#include "base/file.h"
#include "base/format.h"
#include "support/temp_folder.h"
#include "task/evaluate.h"
#include "task/model.h"
#include "task/predict.h"

using namespace millrace;
using testing::TempFolder;

namespace {

/// `rows` rows: a number, a category that says the class, and the class.
std::string table(int rows) {
  std::string text = "size,colour,fruit\n";
  for (int i = 0; i < rows; ++i)
    text += fmt::format("{},{},{}\n", i * 0.5, i % 3 == 0 ? "red" : "green", i % 3 == 0 ? "cherry" : "lime");
  return text;
}

struct Fruit {
  explicit Fruit(const std::string& more = "") {
    write_file(folder / "train.csv", table(40));
    write_file(folder / "test.csv", table(11));
    recipe = task::parse_recipe(
        fmt::format("[data]\ntrain = \"{}\"\ntest = \"{}\"\n{}\n[input]\nkind = \"table\"\n[output]\nkind = "
                    "\"class\"\ncolumn = \"fruit\"\n[train]\nbatch = 8\n[eval]\nbatch = 4\n",
                    (folder / "train.csv").string(), (folder / "test.csv").string(), more),
        "recipe");
  }
  TempFolder folder;
  task::Recipe recipe;
  std::vector<std::string> notes;
};

}  // namespace

TEST_CASE("a task is learnt and fed from the recipe's data, and goes on from what was learnt") {
  Fruit fruit;
  const auto opened = task::open_training(fruit.recipe, "", 0, nullptr, fruit.notes);
  const data::Feed& feed = *opened.training.feed;
  CHECK(feed.batch_size() == 8);
  CHECK(feed.batches_per_epoch() == 5);
  CHECK(feed.count() == 40);
  CHECK(opened.training.count == 40);
  CHECK(opened.task.outputs[0]->classes() == std::vector<std::string>{"cherry", "lime"});
  CHECK(feed.has_field("numbers"));
  CHECK(feed.has_field("ids"));
  CHECK(feed.has_field("target"));
  CHECK(std::any_of(fruit.notes.begin(), fruit.notes.end(), [](const std::string& line) {
    return line.find("train.csv: 40 rows; 1 columns") != line.npos;
  }));
  const auto again = task::open_training(opened.task.recipe, opened.task.encoding(), 0, nullptr, fruit.notes);
  CHECK(again.task.encoding() == opened.task.encoding());
  for (int i = 0; i < 6; ++i) {
    const data::FeedBatch &x = opened.training.feed->next(), &y = again.training.feed->next();
    CHECK(std::equal(x.samples.begin(), x.samples.end(), y.samples.begin(), y.samples.end()));
    for (size_t k = 0; k < x.arrays.size(); ++k)
      CHECK(std::equal(x.arrays[k].begin(), x.arrays[k].end(), y.arrays[k].begin(), y.arrays[k].end()));
  }
}

TEST_CASE("a sample of the training data does for estimates, and says how many samples there are") {
  Fruit fruit;
  fruit.recipe.train.batch = 2;
  const auto opened = task::open_training(fruit.recipe, "", 1, nullptr, fruit.notes);
  CHECK(opened.training.feed->count() == 8);  // four batches
  CHECK(opened.training.count == 40);
}

TEST_CASE("orders by class take the classes of the output") {
  Fruit fruit("order = \"class-balanced\"");
  auto opened = task::open_training(fruit.recipe, "", 0, nullptr, fruit.notes);
  const size_t target = opened.training.feed->field("target");
  int64_t limes = 0, all = 0;
  for (int64_t i = 0; i < opened.training.feed->batches_per_epoch(); ++i) {
    const data::FeedBatch& batch = opened.training.feed->next();
    const auto* labels = reinterpret_cast<const int64_t*>(batch.arrays[target].data());
    for (int64_t n = 0; n < batch.valid; ++n, ++all) limes += labels[n];
  }
  CHECK(2 * limes == doctest::Approx(static_cast<double>(all)).epsilon(0.3));
}

TEST_CASE("of a stream the classes that the recipe does not list are those of the test set") {
  const TempFolder folder;
  const auto write = [&](const char* name, int rows, int kinds) {
    constexpr const char *fruits[] = {"lime", "cherry", "plum"}, *tags[] = {"green", "red", "blue"};
    std::string text = "size,fruit,tags\n";
    for (int i = 0; i < rows; ++i) text += fmt::format("{}.5,{},{}\n", i, fruits[i % kinds], tags[i % kinds]);
    write_file(folder / name, text);
    return (folder / name).string();
  };
  // The plum is blue, and comes only in the test set.
  const std::string data =
      fmt::format("train = \"{}\"\ntest = \"{}\"\n", write("train.csv", 100, 2), write("test.csv", 12, 3));
  using Names = std::vector<std::string>;
  for (const Names& said : {Names{}, Names{"plum", "lime", "cherry"}}) {
    std::vector<std::string> notes;
    task::Recipe recipe = task::parse_recipe(
        "[data]\n" + data +
            "stream = true\norder = \"sequential\"\nepoch_samples = 100\n[input]\nkind = \"table\"\n"
            "numbers = [\"size\"]\n"
            "[outputs.fruit]\ncolumn = \"fruit\"\n[outputs.tags]\nkind = \"classes\"\ncolumn = \"tags\"\n"
            "[train]\nbatch = 8\n",
        "recipe");
    if (!said.empty()) recipe.outputs[0].set("classes", said);
    const auto opened = task::open_training(recipe, "", 0, nullptr, notes);
    const Names fruits = said.empty() ? Names{"cherry", "lime", "plum"} : said;
    CHECK(opened.task.outputs[0]->classes() == fruits);
    CHECK(opened.task.recipe.outputs[0].settings.texts("classes") == fruits);
    CHECK(opened.task.recipe.outputs[1].settings.texts("classes") == Names{"blue", "green", "red"});
  }
}

TEST_CASE("a text among the first numbers of a stream is no number, and numbers among texts are texts") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += fmt::format("{{\"size\": {}, \"code\": {}, \"fruit\": \"{}\"}}\n",
                        i == 50 ? "\"n/a\"" : fmt::format("{}.5", i), i % 2 ? "7" : "\"x\"",
                        i % 4 < 2 ? "lime" : "plum");
  write_file(folder / "rows.jsonl", text);
  std::vector<std::string> notes;
  const auto opened = task::open_training(
      task::parse_recipe(
          fmt::format(
              "[data]\ntrain = \"{}\"\nstream = true\norder = \"sequential\"\nepoch_samples = 200\n"
              "[input]\nkind = \"table\"\n[output]\ncolumn = \"fruit\"\nclasses = [\"lime\", \"plum\"]\n"
              "[train]\nbatch = 8\n",
              (folder / "rows.jsonl").string()),
          "recipe"),
      "", 0, nullptr, notes);
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& line) {
    return line.find("(size), 1 of categories") != line.npos;
  }));
  for (int batch = 0; batch < 25; ++batch) CHECK(opened.training.feed->next().valid == 8);
}

TEST_CASE("predictions of a file are those that its evaluation is made of") {
  Fruit fruit;
  auto opened = task::open_training(fruit.recipe, "", 0, nullptr, fruit.notes);
  task::Task& task = opened.task;
  task::make_network(task);
  task::TaskFeed tests = task::open_tests(task, "", 0, 0, nullptr, fruit.notes);
  REQUIRE(tests.feed);
  CHECK(tests.feed->batch_size() == 4);
  CHECK(tests.feed->count() == 11);
  task::Predictor predictor(task);
  const auto evaluation = task::evaluate(predictor, task, tests, {"accuracy"});
  CHECK(evaluation.count == 11);

  write_file(fruit.folder / "new.csv", table(11));
  const auto samples = task.inputs[0]->open(task.recipe, {(fruit.folder / "new.csv").string()});
  std::vector<int64_t> order;
  int64_t right = 0;
  task::predict_samples(predictor, task, samples,
                        {[&](int64_t sample, const auto& logits) {
                           order.push_back(sample);
                           right += (logits[0][1] > logits[0][0]) == (sample % 3 != 0);
                         },
                         [](int64_t, const std::string& why) { FAIL(why); }});
  CHECK(order == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(static_cast<double>(right) / 11 == doctest::Approx(evaluation.metrics[0].value));

  // In parts: whole batches of evaluation.
  task.recipe.data.cache_mb = 0;
  order.clear();
  task::predict_samples(predictor, task, samples,
                        {[&](int64_t sample, const auto&) { order.push_back(sample); },
                         [](int64_t, const std::string& why) { FAIL(why); }});
  CHECK(order.size() == 11);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("an argument that cannot be opened does not stop the others") {
  Fruit fruit;
  auto opened = task::open_training(fruit.recipe, "", 0, nullptr, fruit.notes);
  task::make_network(opened.task);
  task::Predictor predictor(opened.task);
  std::vector<std::string> names, errors;
  task::predict_arguments(predictor, opened.task,
                          {(fruit.folder / "missing.csv").string(), (fruit.folder / "test.csv").string()},
                          {[&](const std::string& name, const auto&, auto) { names.push_back(name); },
                           [&](const std::string& message) { errors.push_back(message); }});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("missing.csv") != std::string::npos);
  REQUIRE(names.size() == 11);
  CHECK(names[3].find("test.csv#3") != std::string::npos);
}
