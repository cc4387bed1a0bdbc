#include <filesystem>
#include <fmt/core.h>

#include "base/format.h"
#include "cli/verbs.h"
#include "train/trainer.h"

namespace millrace::cli {

Action declare_explain(Command& command) {
  struct Arguments {
    std::string recipe;
    std::vector<std::string> overrides;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("RECIPE", a->recipe, "a recipe, or a run folder")
      .positional("KEY=VALUE", a->overrides, "changes of the recipe", false)
      .footer(
          "Compiles the training step and prints every launch: kernel, provider, layouts, why other "
          "providers declined;\n"
          "then the memory of a step and the tensors that make its peak. Nothing is trained.\n\n"
          "  millrace explain examples/cifar10.toml train.precision=fp32\n");
  return [a] {
    const std::filesystem::path path = std::filesystem::is_directory(a->recipe)
                                           ? train::RunFolder::open(a->recipe).recipe()
                                           : std::filesystem::path(a->recipe);
    const train::Recipe recipe = train::load_recipe(path, a->overrides);
    train::check_recipe(recipe, path.string());
    train::Observer observer;
    observer.message = [](const std::string& line) { fmt::print("{}\n", line); };
    train::Trainer trainer(recipe, observer);
    fmt::print("{}\n", trainer.explain());
    return 0;
  };
}

}  // namespace millrace::cli
