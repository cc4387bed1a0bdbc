#include "train/recipe.h"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>

#include <millrace/error.h>

#include "base/format.h"

using namespace millrace;
using namespace millrace::train;

namespace {

constexpr const char* example = R"(
[data]
train   = "${MILLRACE_DATA}/cifar10/train.tar"
augment = ["pad-crop 2", "flip"]

[model]
kind = "airbench"

[train]
epochs    = 10
batch     = 1024
precision = "bf16"
optimizer = { kind = "sgd", lr = 0.5, momentum = 0.85, nesterov = true, weight_decay = 5e-4 }
schedule  = { kind = "triangle", peak = 0.23 }
loss      = { kind = "cross-entropy", label_smoothing = 0.2 }

[eval]
metrics = ["accuracy"]
)";

Recipe parse(const std::string& text, std::vector<std::string> overrides = {}) {
  return parse_recipe(text, "r.toml", overrides);
}

std::string error_of(const std::string& text, std::vector<std::string> overrides = {}) {
  try {
    check_recipe(parse(text, std::move(overrides)), "r.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a recipe's keys arrive typed, the others keep their defaults") {
  const Recipe recipe = parse(example);
  CHECK(recipe.data.train == "${MILLRACE_DATA}/cifar10/train.tar");
  CHECK(recipe.data.augment == std::vector<std::string>{"pad-crop 2", "flip"});
  CHECK(recipe.model.kind == "airbench");
  CHECK(recipe.train.epochs == 10);
  CHECK(recipe.train.optimizer.nesterov);
  CHECK(recipe.train.optimizer.weight_decay == 5e-4);
  CHECK(recipe.train.schedule.peak == 0.23);
  CHECK(recipe.train.schedule.start == Recipe().train.schedule.start);
  CHECK(recipe.train.seed == 1);
  CHECK(error_of(example) == "");
}

TEST_CASE("a written recipe reads back to the same recipe, odd characters included") {
  Recipe recipe = parse(example, {"data.test=a \"b\" \\ c", "train.optimizer.lr=0.1",
                                  "data.mean=[0.1,0.2,0.30000000000000004]"});
  recipe.data.train = "line\nbreak\tü";
  const std::string text = recipe_toml(recipe);
  CHECK(recipe_toml(parse(text)) == text);
  CHECK(parse(text).data.train == recipe.data.train);
  CHECK(parse(text).data.mean == recipe.data.mean);
  const std::string adam = recipe_toml(parse(example, {"train.optimizer=adam"}));
  CHECK(recipe_toml(parse(adam)) == adam);
}

TEST_CASE("overrides set any key, with or without TOML's quotes") {
  const Recipe recipe = parse(example, {"train.epochs=2", "model.kind=resnet", "data.test=some path/x=y.tar",
                                        "data.augment=[rotate 10, \"flip\"]", "eval.metrics=accuracy",
                                        "train.optimizer={kind=adamw, lr=1e-3, betas=[0.8, 0.95]}",
                                        "train.schedule=cosine", "data.mean=[0.5,1]", "data.train=2024"});
  CHECK(recipe.train.epochs == 2);
  CHECK(recipe.model.kind == "resnet");
  CHECK(recipe.data.test == "some path/x=y.tar");
  CHECK(recipe.data.augment == std::vector<std::string>{"rotate 10", "flip"});
  CHECK(recipe.eval.metrics == std::vector<std::string>{"accuracy"});
  CHECK(recipe.train.optimizer.kind == "adamw");
  CHECK(recipe.train.optimizer.betas == std::vector<double>{0.8, 0.95});
  CHECK(recipe.train.optimizer.weight_decay == 0);  // the table was replaced
  CHECK(recipe.train.schedule.kind == "cosine");
  CHECK(recipe.data.mean == std::vector<double>{0.5, 1});
  CHECK(recipe.data.train == "2024");
  CHECK(parse(example, {"train.optimizer.lr=0.25"}).train.optimizer.momentum == 0.85);
}

TEST_CASE("an unknown key is named with its place and the nearest valid key") {
  CHECK(error_of("[train]\nepoch = 3\n") ==
        "r.toml:2:9: there is no key 'train.epoch'; did you mean 'train.epochs'?");
  CHECK(error_of("[train]\noptimizer = { kind = \"sgd\", momentun = 0.9 }\n")
            .find("did you mean 'train.optimizer.momentum'") != std::string::npos);
  CHECK(error_of("epochs = 3\n").find("'train.epochs'") != std::string::npos);
  CHECK(error_of("[trian]\nbatch = 3\n").find("'train.batch'") != std::string::npos);
  CHECK(error_of(example, {"train.epocs=3"}) ==
        "'train.epocs=3': there is no key 'train.epocs'; did you mean 'train.epochs'?");
}

TEST_CASE("a run folder of before --threads can be read") {
  CHECK(parse("[train]\nbatch = 3\nthreads = 0\n").train.batch == 3);
  CHECK(error_of("[train]\nthreads = 2\n") ==
        "r.toml:2:11: there is no key 'train.threads' any more: leave it out, and give --threads instead");
  CHECK(error_of(example, {"train.threads=2"}).find("--threads") != std::string::npos);
}

TEST_CASE("wrong types, ranges and words say what would be right") {
  CHECK(error_of("[train]\nepochs = \"ten\"\n") == "r.toml:2:10: train.epochs must be a number, not a text");
  CHECK(error_of("[train]\nbatch = 0\n") == "r.toml:2:9: train.batch must be from 1 to 1048576, not 0");
  CHECK(error_of("[train]\nbatch = 1.5\n") == "r.toml:2:9: train.batch must be a whole number, not a number");
  CHECK(error_of("[train.optimizer]\nlr = 1e30\n") ==
        "r.toml:2:6: train.optimizer.lr must be from 0 to 1e+18, not 1e+30");
  CHECK(error_of("[train]\nseed = -1\n") == "r.toml:2:8: train.seed must be at least 0, not -1");
  CHECK(error_of("[train]\nclip_norm = nan\n").find("must be a finite number") != std::string::npos);
  CHECK(error_of("[train]\noptimizer = \"agd\"\n").find("did you mean 'sgd'?") != std::string::npos);
  CHECK(error_of("[train]\noptimizer = { kind = \"adam\", momentum = 0.9 }\n").find("means nothing to") !=
        std::string::npos);
  CHECK(error_of("train = 3\n").find("is a table of keys") != std::string::npos);
  CHECK(error_of("[data]\naugment = \"flip\"\n").find("must be a list, not a text") != std::string::npos);
  CHECK(error_of("[data]\ntrain = 1979-05-27\n").find("r.toml:2:9") != std::string::npos);
  CHECK(error_of("[data\n").find("r.toml:1:") == 0);
  CHECK(error_of("[data]\ntrain = 1\n[%model]\n").find("r.toml:3: not a key") == 0);
  // Letters outside ASCII: no names, but texts.
  for (const char* text : {"\u00e9 = 1\n", "[d\u00e4ta]\n", "x\ufebf'", "\ufdfa\u3000= 2\n"})
    CHECK(error_of(text).find("r.toml:1:") == 0);
  CHECK(error_of("[data]\ntrain = \"\u00e9\ufebf\"  # \ufebf\n").find("give either model.kind or") !=
        std::string::npos);
  CHECK(error_of("[data]\ntrain = \"x\"\n").find("give either model.kind or model.layers") !=
        std::string::npos);
  CHECK(error_of(example, {"epochs"}).find("not key=value") != std::string::npos);
  CHECK(error_of(example, {"train.memory=1.5 GB"}) == "");
  CHECK(error_of(example, {"train.memory=plenty"}) ==
        "r.toml: train.memory takes a size such as 16GB or 800MB, not 'plenty'");
  CHECK(error_of(example, {"train.batch=12", "train.accumulate=4"}) == "");
  CHECK(error_of(example, {"train.batch=12", "train.accumulate=5"}) ==
        "r.toml: train.batch = 12 cannot be divided into train.accumulate = 5 equal parts");
  CHECK(error_of(example, {"train.accumulate=0"}).find("train.accumulate") != std::string::npos);
  CHECK(error_of(example, {"train.freeze=[white.bias 3, 0 0.5]"}) == "");
  for (const char* entry : {"white.bias", "white.bias three", "white.bias -1", "white.bias 1 2", "3", ""})
    CHECK(error_of(example, {fmt::format("train.freeze=[\"{}\"]", entry)})
              .find(fmt::format("r.toml: train.freeze: '{}' is not a parameter or layer and the epochs",
                                entry)) == 0);
}

TEST_CASE("variables come from the environment, the data folder has a default, others must be set") {
  ::setenv("MILLRACE_TEST_PLACE", "/some/place", 1);
  CHECK(expand("${MILLRACE_TEST_PLACE}/a/${MILLRACE_TEST_PLACE}$x") == "/some/place/a//some/place$x");
  CHECK(error_of("[data]\ntrain = \"${NO_SUCH_VARIABLE_HERE}/x\"\n") ==
        "r.toml:2:9: data.train: the environment variable NO_SUCH_VARIABLE_HERE is not set");
  CHECK_THROWS_AS(expand("${open"), InputError);
  const char* before = std::getenv("MILLRACE_DATA");
  const std::string kept = before ? before : "";
  ::unsetenv("MILLRACE_DATA");
  CHECK(expand("${MILLRACE_DATA}/mnist") == "../shared/data/mnist");
  if (before) ::setenv("MILLRACE_DATA", kept.c_str(), 1);
}

TEST_CASE("every key is documented once and its default is valid") {
  const std::string help = recipe_help();
  Recipe defaults;
  for (const RecipeKey& key : recipe_keys()) {
    CHECK(!key.doc.empty());
    CHECK(help.find("  " + key.name + " ") != std::string::npos);
  }
  const std::string text = recipe_toml(defaults);
  CHECK(recipe_toml(parse(text)) == text);
}

TEST_CASE("the example recipes are valid") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("examples")) {
    if (entry.path().extension() != ".toml") continue;
    CAPTURE(entry.path().string());
    CHECK_NOTHROW(check_recipe(load_recipe(entry.path()), entry.path().string()));
    ++count;
  }
  CHECK(count >= 3);
}

