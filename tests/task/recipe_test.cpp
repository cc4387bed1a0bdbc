#include "task/recipe.h"

#include <cstdlib>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/format.h"
#include "support/refusal.h"
#include "task/recipe_sections.h"

using namespace millrace;
using namespace millrace::task;

namespace {

constexpr const char* example_recipe = R"(
[data]
train = "${MILLRACE_DATA}/cifar10/train.tar"

[input]
kind    = "picture"
augment = ["pad-crop 2", "flip"]

[output]
kind = "class"
loss = { kind = "cross-entropy", label_smoothing = 0.2 }

[model]
kind = "airbench"

[train]
epochs    = 10
batch     = 1024
precision = "bf16"
optimizer = { kind = "sgd", lr = 0.5, momentum = 0.85, nesterov = true, weight_decay = 5e-4 }
schedule  = { kind = "triangle", peak = 0.23 }

[eval]
metrics = ["accuracy"]
)";

Recipe recipe_from(const std::string& text, std::vector<std::string> overrides = {}) {
  return parse_recipe(text, "r.toml", overrides);
}

std::string recipe_error(const std::string& text, std::vector<std::string> overrides = {}) {
  return testing::refusal([&] { check_recipe(recipe_from(text, std::move(overrides)), "r.toml"); });
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// As learn_task() would settle a section whose kind the data say.
double loss_number(const Section& output, const char* key) { return loss_of(output)->settings.number(key); }

}  // namespace

TEST_CASE("a recipe's keys arrive typed, the others keep their defaults") {
  const Recipe recipe = recipe_from(example_recipe);
  CHECK(recipe.data.train == "${MILLRACE_DATA}/cifar10/train.tar");
  REQUIRE(recipe.inputs.size() == 1);
  CHECK(recipe.inputs[0].name.empty());
  CHECK(recipe.inputs[0].kind == "picture");
  CHECK(recipe.inputs[0].settings.texts("augment") == std::vector<std::string>{"pad-crop 2", "flip"});
  CHECK(recipe.outputs[0].kind == "class");
  CHECK(recipe.outputs[0].settings.text("loss") == "cross-entropy");
  CHECK(loss_number(recipe.outputs[0], "label_smoothing") == 0.2);
  CHECK(recipe.model.kind == "airbench");
  CHECK(recipe.train.epochs == 10);
  CHECK(recipe.train.optimizer.settings.flag("nesterov"));
  CHECK(recipe.train.optimizer.settings.number("weight_decay") == 5e-4);
  CHECK(recipe.train.schedule.settings.number("peak") == 0.23);
  CHECK(recipe.train.schedule.settings.number("start") == 0.2);
  CHECK(recipe.train.seed == 1);
  CHECK(recipe_error(example_recipe) == "");
  const Recipe silent = recipe_from("");
  CHECK(silent.train.optimizer.kind == "adamw");
  CHECK(silent.train.schedule.kind == "constant");
  CHECK(silent.inputs.size() == 1);
  CHECK(silent.inputs[0].kind.empty());
  CHECK(silent.model.kind.empty());
}

TEST_CASE("a written recipe reads back to the same recipe, odd characters included") {
  Recipe recipe = recipe_from(example_recipe, {"data.test=a \"b\" \\ c", "train.optimizer.lr=0.1",
                                               "input.mean=[0.1,0.2,0.30000000000000004]"});
  recipe.data.train = "line\nbreak\tü";
  const std::string text = recipe_toml(recipe);
  CHECK(recipe_toml(recipe_from(text)) == text);
  CHECK(recipe_from(text).data.train == recipe.data.train);
  CHECK(recipe_from(text).inputs[0].settings.numbers("mean") == recipe.inputs[0].settings.numbers("mean"));
  CHECK(loss_number(recipe_from(text).outputs[0], "label_smoothing") == 0.2);
  for (const char* change :
       {"train.optimizer=adam", "model={layers=[flatten, linear 10]}", "output=number"}) {
    CAPTURE(change);
    const std::string written = recipe_toml(recipe_from(example_recipe, {change}));
    CHECK(recipe_toml(recipe_from(written)) == written);
  }
  // Where the kind is not known, what was written waits.
  const std::string waiting = recipe_toml(recipe_from("[output]\ncolumn = \"price\"\n[model]\nwidth = 64\n"));
  CHECK(recipe_toml(recipe_from(waiting)) == waiting);
  CHECK(says(waiting, "[output]\ncolumn = \"price\"\n"));
  CHECK(says(waiting, "width = 64\n"));
}

