#include "task/task.h"

#include <doctest/doctest.h>
#include <filesystem>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "support/refusal.h"
#include "support/temp_folder.h"
#include "task/draft.h"
#include "task/open.h"

using namespace millrace;
using namespace millrace::task;
using millrace::testing::TempFolder;

namespace {

std::string write_data(const TempFolder& folder, const std::string& name, const std::string& text) {
  std::filesystem::create_directories((folder / name).parent_path());
  write_file((folder / name).string(), text);
  return (folder / name).string();
}

/// A BMP file of 4×4 pixels of one grey.
std::string tiny_picture(char grey) {
  const auto number = [](uint32_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  std::string bmp = "BM" + number(54 + 48, 4) + number(0, 4) + number(54, 4) + number(40, 4) + number(4, 4) +
                    number(4, 4) + number(1, 2) + number(24, 2) + number(0, 4) + number(48, 4) +
                    std::string(16, '\0');
  return bmp + std::string(48, grey);
}

std::string flats_csv() {
  std::string text = "rooms,town,note,price\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("{},{},{},{}.5\n", 1 + i % 7, i % 2 ? "York" : "Leeds", i % 3 ? "new" : "old",
                        100 + 3 * i);
  return text;
}

std::string messages_tsv() {
  std::string text = "label\tmessage\n";
  for (int i = 0; i < 40; ++i)
    text += i % 2 ? fmt::format("spam\tbuy number {} now, it is cheap\n", i)
                  : fmt::format("ham\tsee you at {} in the old town\n", i);
  return text;
}

Task learn_from(const std::string& path, std::vector<std::string> keys) {
  keys.push_back("data.train=" + path);
  const Recipe recipe = parse_recipe("", "r.toml", keys);
  return learn_task({recipe, open_training_source(recipe, false).samples});
}

/// What a run keeps of it, read again.
Task again(const Task& task) {
  return load_task(parse_recipe(recipe_toml(task.recipe), "run"), task.encoding());
}

}  // namespace

TEST_CASE("a column is enough: its kind, the input's and the model are recognised") {
  const TempFolder folder;
  const Task task = learn_from(write_data(folder, "flats.csv", flats_csv()), {"output.column=price"});
  CHECK(task.recipe.outputs[0].kind == "number");
  CHECK(task.recipe.inputs[0].kind == "table");
  CHECK(task.recipe.model.kind == "table");
  CHECK(task.metrics() == task.outputs[0]->kind().metrics);
  REQUIRE(task.fields().size() == 2);
  CHECK(task.fields()[0].type.shape[1].size() == 1);  // rooms, and not the price
  CHECK(task.fields()[1].type.shape[1].size() == 2);
  CHECK(recipe_toml(parse_recipe(recipe_toml(task.recipe), "run")) == recipe_toml(task.recipe));
  const Task loaded = again(task);
  CHECK(loaded.encoding() == task.encoding());
  CHECK(loaded.fields().size() == 2);
  CHECK(std::string(loaded.unit()) == "rows");
  // The weights of samples are nobody's input.
  const Task weighed = learn_from((folder / "flats.csv").string(),
                                  {"output.column=price", "data.sample_weight=rooms", "model.depth=2"});
  CHECK(weighed.fields().size() == 1);
  CHECK(weighed.recipe.model.settings.integer("depth") == 2);  // what was written waited for the kind
}

TEST_CASE("texts and pictures are recognised by what they are") {
  const TempFolder folder;
  const Task texts = learn_from(write_data(folder, "sms.tsv", messages_tsv()), {});
  CHECK(texts.recipe.inputs[0].kind == "text");
  CHECK(texts.recipe.outputs[0].kind == "class");
  CHECK(texts.outputs[0]->classes() == std::vector<std::string>{"ham", "spam"});
  CHECK(again(texts).outputs[0]->classes() == std::vector<std::string>{"ham", "spam"});
  for (int i = 0; i < 6; ++i)
    write_data(folder, fmt::format("pictures/{}/{}.bmp", i % 2 ? "dark" : "light", i),
               tiny_picture(i % 2 ? 10 : 99));
  const Task pictures = learn_from((folder / "pictures").string(), {});
  CHECK(pictures.recipe.inputs[0].kind == "picture");
  CHECK(pictures.outputs[0]->classes() == std::vector<std::string>{"dark", "light"});
  CHECK(again(pictures).encoding() == pictures.encoding());
  const Task corpus =
      learn_from(write_data(folder, "corpus.txt", "to be or not to be\nthat is the question\n"), {});
  CHECK(corpus.recipe.inputs[0].kind == "tokens");
  CHECK(corpus.recipe.outputs[0].kind == "tokens");
  // Of a table with a text among other columns nobody wants the next letters.
  const std::string table = write_data(folder, "notes.csv", "text,size\nto be or not,1.5\nthat is it,2.5\n");
  CHECK_THROWS_WITH_AS(learn_from(table, {}), doctest::Contains("what is to be predicted?"), InputError);
  CHECK_THROWS_WITH_AS(learn_from(table, {}), doctest::Contains("input.kind = \"tokens\""), InputError);
  CHECK(learn_from(table, {"input.kind=tokens"}).recipe.outputs[0].kind == "tokens");
}

