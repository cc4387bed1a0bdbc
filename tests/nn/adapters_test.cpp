#include <doctest/doctest.h>
#include <memory>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>

#include "support/random_graph.h"

using namespace millrace;

TEST_CASE("an adapter begins as nothing, and merged gives what it gave beside the weights") {
  nn::Sequential model({std::make_shared<nn::Linear>(6, 5), std::make_shared<nn::Linear>(5, 4, false)});
  auto& first = dynamic_cast<nn::Linear&>(*model.modules()[1].second);
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, -1, 0.5, 2, 0, 1, -2};
  const Tensor x = Tensor(Array::of(f32, {2, 6}, values));
  model.initialise(1);
  const Array plain = model(x).to_array();
  first.adapt(2, 6);
  model.initialise(1);
  CHECK(model.parameters().size() == 5);
  CHECK(model(x).to_array().identical(plain));
  Array b = model.find("0.lora.b")->to_array().clone();
  for (int64_t i = 0; i < b.count(); ++i) b.set(i, 0.1 * static_cast<double>(i) - 0.3);
  *model.find("0.lora.b") = Tensor(b);
  const Array beside = model(x).to_array();
  CHECK(test::difference(beside, plain) > 0.1);
  {
    const nn::MergedAdapters merged(model);
    CHECK(model.parameters().size() == 3);
    CHECK(test::difference(model(x).to_array(), beside) < 1e-6);
  }
  CHECK(model.parameters().size() == 5);
  CHECK(model(x).to_array().identical(beside));
  CHECK_THROWS_WITH_AS(first.adapt(5, 6), doctest::Contains("as many weights"), InputError);
}