TEST_CASE("overrides set any key, with or without TOML's quotes") {
  const Recipe recipe =
      recipe_from(example_recipe, {"train.epochs=2", "model.kind=resnet18", "data.test=some path/x=y.tar",
                                   "input.augment=[rotate 10, \"flip\"]", "eval.metrics=accuracy",
                                   "train.optimizer={kind=adamw, lr=1e-3, betas=[0.8, 0.95]}",
                                   "train.schedule=cosine", "input.mean=[0.5,1,0]", "data.train=2024",
                                   "output.loss.label_smoothing=0.1", "output.column=7"});
  CHECK(recipe.train.epochs == 2);
  CHECK(recipe.model.kind == "resnet18");
  CHECK(recipe.data.test == "some path/x=y.tar");
  CHECK(recipe.inputs[0].settings.texts("augment") == std::vector<std::string>{"rotate 10", "flip"});
  CHECK(recipe.eval.metrics == std::vector<std::string>{"accuracy"});
  CHECK(recipe.train.optimizer.kind == "adamw");
  CHECK(recipe.train.optimizer.settings.numbers("betas") == std::vector<double>{0.8, 0.95});
  CHECK(recipe.train.optimizer.settings.number("weight_decay") == 0);  // the table was replaced
  CHECK(recipe.train.schedule.kind == "cosine");
  CHECK(recipe.inputs[0].settings.numbers("mean") == std::vector<double>{0.5, 1, 0});
  CHECK(recipe.data.train == "2024");
  CHECK(loss_number(recipe.outputs[0], "label_smoothing") == 0.1);
  CHECK(recipe.outputs[0].settings.text("column") == "7");
  CHECK(
      recipe_from(example_recipe, {"train.optimizer.lr=0.25"}).train.optimizer.settings.number("momentum") ==
      0.85);
}

TEST_CASE("an override replaces a section, or adds one") {
  // A loss by its name forgets what the other was told.
  CHECK(loss_number(recipe_from(example_recipe, {"output.loss=cross-entropy"}).outputs[0],
                    "label_smoothing") == 0);
  const Recipe table = recipe_from(example_recipe, {"input={kind=table}"});
  CHECK(table.inputs[0].kind == "table");
  CHECK(table.inputs[0].items.empty());
  const Recipe added = recipe_from("[data]\ntrain = \"x\"\n",
                                   {"inputs.photo={kind=picture, resize=32}", "inputs.facts.kind=table",
                                    "inputs.photo.resize=64", "model.photo=resnet18"});
  REQUIRE(added.inputs.size() == 2);
  CHECK(added.inputs[0].name == "photo");
  CHECK(added.inputs[0].settings.integer("resize") == 64);
  CHECK(added.model.branches.at("photo").kind == "resnet18");
  CHECK(recipe_from(example_recipe, {"model={layers=[flatten, \"linear 10\"]}"}).model.kind.empty());
  CHECK(says(recipe_error(example_recipe, {"model.layers=[flatten, linear 10]"}),
             "either model.kind or model.layers"));
}

