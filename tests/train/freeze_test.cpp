#include "train/freeze.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

using namespace millrace;
using train::freeze_due;

TEST_CASE("a layer or a parameter trains for its epochs, to the step") {
  nn::Model model = nn::make_layers({"linear 4", "relu", "linear 3"}, {5});
  nn::Module& module = *model.module;
  const auto freezes = train::parse_freezes({"0 1.4", "2.bias 3"}, module, 5);
  const auto trained = [&] {
    std::string names;
    for (const nn::Named& each : module.parameters())
      if (each.trainable) names += each.name + " ";
    return names;
  };
  const std::string all = trained();
  CHECK_FALSE(freeze_due(module, freezes, 6));
  CHECK(trained() == all);
  CHECK(freeze_due(module, freezes, 7));
  CHECK(trained() == "2.weight 2.bias ");
  CHECK_FALSE(freeze_due(module, freezes, 14));
  CHECK(freeze_due(module, freezes, 15));
  CHECK(trained() == "2.weight ");
  CHECK_THROWS_WITH_AS(train::parse_freezes({"2.bia 3"}, module, 5),
                       doctest::Contains("did you mean '2.bias'"), InputError);
}