TEST_CASE("several inputs and outputs share the columns") {
  const TempFolder folder;
  const Task task = learn_from(write_data(folder, "flats.csv", flats_csv()),
                               {"inputs.town={column=town, kind=text}", "inputs.facts={}", "outputs.price={}",
                                "outputs.note={}", "model.width=32", "model.facts.width=16"});
  REQUIRE(task.inputs.size() == 2);
  CHECK(task.recipe.inputs[1].kind == "table");
  CHECK(task.inputs[1]->fields().size() == 1);  // the rooms: town, price and note are others'
  CHECK(task.recipe.outputs[0].kind == "number");
  CHECK(task.recipe.outputs[1].kind == "class");
  CHECK(task.recipe.model.kind == "combine");
  CHECK(task.recipe.model.settings.integer("width") == 32);
  CHECK(task.recipe.model.branches.at("facts").kind == "table");
  CHECK(task.recipe.model.branches.at("facts").settings.integer("width") == 16);
  CHECK_FALSE(task.recipe.model.branches.at("town").kind.empty());
  CHECK(task.metrics()[0].starts_with("price."));
  for (const data::Field& field : task.fields())
    CHECK((field.name.starts_with("town.") || field.name.starts_with("facts.")));
  CHECK(again(task).encoding() == task.encoding());
  // One that is called as a column takes that, whatever is known of its kind.
  const Task named =
      learn_from((folder / "flats.csv").string(),
                 {"inputs.town={kind=text}", "inputs.facts={}", "outputs.price={}", "outputs.note={}"});
  CHECK(named.recipe.inputs[0].settings.text("column") == "town");
  CHECK(named.inputs[1]->fields().size() == 1);
  // A table is of several, which it says itself.
  const Task rows = learn_from((folder / "flats.csv").string(),
                               {"inputs.rooms={kind=table, numbers=rooms, categories=town}",
                                "inputs.town={kind=text}", "outputs.price={}", "outputs.note={}"});
  CHECK(rows.recipe.inputs[0].settings.texts("columns").empty());
}

TEST_CASE("what cannot be recognised is said with the columns that there are") {
  const TempFolder folder;
  const std::string path = write_data(folder, "flats.csv", flats_csv());
  const auto error_of = [&](std::vector<std::string> keys) {
    return testing::refusal([&] { (void)learn_from(path, std::move(keys)); });
  };
  CHECK(error_of({"output.column=prise"}).find("did you mean 'price'?") != std::string::npos);
  CHECK(error_of({"output.column=price", "output.kind=class", "input.mels=3"})
            .find("input.mels means nothing") != std::string::npos);
  CHECK(error_of({"output.column=price", "eval.metrics=accuracy"}).find("does not apply to output") !=
        std::string::npos);
  CHECK_THROWS_WITH_AS(load_task(parse_recipe("", "run"), "{}"),
                       doctest::Contains("does not say the kind of input"), InputError);
  const Task task = learn_from(path, {"output.column=price"});
  CHECK_THROWS_WITH_AS(load_task(task.recipe, "{\"inputs\":[]}"), doctest::Contains("of 0 inputs"),
                       InputError);
  CHECK_THROWS_WITH_AS(load_task(task.recipe, "{"), doctest::Contains("damaged"), InputError);
}

TEST_CASE("a draft cuts off what makes one class several, and tests on what has all that is needed") {
  const TempFolder folder;
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  std::string train = "size,label\n", blanks = train, stops = train, more = train;
  for (int i = 0; i < 40; ++i) {
    train += fmt::format("{}.5,{}\n", i, i % 2 ? "cat" : "dog");
    blanks += fmt::format("{}.5,\"{}\"\n", i, i % 2 ? "cat" : i % 4 ? "cat " : "dog");
    stops += fmt::format("{}.5,{}.\n", i, i % 2 ? "cat" : "dog");
    more += fmt::format("{}.5,{}\n", i, i % 2 ? "cat" : "cow");
  }
  const std::string path = write_data(folder, "train.csv", train);
  has(draft_recipe(write_data(folder, "blanks.csv", blanks)), "# 2 classes: cat, dog\n");
  has(draft_recipe((folder / "blanks.csv").string()), "trim = \" \"\n");
  const std::string tests = write_data(folder, "test.csv", stops);
  has(draft_recipe(path), "trim = \".\"\n");
  has(draft_recipe(path), "test.csv\"\n");
  write_file(tests, more);
  has(draft_recipe(path), "has the class 'cow', which the model does not know");
  has(draft_recipe(path), "test_share = 0.1");
  write_file(tests, "size,number\n1.5,2\n2.5,3\n");
  has(draft_recipe(path), "there is no column 'label'");
}

