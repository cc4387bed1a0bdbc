#include "task/open.h"

#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::task;
using millrace::testing::TempFolder;

namespace {

/// number,label,size for numbers 0 … count - 1.
std::string numbers_csv(int64_t count, int64_t first = 0) {
  std::string text = "number,label,size\n";
  for (int64_t i = first; i < first + count; ++i)
    text += fmt::format("{},{},{}.5\n", i, i % 2 ? "odd" : "even", i);
  return text;
}

std::string write_set(const TempFolder& folder, const std::string& name, const std::string& text) {
  write_file((folder / name).string(), text);
  return (folder / name).string();
}

Recipe recipe_of(const std::vector<std::string>& keys) { return parse_recipe("", "r.toml", keys); }

std::vector<int64_t> numbers_in(const data::Dataset& set) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < set.count(); ++i)
    numbers.push_back(std::get<int64_t>(set.read(i, set.column("number"))));
  return numbers;
}

}  // namespace

TEST_CASE("data.where chooses what is trained on, not what is tested on") {
  const TempFolder folder;
  const std::string path = write_set(folder, "n.csv", numbers_csv(20));
  const Recipe recipe =
      recipe_of({"data.train=" + path, "data.where=label in ('odd') and number > 10", "data.test=" + path});
  const TrainingSource source = open_training_source(recipe, false);
  CHECK(numbers_in(*source.samples) == std::vector<int64_t>{11, 13, 15, 17, 19});
  CHECK(source.parts.empty());
  CHECK(open_test_source(recipe, false, "")->count() == 20);
  CHECK(open_training_source(recipe_of({"data.train=" + path}), false, 5).samples->count() == 5);
}

TEST_CASE("data sets of the program are sources like files") {
  const TempFolder folder;
  const std::string path = write_set(folder, "n.csv", numbers_csv(10, 100));
  const auto numbers = [&](int64_t count) {
    const std::string name = fmt::format("{}.csv", count);
    return std::shared_ptr<const data::Dataset>(
        data::open_dataset(write_set(folder, name, numbers_csv(count))));
  };
  Recipe recipe = recipe_of({"data.train={own = \"set:some\", file = \"" + path + "\"}",
                             "data.where=label = 'even'", "data.test=set:few"});
  recipe.data.sets = {{"some", numbers(6)}, {"few", numbers(3)}};
  check_recipe(recipe, "r.toml");
  const TrainingSource source = open_training_source(recipe, false);
  CHECK(source.parts == std::vector<int64_t>{5, 3});  // "file", "own"
  CHECK(numbers_in(*source.samples) == std::vector<int64_t>{100, 102, 104, 106, 108, 0, 2, 4});
  CHECK(numbers_in(*open_test_source(recipe, false, "")) == std::vector<int64_t>{0, 1, 2});
  CHECK(open_test_source(recipe, false, "set:some")->count() == 6);
  CHECK_THROWS_WITH_AS(open_test_source(recipe, false, "set:sone"), doctest::Contains("did you mean 'some'?"),
                       InputError);
  // Its text names them, and they are no part of it.
  const Recipe read = parse_recipe(recipe_toml(recipe), "r.toml");
  CHECK(read.data.sources == recipe.data.sources);
  CHECK_THROWS_WITH_AS(open_training_source(read, false),
                       doctest::Contains("set:some is a data set of the program"), InputError);
  // A folder where the recipe begins may have a file of that name.
  write_set(folder, "set:some", "");
  recipe.data.base = folder.path().string();
  anchor_paths(recipe);
  CHECK(recipe.data.sources.at("own") == "set:some");
  for (const char* key : {"data.stream=true", "data.missing=[none]", "data.header=yes"})
    CHECK_THROWS_WITH_AS(check_recipe(recipe_of({"data.train=set:some", key}), "r.toml"),
                         doctest::Contains("set:some is a data set of the program"), InputError);
  // They are for the files beside it.
  const std::vector<std::vector<std::string>> beside = {
      {"data.train=set:some", "data.test=few.csv"}, {"data.train={own = \"set:some\", file = \"n.csv\"}"}};
  for (std::vector<std::string> keys : beside) {
    keys.insert(keys.end(), {"data.missing=[none]", "data.header=yes"});
    check_recipe(recipe_of(keys), "r.toml");
  }
  recipe.data.sets["some"] = data::memory_dataset("none", {{"number", data::ColumnKind::integer}}, {});
  CHECK_THROWS_WITH_AS(open_training_source(recipe, false), "none: there are no samples", InputError);
}