TEST_CASE("several inputs and outputs keep the order in which they are written") {
  const std::string text = R"(
[data]
train = "x"
[inputs.photo]
kind = "picture"
resize = 32
[inputs.facts]
kind = "table"
[outputs.price]
kind = "number"
weight = 2
[outputs.breed]
kind = "class"
[model.photo]
kind = "resnet18"
[eval]
metrics = ["price.mae", "breed.accuracy"]
)";
  CHECK(recipe_error(text) == "");
  const Recipe recipe = recipe_from(text);
  REQUIRE(recipe.inputs.size() == 2);
  CHECK(recipe.inputs[0].name == "photo");
  CHECK(recipe.inputs[1].name == "facts");
  CHECK(recipe.outputs[0].name == "price");
  CHECK(recipe.outputs[0].settings.number("weight") == 2);
  CHECK(recipe.model.branches.size() == 1);
  CHECK(recipe_toml(recipe_from(recipe_toml(recipe))) == recipe_toml(recipe));
  CHECK(recipe_from(recipe_toml(recipe)).inputs[1].name == "facts");
  CHECK(input_key(recipe.inputs[0]) == "inputs.photo");

  const Recipe words = recipe_from("[inputs]\nphoto = \"picture\"\nfacts = \"table\"\n");
  REQUIRE(words.inputs.size() == 2);
  CHECK(words.inputs[0].name == "photo");
  CHECK(words.inputs[1].kind == "table");

  CHECK(says(recipe_error(text, {"inputs.photo.resiz=3"}), "did you mean 'inputs.photo.resize'?"));
  CHECK(says(recipe_error(text, {"input.kind=picture"}), "there is [input] and [inputs.photo]"));
  CHECK(says(recipe_error(text, {"model.foto.kind=resnet18"}), "did you mean [model.photo]?"));
  CHECK(says(recipe_error(text, {"model.kind=resnet18"}), "takes one input, and there are 2"));
  CHECK(says(recipe_error(text, {"eval.metrics=accuracy"}), "write it as \"price.accuracy\""));
  CHECK(says(recipe_error(text, {"eval.metrics=breed.mae"}), "does not apply to outputs.breed"));
  CHECK(says(recipe_error("[inputs.photo]\nkind = \"picture\"\n"),
             "r.toml:1:1: [inputs.photo] is the only one"));
  CHECK(says(recipe_error("[inputs.a]\n[inputs.\"b-c\"]\n"), "letters, digits and _"));
  CHECK(says(recipe_error("[inputs.a]\n[inputs.width]\n"), "a key is called so"));
  CHECK(says(recipe_error("[inputs]\nresize = 3\n"), "[inputs] has tables by the names of inputs"));
}

TEST_CASE("an unknown key is named with its place and the nearest valid key") {
  CHECK(recipe_error("[train]\nepoch = 3\n") ==
        "r.toml:2:9: there is no key 'train.epoch'; did you mean 'train.epochs'?");
  CHECK(says(recipe_error("[train]\noptimizer = { kind = \"sgd\", momentun = 0.9 }\n"),
             "did you mean 'train.optimizer.momentum'"));
  CHECK(says(recipe_error("epochs = 3\n"), "'train.epochs'"));
  CHECK(recipe_error(example_recipe, {"train.epocs=3"}) ==
        "'train.epocs=3': there is no key 'train.epocs'; did you mean 'train.epochs'?");
  CHECK(recipe_error("[input]\nkind = \"picture\"\nresise = 3\n") ==
        "r.toml:3:10: there is no key 'input.resise'; did you mean 'input.resize'?");
  // The kind is not known yet, but no kind has this.
  CHECK(recipe_error("[input]\nresise = 3\n") ==
        "r.toml:2:10: there is no key 'input.resise'; did you mean 'input.resize'?");
  CHECK(says(recipe_error("[output]\nloss = { kind = \"mse\", smooth = 1 }\n"),
             "there is no key 'output.loss.smooth'"));
  CHECK(says(recipe_error("[output]\nloss = { kind = \"mse\", label_smoothing = 0.1 }\n"),
             "output.loss.label_smoothing means nothing to output.loss.kind = 'mse'"));
  CHECK(says(recipe_error("[output]\nloss = \"msee\"\n"), "did you mean 'mse'?"));
  CHECK(says(recipe_error("[input]\nkind = \"pictures\"\n"),
             "r.toml:2:8: input.kind cannot be 'pictures'; did you mean 'picture'?"));
  CHECK(says(recipe_error(example_recipe, {"model.width=3"}),
             "model.width means nothing to model.kind = 'airbench'"));
}

