#include "train/loss_proxy.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"
#include "eval/spearman.h"

namespace millrace::train {

double LossProxy::correlation() const {
  const double rho = eval::spearman(losses, values);
  return higher_is_better ? -rho : rho;
}

LossProxy read_loss_proxy(const std::filesystem::path& metrics, const std::string& metric,
                          bool higher_is_better) {
  LossProxy proxy{{}, {}, higher_is_better};
  const std::string text = read_text(metrics), name = "test/" + metric, key = nlohmann::json(name).dump();
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at)) {
    const size_t begin = text.rfind('\n', at) + 1, end = std::min(text.find('\n', at), text.size());
    const auto line = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                            text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    at = end;
    if (!line.is_object() || !line.contains(name) || !line.contains("train/loss") ||
        !line[name].is_number() || !line["train/loss"].is_number())
      continue;
    proxy.losses.push_back(line["train/loss"].get<double>());
    proxy.values.push_back(line[name].get<double>());
  }
  return proxy;
}

std::string loss_proxy_text(const LossProxy& proxy, const std::string& metric, bool chosen) {
  constexpr size_t enough = 5;
  constexpr double weak = 0.5;
  const double rho = proxy.correlation();
  if (proxy.losses.size() < enough || !(rho < weak)) return {};
  return fmt::format(
      "the training loss says {} of test {}: their rank correlation over {} evaluations is {:.2f} (1: the "
      "lower the loss, the better){}",
      rho < -weak ? "the opposite" : "little", metric, proxy.losses.size(), rho,
      chosen ? "" : fmt::format("; train.keep_best = \"{}\" keeps the best by that", metric));
}

}  // namespace millrace::train