TEST_CASE("a draft predicts what a recipe without a column does") {
  const TempFolder folder;
  std::string csv = "x,y,target\n";
  for (int i = 0; i < 60; ++i) csv += fmt::format("{}.5,{}.25,{}\n", i, i * 7 % 60, i % 2 ? "1.0" : "0.0");
  const std::string text = draft_recipe(write_data(folder, "t.csv", csv));
  CAPTURE(text);
  CHECK(text.find("column = \"target\"") != std::string::npos);
}

TEST_CASE("a draft for little data trains on some of it") {
  const TempFolder folder;
  for (const int rows : {2, 12}) {
    std::string text = "size,label\n";
    for (int i = 0; i < rows; ++i) text += fmt::format("{}.5,c{}\n", i, i);
    const std::string draft = draft_recipe(write_data(folder, fmt::format("{}.csv", rows), text));
    CAPTURE(draft);
    const Recipe recipe = parse_recipe(draft, "draft");
    const auto samples = open_training_source(recipe, false).samples;
    CHECK(samples->count() >= recipe.train.batch);
    // The share to test on may have the only sample of a class.
    CHECK(learn_task({recipe, samples}).outputs[0]->width() == rows);
  }
  const Recipe corpus =
      parse_recipe(draft_recipe(write_data(folder, "few.txt", std::string(300, 'a'))), "draft");
  CHECK(2 * corpus.train.batch * corpus.inputs[0].settings.integer("length") <= 300);
}

TEST_CASE("a draft for few texts is of their runs of bytes, for many of a network that reads them in order") {
  const TempFolder folder;
  for (const int rows : {200, 60'000}) {
    std::string text = "text\tlabel\n";
    for (int i = 0; i < rows; ++i) text += fmt::format("it is the {}th\t{}\n", i, i % 2 ? "odd" : "even");
    const std::string draft = draft_recipe(write_data(folder, fmt::format("{}.tsv", rows), text));
    CAPTURE(draft);
    const Recipe recipe = parse_recipe(draft, "draft");
    CHECK(recipe.inputs[0].kind == "text");
    CHECK(recipe.model.kind == (rows == 200 ? "bag" : "encoder"));
    CHECK(recipe.train.optimizer.kind == (rows == 200 ? "lazy-adam" : "adamw"));
    CHECK((draft.find("ngrams = 5") != std::string::npos) == (rows == 200));
  }
}

TEST_CASE("a draft finds classes in names of files, and refuses a folder of data sets") {
  const TempFolder folder;
  for (int i = 0; i < 20; ++i)
    write_data(folder, fmt::format("pictures/{}_{}.bmp", i % 2 ? "dark" : "light", i),
               tiny_picture(i % 2 ? 10 : 99));
  const std::string draft = draft_recipe((folder / "pictures").string());
  CAPTURE(draft);
  CHECK(draft.find("2 classes: dark, light") != std::string::npos);
  CHECK(draft.find("pattern = ") != std::string::npos);
  for (const char* name : {"tables/a.csv", "tables/b.csv"}) write_data(folder, name, flats_csv());
  CHECK_THROWS_WITH_AS(draft_recipe((folder / "tables").string()),
                       doctest::Contains("its files are no samples"), InputError);
}

TEST_CASE("a drafted recipe can be read, and names what was found") {
  const TempFolder folder;
  const auto draft = [](const std::string& path) {
    const std::string text = draft_recipe(path);
    check_recipe(parse_recipe(text, "draft"), "draft");
    return text;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string flats = draft(write_data(folder, "flats.csv", flats_csv()));
  CAPTURE(flats);
  CHECK(has(flats, "kind = \"table\""));
  CHECK(has(flats, "column = \"price\""));
  CHECK(has(flats, "numbers from 100.5 to 277.5"));
  CHECK(has(flats, "test_share = 0.1"));
  CHECK(has(flats, "60 rows"));
  std::string tweets = "town,tweet,label\n";
  for (int i = 0; i < 60; ++i)
    tweets += fmt::format("{},it is {} o'clock,{}\n", i % 3 ? "Rome" : "Oslo", i, i % 2);
  CHECK(has(draft(write_data(folder, "tweets.csv", tweets)), "# words to read: [\"tweet\"]"));
  const std::string path = write_data(folder, "sms-train.tsv", messages_tsv());
  write_data(folder, "sms-test.tsv", messages_tsv());
  const std::string texts = draft(path);
  CAPTURE(texts);
  CHECK(has(texts, "sms-test.tsv"));
  CHECK(has(texts, "2 classes: ham, spam"));
  CHECK(
      has(draft(write_data(folder, "corpus.txt", "to be or not to be\nthat is the question\n")), "steps = "));
  for (const char* part : {"train", "test"})
    for (int i = 0; i < 6; ++i)
      write_data(folder, fmt::format("pictures/{}/{}/{}.bmp", part, i % 2 ? "dark" : "light", i),
                 tiny_picture(i % 2 ? 10 : 99));
  const std::string pictures = draft((folder / "pictures").string());
  CAPTURE(pictures);
  CHECK(has(pictures, "kind = \"picture\""));
  CHECK(has(pictures, "2 classes: dark, light"));
  CHECK(has(pictures, "pictures/test"));
}
