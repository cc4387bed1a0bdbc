#include "base/registry.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

using namespace millrace;

namespace {

struct Animal {
  std::string name;
  int place = 0;
};
struct Plant {
  std::string name, doc;
};

}  // namespace

TEST_CASE("kinds come by place, as they were added where it is the same") {
  const Animal cat{"cat", 20}, dog{"dog", 10}, eel{"eel", 20};
  Registry<Animal> animals("animal", {&cat, &dog, &eel});
  const std::vector<const Animal*>& before = animals.all();
  const Animal& fox = animals.add({"fox", 15});
  CHECK(animals.add({"gnu"}).name == "gnu");
  CHECK(animals.names() == std::vector<std::string>{"gnu", "dog", "fox", "cat", "eel"});
  CHECK(&animals.at("fox") == &fox);
  CHECK(animals.find("cow") == nullptr);
  // Who goes through a list goes on with it.
  CHECK(before == std::vector<const Animal*>{&dog, &cat, &eel});
}

TEST_CASE("kinds that are there already, have no proper name, or lack a part are refused") {
  const Animal cat{"cat", 20};
  Registry<Animal> animals("animal", {&cat});
  CHECK_THROWS_WITH_AS(animals.add({"cat"}), "there is an animal 'cat' already", InputError);
  animals.add({"dog"});
  CHECK_THROWS_WITH_AS(animals.add({"dog"}), "there is an animal 'dog' already", InputError);
  for (const char* name : {"", "two words", "a=b", "a,b"})
    CHECK_THROWS_WITH_AS(animals.add({name}), doctest::Contains("the name of an animal must be one word"),
                         InputError);
  CHECK_THROWS_WITH_AS(animals.add({"eel"}, {{"legs", true}, {"fins", false}}),
                       "the animal 'eel' lacks its `fins`", InputError);
  CHECK(animals.names() == std::vector<std::string>{"dog", "cat"});
  CHECK_THROWS_WITH_AS(animals.at("cad"), "there is no animal 'cad'; did you mean 'cat'? (dog, cat)",
                       InputError);
  Registry<Plant> plants("plant", {});
  CHECK_THROWS_WITH_AS(plants.add({"ash", ""}), "the plant 'ash' lacks its `doc`", InputError);
  CHECK(plants.add({"elm", "a tree"}).doc == "a tree");
}

TEST_CASE("what a kind's function makes is something") {
  CHECK(*made_by("animal", "cat", std::make_unique<int>(4)) == 4);
  CHECK_THROWS_WITH_AS(made_by("animal", "cat", std::unique_ptr<int>()),
                       "the animal 'cat' makes nothing: its function gives null", InputError);
}