TEST_CASE("data.test_where divides, whatever data.where leaves") {
  const TempFolder folder;
  const std::string path = write_set(folder, "n.csv", numbers_csv(10));
  const Recipe recipe =
      recipe_of({"data.train=" + path, "data.test_where=number < 4", "data.where=label = 'even'"});
  CHECK(numbers_in(*open_training_source(recipe, false).samples) == std::vector<int64_t>{4, 6, 8});
  CHECK(numbers_in(*open_test_source(recipe, false, "")) == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(has_tests(recipe));
  CHECK_FALSE(has_tests(recipe_of({"data.train=" + path})));
  CHECK(open_test_source(recipe_of({"data.train=" + path}), false, "") == nullptr);
}

TEST_CASE("data.test_share keeps the same samples whatever else the recipe says, and none twice") {
  const TempFolder folder;
  const std::string path = write_set(folder, "n.csv", numbers_csv(1000));
  const Recipe recipe = recipe_of({"data.train=" + path, "data.test_share=0.2"});
  const auto training = numbers_in(*open_training_source(recipe, false).samples);
  const auto tests = numbers_in(*open_test_source(recipe, false, ""));
  std::set<int64_t> all(training.begin(), training.end());
  all.insert(tests.begin(), tests.end());
  CHECK(all.size() == 1000);
  CHECK(training.size() + tests.size() == 1000);
  CHECK(std::abs(static_cast<double>(tests.size()) - 200) < 50);
  Recipe other = recipe;
  other.train.seed = 7;
  other.data.where = "label = 'odd'";
  std::vector<int64_t> odd;  // the condition is one on all that data.train names
  std::copy_if(tests.begin(), tests.end(), std::back_inserter(odd),
               [](int64_t number) { return number % 2 == 1; });
  CHECK(numbers_in(*open_test_source(other, false, "")) == odd);
  for (const int64_t number : numbers_in(*open_training_source(other, false).samples)) {
    CHECK(number % 2 == 1);
    CHECK(std::find(tests.begin(), tests.end(), number) == tests.end());
  }
  // A corpus is cut by its input.
  CHECK(open_training_source(recipe, true).samples->count() == 1000);
  CHECK(open_test_source(recipe, true, "")->count() == 1000);
  const std::string few = write_set(folder, "few.csv", numbers_csv(2));
  CHECK_THROWS_WITH_AS(open_test_source(recipe_of({"data.train=" + few, "data.test_share=0.001"}), false, ""),
                       doctest::Contains("give data.test, or another data.test_share"), InputError);
}

TEST_CASE("data.test_by divides what data.where leaves, each source by itself, the same on both sides") {
  const TempFolder folder;
  std::string text = "number,person,day,label\n";
  for (int64_t i = 0; i < 400; ++i)
    text += fmt::format("{},p{},2024-{:02}-01,{}\n", i, i * 7 % 23, 1 + i * 5 % 12,
                        i % 20 == 0 ? "rare" : "usual");
  const std::string path = write_set(folder, "n.csv", text),
                    other = write_set(folder, "o.csv", numbers_csv(40));
  const auto sides = [&](std::vector<std::string> keys, const ClassesOf& classes = nullptr) {
    keys.push_back("data.train=" + path);
    keys.push_back("data.test_share=0.2");
    const Recipe recipe = recipe_of(keys);
    const auto training = open_training_source(recipe, false, 0, classes).samples,
               tests = open_test_source(recipe, false, "", {}, classes);
    const auto a = numbers_in(*training), b = numbers_in(*tests);
    std::set<int64_t> all(a.begin(), a.end());
    all.insert(b.begin(), b.end());
    CHECK(all.size() == a.size() + b.size());
    return std::pair(training, tests);
  };
  const auto values = [](const data::Dataset& set, const char* column) {
    std::map<std::string, int64_t> counts;
    for (int64_t i = 0; i < set.count(); ++i)
      ++counts[std::get<std::string>(set.read(i, set.column(column)))];
    return counts;
  };
  for (const char* where : {"", "data.where=number >= 100"}) {
    std::vector<std::string> keys;
    if (*where) keys.emplace_back(where);
    const int64_t count = *where ? 300 : 400;
    const auto with = [&](const char* by) {
      auto all = keys;
      all.push_back(by);
      return all;
    };
    const auto [people, others] = sides(with("data.test_by=group:person"));
    CHECK(people->count() + others->count() == count);
    for (const auto& [person, found] : values(*people, "person"))
      CHECK_FALSE(values(*others, "person").contains(person));
    CHECK(std::abs(static_cast<double>(others->count()) / static_cast<double>(count) - 0.2) < 0.05);

    const auto [old, recent] = sides(with("data.test_by=time:day"));
    CHECK(old->count() + recent->count() == count);
    CHECK(values(*old, "day").rbegin()->first < values(*recent, "day").begin()->first);

    const auto [most, some] = sides(with("data.test_by=stratified"), [&](const auto& set) {
      std::vector<int64_t> labels;
      for (int64_t i = 0; i < set->count(); ++i)
        labels.push_back(std::get<std::string>(set->read(i, set->column("label"))) == "rare");
      return labels;
    });
    CHECK(values(*some, "label").at("rare") == count / 100);
    CHECK(some->count() == count / 5);
    CHECK(most->count() + some->count() == count);
  }
  const Recipe two = recipe_of({fmt::format("data.train={{a={}, b={}}}", path, other), "data.test_share=0.2",
                                "data.test_by=time:number"});
  CHECK(numbers_in(*open_test_source(two, false, "")) == [] {
    std::vector<int64_t> newest;
    for (int64_t i = 320; i < 400; ++i) newest.push_back(i);
    for (int64_t i = 32; i < 40; ++i) newest.push_back(i);
    return newest;
  }());
  CHECK_THROWS_WITH_AS(sides({"data.test_by=group:persn"}),
                       doctest::Contains("data.test_by = \"group:persn\""), InputError);
  CHECK_THROWS_WITH_AS(sides({"data.test_by=group:persn"}), doctest::Contains("did you mean 'person'?"),
                       InputError);
  CHECK_THROWS_WITH_AS(sides({"data.where=number = 3", "data.test_by=time:day"}),
                       doctest::Contains("have the same 'day'"), InputError);
}

TEST_CASE("several sources follow each other, each with its own share to test on") {
  const TempFolder folder;
  const std::string a = write_set(folder, "a.csv", numbers_csv(300)),
                    b = write_set(folder, "b.csv", numbers_csv(100, 300));
  Recipe recipe = recipe_of({fmt::format("data.train={{a={}, b={}}}", a, b), "data.test_share=0.1"});
  const TrainingSource source = open_training_source(recipe, false);
  REQUIRE(source.parts.size() == 2);
  CHECK(source.parts[0] + source.parts[1] == source.samples->count());
  CHECK(source.parts[1] < 100);
  CHECK(source.samples->count() + open_test_source(recipe, false, "")->count() == 400);
  CHECK(shares_of(recipe, source.parts) == std::vector<double>(source.parts.begin(), source.parts.end()));
  recipe.data.weights = {{"a", 0.3}, {"b", 0.7}};
  CHECK(shares_of(recipe, source.parts) == std::vector<double>{0.3, 0.7});
}

TEST_CASE("sources with other classes have all of them, by their names") {
  const TempFolder folder;
  for (const char* file : {"one/cat/1.txt", "one/dog/1.txt", "two/ant/1.txt", "two/cat/1.txt"}) {
    std::filesystem::create_directories((folder / file).parent_path());
    write_set(folder, file, file);
  }
  const Recipe recipe = recipe_of(
      {fmt::format("data.train={{one={}, two={}}}", (folder / "one").string(), (folder / "two").string())});
  const auto samples = open_training_source(recipe, false).samples;
  std::set<std::string> classes;
  for (int64_t i = 0; i < samples->count(); ++i)
    classes.insert(std::get<std::string>(samples->read(i, samples->column("label"))));
  CHECK(classes == std::set<std::string>{"ant", "cat", "dog"});
}

TEST_CASE("data.header and the texts that a model knows decide how CSV is read") {
  const TempFolder folder;
  const std::string path = write_set(folder, "n.csv", "1,2\n3,4\n");
  CHECK(open_training_source(recipe_of({"data.train=" + path, "data.header=no"}), false).samples->count() ==
        2);
  CHECK(open_training_source(recipe_of({"data.train=" + path, "data.header=yes"}), false).samples->count() ==
        1);
  const std::string codes = write_set(folder, "codes.csv", "code,label\n007,1\n008,2\n009,1\n");
  const auto set =
      open_test_source(recipe_of({"data.train=x"}), false, codes, {.texts = {"code"}, .all = {}});
  CHECK(set->columns()[set->column("code")].kind == data::ColumnKind::text);
  CHECK(std::get<std::string>(set->read(0, set->column("code"))) == "007");
}

TEST_CASE("a missing folder of all data is said with its variable") {
  const char* before = std::getenv("MILLRACE_DATA");
  const std::string kept = before ? before : "";
  ::setenv("MILLRACE_DATA", "/no/such/folder", 1);
  CHECK_THROWS_WITH_AS(open_set("${MILLRACE_DATA}/x.csv"), doctest::Contains("set MILLRACE_DATA"),
                       InputError);
  if (before)
    ::setenv("MILLRACE_DATA", kept.c_str(), 1);
  else
    ::unsetenv("MILLRACE_DATA");
}