TEST_CASE("several sources with weights are read, written and overridden") {
  const Recipe recipe = parse(
      "[data]\ntrain = { ads = \"a.tar\", more-news = \"n-{0..3}.tar\" }\nweights = { ads = 0.25, more-news "
      "= 2 }\n");
  CHECK(recipe.data.sources ==
        std::map<std::string, std::string>{{"ads", "a.tar"}, {"more-news", "n-{0..3}.tar"}});
  CHECK(recipe.data.weights == std::map<std::string, double>{{"ads", 0.25}, {"more-news", 2}});
  const Recipe again = parse(recipe_toml(recipe));
  CHECK(again.data.train.empty());
  CHECK(again.data.sources == recipe.data.sources);
  CHECK(again.data.weights == recipe.data.weights);
  CHECK(recipe_toml(again) == recipe_toml(recipe));
  CHECK(parse(recipe_toml(parse("[data]\ntrain = \"a.tar\"\n"))).data.sources.empty());
  // What run folders of before have.
  CHECK(parse("[data]\nweights = \"\"\n").data.weights.empty());
  CHECK_THROWS_WITH_AS(parse("[data]\nweights = \"count\"\n"), doctest::Contains("data.sample_weight"),
                       InputError);
  CHECK_THROWS_WITH_AS(parse("[data]\nweights = { a = \"x\" }\n"),
                       doctest::Contains("data.weights.a must be a number"), InputError);
}