TEST_CASE("a section that is none is named with the one that is meant, by its name or by what stands in it") {
  const auto means = [](const std::string& text, const std::string& section) {
    const std::string error = recipe_error(text);
    CAPTURE(error);
    CHECK(says(error, fmt::format("did you mean [{}]?", section).c_str()));
  };
  means("[ouput]\nkind = \"class\"\n", "output");
  means("[ouput]\n", "output");
  means("[trian]\nbatch = 3\n", "train");
  means("[task]\nkind = \"class\"\ntrim = \" \"\n", "output");
  means("[dataset]\ntrain = \"x\"\n", "data");
  means("[optimizer]\nkind = \"sgd\"\nlr = 0.1\n", "train.optimizer");
  means("[train.optimiser]\nlr = 0.1\n", "train.optimizer");
  means("[training]\nfoo = 1\n", "train");
  CHECK(recipe_error("[ouput]\nkind = \"class\"\n").starts_with("r.toml:1:1: there is no section [ouput]"));
  CHECK(recipe_error("x = 1\nouput.kind = \"class\"\n").starts_with("r.toml:2:"));
  CHECK(
      recipe_error("", {"ouput.kind=class"}).starts_with("'ouput.kind=class': there is no section [ouput]"));
  CHECK(says(recipe_error("[inputs]\nkind = \"picture\"\n"), "with one input write [input]"));
  CHECK(says(recipe_error("[input.photo]\nkind = \"picture\"\n"),
             "one input is [input], of several each is [inputs.NAME], as [inputs.photo]"));
  CHECK(says(recipe_error("[output.price]\nkind = \"number\"\n"), "as [outputs.price]"));
  // Nothing is near: what there is, and no guess.
  for (const char* text : {"[foo]\nbar = 1\n", "foo = 1\n"}) {
    const std::string error = recipe_error(text);
    CHECK(!says(error, "did you mean"));
    CHECK(says(error, "[data], [input], [output], [model], [train], [eval] and [baseline]"));
  }
  CHECK(!says(recipe_error("[train]\nfoo = 1\n"), "did you mean"));
  CHECK(!says(recipe_error("[output]\nfoo = 1\n"), "did you mean"));
  CHECK(!says(recipe_error("[input]\nkind = \"foo\"\n"), "did you mean"));
}

