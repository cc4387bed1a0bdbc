#include "nn/models/boosted_round.h"

#include <dlfcn.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <xgboost/c_api.h>

#include "base/format.h"

namespace millrace::nn::models {
namespace {

/// XGBoost's library, loaded when the first rows are given to it: resolving its symbols would be a fifth of
/// the time that the program takes to begin. IoError where it is not there.
void* xgboost_library() {
  static void* const library = [] {
    void* const loaded = dlopen("libxgboost.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!loaded)
      fail<IoError>("boosting needs XGBoost, which cannot be loaded: {}; install Debian's libxgboost0",
                    dlerror());
    return loaded;
  }();
  return library;
}

template <typename Function>
Function* xgboost(const char* name) {
  void* const found = dlsym(xgboost_library(), name);
  if (!found) fail<IoError>("libxgboost.so.0 is of another version of XGBoost: it has no {}", name);
  return reinterpret_cast<Function*>(found);
}
#define XGBOOST(name) xgboost<decltype(::name)>(#name)

/// XGBoost's messages begin with a time and a place and end with its stack.
void require_boosted(int result) {
  if (result == 0) return;
  std::string said = XGBOOST(XGBGetLastError)();
  said = said.substr(0, said.find("\nStack trace"));
  if (const size_t at = said.find(": "); at != std::string::npos && said.starts_with("["))
    said = said.substr(at + 2);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  fail<InputError>("boosting: XGBoost says: {}", said);
}

/// numpy's array interface, by which XGBoost takes arrays.
std::string interface_of(std::span<const float> values, int64_t rows, int64_t columns) {
  return fmt::format(R"({{"data":[{},true],"shape":[{},{}],"typestr":"<f4","version":3}})",
                     reinterpret_cast<uintptr_t>(values.data()), rows, columns);
}

struct Booster {
  explicit Booster(DMatrixHandle rows) { require_boosted(XGBOOST(XGBoosterCreate)(&rows, 1, &handle)); }
  ~Booster() { XGBOOST(XGBoosterFree)(handle); }
  Booster(const Booster&) = delete;
  BoosterHandle handle = nullptr;
};

/// In the order in which a walk from the root meets them level by level, so that children are neighbours and
/// come after their parent.
BoostedTree tree_of(const nlohmann::json& json) {
  const auto left = json.at("left_children").get<std::vector<int32_t>>(),
             right = json.at("right_children").get<std::vector<int32_t>>(),
             column = json.at("split_indices").get<std::vector<int32_t>>();
  const auto condition = json.at("split_conditions").get<std::vector<float>>();
  BoostedTree tree;
  std::vector<size_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t at = order[i];
    const bool leaf = left.at(at) < 0;
    const auto& missing = json.at("default_left").at(at);
    tree.column.push_back(leaf ? 0 : column.at(at));
    tree.threshold.push_back(condition.at(at));
    tree.left.push_back(leaf ? 0 : static_cast<int32_t>(order.size()));
    tree.missing.push_back(!leaf && (missing.is_boolean() ? missing.get<bool>() : missing.get<int>() != 0));
    if (leaf) continue;
    order.push_back(static_cast<size_t>(left.at(at)));
    order.push_back(static_cast<size_t>(right.at(at)));
  }
  return tree;
}

}  // namespace

std::vector<BoostedTree> boosted_trees(std::string_view text) {
  const auto json = nlohmann::json::parse(text);
  std::vector<BoostedTree> made;
  for (const auto& tree : json.at("learner").at("gradient_booster").at("model").at("trees"))
    made.push_back(tree_of(tree));
  return made;
}

BoostedRows::BoostedRows(const Array& x, std::span<const float> labels, int64_t outputs,
                         std::span<const float> weights)
    : count_(x.shape()[0].size()), outputs_(outputs) {
  require_boosted(XGBOOST(XGDMatrixCreateFromMat)(x.as<float>().data(), static_cast<bst_ulong>(count_),
                                                  static_cast<bst_ulong>(x.shape()[1].size()),
                                                  std::numeric_limits<float>::quiet_NaN(), &rows_));
  const int64_t wide = std::ssize(labels) / count_;
  require_boosted(
      XGBOOST(XGDMatrixSetInfoFromInterface)(rows_, "label", interface_of(labels, count_, wide).c_str()));
  if (!weights.empty())
    require_boosted(XGBOOST(XGDMatrixSetFloatInfo)(rows_, "weight", weights.data(), weights.size()));
}

BoostedRows::~BoostedRows() { XGBOOST(XGDMatrixFree)(rows_); }

template <typename Update>
std::vector<BoostedTree> BoostedRows::trees(const Parameters& parameters, Update&& update) {
  Booster booster(rows_);
  for (const auto& [key, value] : parameters)
    require_boosted(XGBOOST(XGBoosterSetParam)(booster.handle, key.c_str(), value.c_str()));
  update(booster.handle);
  bst_ulong length = 0;
  const char* text = nullptr;
  require_boosted(
      XGBOOST(XGBoosterSaveModelToBuffer)(booster.handle, R"({"format":"json"})", &length, &text));
  std::vector<BoostedTree> made = boosted_trees({text, length});
  MILLRACE_CHECK(std::ssize(made) == outputs_, "XGBoost made {} trees, not {}", made.size(), outputs_);
  return made;
}

std::vector<BoostedTree> BoostedRows::round(const Parameters& parameters, std::span<const float> margins) {
  require_boosted(XGBOOST(XGDMatrixSetInfoFromInterface)(rows_, "base_margin",
                                                         interface_of(margins, count_, outputs_).c_str()));
  return trees(parameters, [&](BoosterHandle booster) {
    require_boosted(XGBOOST(XGBoosterUpdateOneIter)(booster, 0, rows_));
  });
}

std::vector<BoostedTree> BoostedRows::round(const Parameters& parameters, std::span<const float> gradients,
                                            std::span<const float> hessians) {
  return trees(parameters, [&](BoosterHandle booster) {
    // XGBoost does not write to them.
    require_boosted(XGBOOST(XGBoosterBoostOneIter)(booster, rows_, const_cast<float*>(gradients.data()),
                                                   const_cast<float*>(hessians.data()), gradients.size()));
  });
}

}  // namespace millrace::nn::models
