#include "train/loss_proxy.h"

#include <doctest/doctest.h>

#include "base/file.h"
#include "support/temp_folder.h"

using namespace millrace;

TEST_CASE("evaluations are read from the lines of epochs, and a weak correlation is said") {
  const testing::TempFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  write_file(path,
             "{\"step\": 1, \"loss\": 9}\n"
             "{\"step\": 2, \"train/loss\": 0.9, \"test/accuracy\": 0.5}\n"
             "{\"step\": 2, \"note\": \"test/accuracy\"}\n"
             "{\"step\": 4, \"train/loss\": 0.5, \"test/accuracy\": null}\n"
             "{\"step\": 6, \"train/loss\": 0.4, \"test/accuracy\": 0.8}\n");
  train::LossProxy proxy = train::read_loss_proxy(path, "accuracy", true);
  CHECK(proxy.losses == std::vector<double>{0.9, 0.4});
  CHECK(proxy.values == std::vector<double>{0.5, 0.8});
  CHECK(proxy.correlation() == doctest::Approx(1));
  CHECK(train::read_loss_proxy(path, "f1", true).losses.empty());
  proxy.losses = {5, 4, 3, 2, 1};
  proxy.values = {0.5, 0.6, 0.7, 0.8, 0.9};
  CHECK(train::loss_proxy_text(proxy, "accuracy", false).empty());
  proxy.values = {0.6, 0.5, 0.7, 0.65, 0.55};
  CHECK(train::loss_proxy_text(proxy, "accuracy", true) ==
        "the training loss says little of test accuracy: their rank correlation over 5 evaluations is 0.10 "
        "(1: the lower the loss, the better)");
  proxy.values = {0.9, 0.8, 0.7, 0.6, 0.5};
  const std::string opposite = train::loss_proxy_text(proxy, "accuracy", false);
  CHECK(opposite.find("the opposite of test accuracy") != std::string::npos);
  CHECK(opposite.find("train.keep_best = \"accuracy\"") != std::string::npos);
  proxy.higher_is_better = false;
  CHECK(train::loss_proxy_text(proxy, "mae", false).empty());
  proxy.losses.pop_back();
  proxy.values = {0.6, 0.5, 0.7, 0.65};
  CHECK(train::loss_proxy_text(proxy, "accuracy", false).empty());  // too few
}