TEST_CASE("layers beyond what is built are refused at once") {
  std::string layers;
  for (int i = 0; i < 100'000; ++i) layers += "\"relu\", ";
  CHECK(says(recipe_error("[data]\ntrain = \"x\"\n[model]\nlayers = [" + layers + "]\n"),
             "model.layers has 100000 layers, and at most 2000 are built"));
}

TEST_CASE("weights of classes are a word, a list or a table, and are written back") {
  const auto weights = [](const std::string& text, std::vector<std::string> overrides = {}) {
    const Recipe recipe = recipe_from("[output]\nkind = \"class\"\n" + text, std::move(overrides));
    CHECK(recipe_toml(recipe_from(recipe_toml(recipe))) == recipe_toml(recipe));
    return recipe.outputs[0].settings.texts("class_weights");
  };
  using Texts = std::vector<std::string>;
  CHECK(weights("") == Texts{});
  CHECK(weights("class_weights = \"balanced\"\n") == Texts{"balanced"});
  CHECK(weights("class_weights = [1, 2.5]\n") == Texts{"1", "2.5"});
  CHECK(weights("class_weights = { spam = 5, ham = 0.5 }\n") == Texts{"ham=0.5", "spam=5"});
  CHECK(weights("[output.class_weights]\nspam = 5\n") == Texts{"spam=5"});
  CHECK(weights("", {"output.class_weights=balanced"}) == Texts{"balanced"});
  CHECK(weights("", {"output.class_weights=[1, 2]"}) == Texts{"1", "2"});
  CHECK(weights("", {"output.class_weights={spam=5}"}) == Texts{"spam=5"});
  CHECK(weights("class_weights = { spam = 5, ham = 2 }\n", {"output.class_weights.spam=7"}) ==
        Texts{"ham=2", "spam=7"});
  CHECK(weights("class_weights = { spam = 5 }\n", {"output.class_weights=balanced"}) == Texts{"balanced"});
  CHECK(says(recipe_error("[output]\nclass_weights = { spam = [1] }\n"), "must be a number, not a list"));
  const auto several = recipe_from(
      "[outputs.a]\nkind = \"class\"\nclass_weights = { x = 2 }\n[outputs.b]\nkind = \"classes\"\npos_weight "
      "= [3]\n");
  CHECK(several.outputs[0].settings.texts("class_weights") == Texts{"x=2"});
  CHECK(several.outputs[1].settings.texts("pos_weight") == Texts{"3"});
}

TEST_CASE("numbers beyond 64 bits are out of range, not texts") {
  CHECK(says(recipe_error("", {"train.seed=18446744073709551616"}), "train.seed must be from 0 to 1e+18"));
  CHECK(says(recipe_error("[train]\nseed = 18446744073709551616\n"), "r.toml:2:"));
}

TEST_CASE("keys of before are refused with where they went, and those keys exist") {
  CHECK(recipe_error("[data]\naugment = [\"flip\"]\n") == "r.toml:2:11: data.augment is now input.augment");
  CHECK(says(recipe_error("[train]\nloss = { kind = \"mse\" }\n"), "train.loss is now output.loss"));
  CHECK(says(recipe_error(example_recipe, {"train.threads=2"}), "--threads"));
  CHECK(says(recipe_error("[data]\nweights = \"count\"\n"), "data.sample_weight"));
  for (const char* key :
       {"data.samples",       "data.augment",    "data.mix",       "data.resize",       "data.crop",
        "data.channels",      "data.mean",       "data.std",       "data.tokenizer",    "data.text",
        "data.sequences",     "data.length",     "data.separator", "data.spans",        "data.label",
        "data.label_pattern", "data.label_trim", "data.classes",   "data.categories",   "data.leave_out",
        "data.rate",          "data.seconds",    "data.mels",      "data.spec_augment", "eval.tta"}) {
    const std::string said = recipe_error("", {fmt::format("{}=1", key)});
    CAPTURE(said);
    const size_t at = said.find(" is now ");
    REQUIRE(at != std::string::npos);
    const std::string now = said.substr(at + 8, said.find_first_of(":, ", at + 8) - at - 8);
    const auto place = section_key(now);
    REQUIRE(place);
    CHECK((place->key == "kind" || !kinds_with(place->type, place->key).empty()));
  }
}

TEST_CASE("wrong types, ranges and words say what would be right") {
  CHECK(recipe_error("[train]\nepochs = \"ten\"\n") ==
        "r.toml:2:10: train.epochs must be a number, not a text");
  CHECK(recipe_error("[train]\nbatch = 0\n") == "r.toml:2:9: train.batch must be from 1 to 1048576, not 0");
  CHECK(recipe_error("[train]\nbatch = 1.5\n") ==
        "r.toml:2:9: train.batch must be a whole number, not a number");
  CHECK(recipe_error("[train]\nseed = -1\n") == "r.toml:2:8: train.seed must be at least 0, not -1");
  CHECK(says(recipe_error("[train]\nclip_norm = nan\n"), "must be a finite number"));
  CHECK(says(recipe_error("[train.optimizer]\nlr = -1\n"), "r.toml:2:6: train.optimizer.lr must be"));
  CHECK(says(recipe_error("[train.optimizer]\nlr = inf\n"),
             "r.toml:2:6: train.optimizer.lr must be a finite number"));
  CHECK(says(recipe_error("[train]\noptimizer = \"agd\"\n"), "train.optimizer.kind cannot be 'agd'"));
  CHECK(says(recipe_error("[train]\noptimizer = { kind = \"adam\", momentum = 0.9 }\n"), "means nothing to"));
  CHECK(says(recipe_error("[train]\noptimizer = 3\n"),
             "train.optimizer is a table of keys, not a whole number"));
  CHECK(says(recipe_error("train = 3\n"), "is a table of keys"));
  CHECK(says(recipe_error("[input]\nkind = \"picture\"\naugment = 3\n"),
             "input.augment must be a list of texts"));
  CHECK(says(recipe_error("[input]\nkind = \"picture\"\naugment = [1, \"x\"]\n"), "must be a list of texts"));
  CHECK(says(recipe_error("[data]\ntrain = 1979-05-27\n"), "r.toml:2:9"));
  CHECK(recipe_error("[data\n").find("r.toml:1:") == 0);
  CHECK(recipe_error("[data]\ntrain = 1\n[%model]\n").find("r.toml:3: not a key") == 0);
  // Letters outside ASCII: no names, but texts.
  for (const char* text : {"\u00e9 = 1\n", "[d\u00e4ta]\n", "x\ufebf'", "\ufdfa\u3000= 2\n"})
    CHECK(recipe_error(text).find("r.toml:1:") == 0);
  CHECK(recipe_error("[data]\ntrain = \"\u00e9\ufebf\"  # \ufebf\n") == "");
  CHECK(says(recipe_error(""), "data.train does not say where"));
  CHECK(says(recipe_error(example_recipe, {"epochs"}), "not key=value"));
}

TEST_CASE("a value where a table is wanted, and names that none can be, are named") {
  for (const char* name : {"input", "output", "model", "train", "data"})
    CHECK(says(recipe_error(fmt::format("{} = 3\n", name)),
               fmt::format("r.toml:1:{}: {} is a table of keys, not a whole number: give its keys, in [{}]",
                           std::string(name).size() + 4, name, name)));
  CHECK(says(recipe_error("[output]\nloss = [\"mse\"]\n"), "output.loss must be the name of a loss"));
  CHECK(says(recipe_error("[output]\nkind = \"number\"\nloss = [\"mse\"]\n"),
             "r.toml:3:8: output.loss must be the name of a loss, such as \"mse\", or a table of it"));
  for (const char* kind : {"number", "classes"})
    CHECK(says(recipe_error(fmt::format(
                   "[data]\ntrain = \"x\"\n[output]\nkind = \"{}\"\ncolumns = [\"y\", \"y\"]\n", kind)),
               "output.columns names 'y' twice"));
  CHECK(says(
      recipe_error("[data]\ntrain = \"x\"\n[input]\nkind = \"table\"\ncolumns = [\"a\", \"b\", \"a\"]\n"),
      "input.columns names 'a' twice"));
  CHECK(says(recipe_error(
                 "[data]\ntrain = \"x\"\n[output]\nkind = \"number\"\n[eval]\nmetrics = [\"r2\", \"r2\"]\n"),
             "eval.metrics names 'r2' twice"));
  for (const char* kind : {"", "kind = \"class\"\n"})
    CHECK(says(recipe_error(fmt::format("[data]\ntrain = \"x\"\n[output]\n{}pattern = \"(\"\n", kind)),
               "output.pattern: the pattern \"(\" is no regular expression"));
  CHECK(says(recipe_error("[inputs.\"a.b\"]\n"), "r.toml:1:1: the name \"a.b\" in [inputs] has a dot"));
  CHECK(says(recipe_error("[inputs.\"\"]\n"), "the name \"\" in [inputs] is empty"));
  CHECK(says(recipe_error("\"train.epochs\" = 3\n"), "has a dot"));
}

TEST_CASE("keys of many parts are refused at once") {
  std::string key = "a";
  for (int i = 1; i < 50'000; ++i) key += ".a";
  for (const std::string& text :
       {"[input]\n" + key + " = 3\n", "[" + key + "]\nx = 3\n", "[inputs." + key + "]\nx = 3\n"}) {
    const std::string error = recipe_error(text);
    CHECK(says(error, "none of a recipe has more than 8"));
    CHECK(error.size() < 300);
  }
  CHECK(says(recipe_error("", {key + "=3"}), "none of a recipe has more than 8"));
  CHECK(says(recipe_error("", {"train.epochs=1\n" + key + " = 3"}), "must be a number"));
  // Texts and numbers may have dots.
  std::string dots(1000, '.');
  CHECK(recipe_error(fmt::format("[data]\ntrain = \"a{0}\" # {0}\ntest = 'b{0}'\n", dots)) == "");
  std::string table = "output=", list = "output.columns=";
  for (int i = 0; i < 50'000; ++i) table += "{a=";
  CHECK(says(recipe_error("", {table + "1" + std::string(50'000, '}')}), "none of a recipe has more than 8"));
  CHECK(says(recipe_error("", {list + std::string(50'000, '[') + "1" + std::string(50'000, ']')}),
             "no key of a recipe has lists in a list"));
}

TEST_CASE("what no single key shows is checked") {
  CHECK(recipe_error(example_recipe, {"train.memory=1.5 GB"}) == "");
  CHECK(recipe_error(example_recipe, {"train.memory=plenty"}) ==
        "r.toml: train.memory takes a size such as 16GB or 800MB, not 'plenty'");
  CHECK(recipe_error(example_recipe, {"train.batch=12", "train.accumulate=4"}) == "");
  CHECK(recipe_error(example_recipe, {"train.batch=12", "train.accumulate=5"}) ==
        "r.toml: train.batch = 12 cannot be divided into train.accumulate = 5 equal parts");
  CHECK(says(recipe_error(example_recipe, {"train.accumulate=0"}), "train.accumulate"));
  CHECK(recipe_error(example_recipe, {"train.freeze=[white.bias 3, 0 0.5]"}) == "");
  for (const char* entry : {"white.bias", "white.bias three", "white.bias -1", "white.bias 1 2", "3", ""})
    CHECK(recipe_error(example_recipe, {fmt::format("train.freeze=[\"{}\"]", entry)})
              .find(fmt::format("r.toml: train.freeze: '{}' is not a parameter or layer and the epochs",
                                entry)) == 0);
  CHECK(says(recipe_error(example_recipe, {"train.optimizer={kind=adam, betas=[0.9]}"}),
             "r.toml: train.optimizer"));
  CHECK(says(recipe_error(example_recipe, {"data.test=a", "data.test_share=0.1"}),
             "data.test and data.test_share both say what to test on"));
  CHECK(
      says(recipe_error("[data]\ntrain = \"a\"\ntest_share = 0.2\ntest_by = \"grup:patient\"\n", {}), ":4:"));
  CHECK(says(
      recipe_error(example_recipe, {"data.test_by=grup:patient"}),
      "data.test_by cannot be 'grup:patient': it is random, stratified, group:COLUMN or time:COLUMN; did "
      "you mean 'group:patient'?"));
  CHECK(says(recipe_error(example_recipe, {"data.test_by=time:day"}), "data.test_share keeps of data.train"));
  for (const char* bad : {"where = \"a <\"", "test_where = \"a ~ 3\""}) {
    CAPTURE(bad);
    const std::string said = recipe_error(fmt::format("[data]\ntrain = \"a\"\n{}\n", bad), {});
    CHECK(says(said, ":3:"));
    CHECK(says(said, " is wrong: "));
  }
  CHECK(says(recipe_error(example_recipe, {"data.test_where=x > 1", "data.test_share=0.1"}),
             "data.test_where and"));
  CHECK(says(recipe_error(example_recipe, {"eval.metrics=acuracy"}), "did you mean 'accuracy'?"));
  CHECK(says(recipe_error(example_recipe, {"eval.metrics=mae"}),
             "'mae' does not apply to output, of kind class"));
  CHECK(says(recipe_error(example_recipe, {"output.loss=mse"}), "does not apply to an output of kind class"));
  CHECK(says(recipe_error(example_recipe, {"data.order=shufle"}),
             "data.order: order \"shufle\" is unknown; did you mean \"shuffle\"?"));
  CHECK(says(recipe_error(example_recipe, {"data.order=shuffle-buffer 10"}), "is for streams"));
  CHECK(says(recipe_error(example_recipe, {"data.stream=true", "data.order=shuffle-buffer 10"}),
             "no epochs of its own"));
  CHECK(says(
      recipe_error(example_recipe, {"data.stream=true", "data.order=shuffle-buffer 10", "train.steps=5"}),
      "give output.classes, or data.test"));
  CHECK(recipe_error(example_recipe, {"data.stream=true", "data.order=shuffle-buffer 10", "train.steps=5",
                                      "output.classes=[0..9]"}) == "");
}

TEST_CASE("what compares losses of all samples takes no weights of classes, named where they stand") {
  const auto error = [](const char* output) {
    return recipe_error(
        fmt::format("[data]\ntrain = \"x\"\n[outputs.a]\nkind = \"number\"\n[outputs.b]\n{}[train]\n"
                    "optimizer = \"lbfgs\"\n",
                    output));
  };
  for (const char* weighed :
       {"class_weights = \"balanced\"\n", "kind = \"class\"\nclass_weights = \"balanced\"\n"})
    CHECK(says(error(weighed), "outputs.b.class_weights does not go with train.optimizer = \"lbfgs\""));
  CHECK(error("kind = \"class\"\n") == "");
}

TEST_CASE("variables come from the environment, the data folder has a default, others must be set") {
  ::setenv("MILLRACE_TEST_PLACE", "/some/place", 1);
  CHECK(expand("${MILLRACE_TEST_PLACE}/a/${MILLRACE_TEST_PLACE}$x") == "/some/place/a//some/place$x");
  CHECK(recipe_error("[data]\ntrain = \"${NO_SUCH_VARIABLE_HERE}/x\"\n") ==
        "r.toml:2:9: data.train: the environment variable NO_SUCH_VARIABLE_HERE is not set");
  CHECK(recipe_error("[input]\ntokenizer = \"${NO_SUCH_VARIABLE_HERE}/x\"\n") ==
        "r.toml:2:13: input.tokenizer: the environment variable NO_SUCH_VARIABLE_HERE is not set");
  CHECK_THROWS_AS(expand("${open"), InputError);
  const char* before = std::getenv("MILLRACE_DATA");
  const std::string kept = before ? before : "";
  ::unsetenv("MILLRACE_DATA");
  CHECK(expand("${MILLRACE_DATA}/mnist") == "../shared/data/mnist");
  if (before) ::setenv("MILLRACE_DATA", kept.c_str(), 1);
}

TEST_CASE("every key of recipes and kinds is in the help, and its default is valid") {
  const std::string help = recipe_help();
  for (const RecipeKey& key : recipe_keys()) {
    CHECK(!key.doc.empty());
    CHECK(says(help, "  " + key.name + " "));
  }
  for (const auto& [type, prefix] :
       {std::pair(SectionType::input, "input"), std::pair(SectionType::output, "output"),
        std::pair(SectionType::model, "model"), std::pair(SectionType::optimizer, "train.optimizer"),
        std::pair(SectionType::schedule, "train.schedule"), std::pair(SectionType::loss, "output.loss")})
    for (const std::string& kind : section_kinds(type)) {
      CAPTURE(kind);
      for (const Setting& setting : section_settings(type, kind)) {
        CAPTURE(setting.name);
        CHECK(!setting.doc.empty());
        CHECK(says(help, fmt::format("  {}.{} ", prefix, setting.name)));
        Settings settings({setting});
        CHECK_NOTHROW(settings.set(setting.name, setting.usual));
      }
    }
  const std::string text = recipe_toml(recipe_from(""));
  CHECK(recipe_toml(recipe_from(text)) == text);
}

TEST_CASE("several sources with weights are read, written and overridden") {
  const Recipe recipe = recipe_from(
      "[data]\ntrain = { ads = \"a.tar\", more-news = \"n-{0..3}.tar\" }\nweights = { ads = 0.25, more-news "
      "= 2 }\n");
  CHECK(recipe.data.sources ==
        std::map<std::string, std::string>{{"ads", "a.tar"}, {"more-news", "n-{0..3}.tar"}});
  CHECK(recipe.data.weights == std::map<std::string, double>{{"ads", 0.25}, {"more-news", 2}});
  const Recipe again = recipe_from(recipe_toml(recipe));
  CHECK(again.data.train.empty());
  CHECK(again.data.sources == recipe.data.sources);
  CHECK(again.data.weights == recipe.data.weights);
  CHECK(recipe_toml(again) == recipe_toml(recipe));
  CHECK(recipe_from(recipe_toml(recipe_from("[data]\ntrain = \"a.tar\"\n"))).data.sources.empty());
  CHECK_THROWS_WITH_AS(recipe_from("[data]\nweights = { a = \"x\" }\n"),
                       doctest::Contains("data.weights.a must be a number"), InputError);
}
