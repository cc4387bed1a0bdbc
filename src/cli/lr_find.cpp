// A learning rate, found by trying all.
#include "train/lr_find.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/file.h"
#include "base/format.h"
#include "cli/json.h"
#include "cli/plot.h"
#include "cli/progress.h"
#include "cli/verbs.h"

namespace millrace::cli {
namespace {

struct LrFindArguments {
  std::string recipe, svg;
  std::vector<std::string> overrides;
  train::RateSweep sweep;
  bool json = false;
};

/// What is shown of the losses: a rise far above the start would flatten all else.
struct ShownRange {
  double low = 0, high = 1;
};

ShownRange shown_range(const train::RateFinding& found) {
  if (found.smoothed.empty()) return {};
  std::vector<double> y = found.smoothed;
  const double start = y.front();
  std::sort(y.begin(), y.end());
  const double low = y.front(), most = y[3 * y.size() / 4];
  return {low, std::max(most, start + 0.4 * std::max(start - low, 1e-9 + 1e-3 * std::abs(start)))};
}

PlotRange plot_range(const train::RateFinding& found, const std::string& x_name) {
  const ShownRange shown = shown_range(found);
  const double from = found.rates.front(), to = found.rates.back();
  return {from, to, shown.low, shown.high, x_name, decades(from, to)};
}

/// The smoothed losses over the logarithm of the rate, and under it the decades.
std::string rate_plot(const train::RateFinding& found) {
  TextPlot plot(plot_range(found, "rate"));
  if (found.suggested && *found.suggested >= found.rates.front()) plot.column(*found.suggested, '|');
  for (size_t i = 0; i < found.smoothed.size(); ++i) plot.mark(found.rates[i], found.smoothed[i], '*');
  return plot.text();
}

std::string rate_svg(const train::RateFinding& found, const std::string& title) {
  SvgPlot plot(plot_range(found, "learning rate"), title);
  const std::span rates(found.rates);
  plot.dots(rates.first(found.losses.size()), found.losses, "#b9c2cc", 2);
  plot.line(rates.first(found.smoothed.size()), found.smoothed, "#2f7ed8");
  if (found.suggested)
    plot.vertical(std::max(*found.suggested, found.rates.front()), fmt::format("{:.2g}", *found.suggested),
                  "#d9822b");
  return plot.text();
}

Json rates_json(const LrFindArguments& a, const train::RateFinding& found) {
  const auto maybe = [](const std::optional<double>& value) { return Json(value.value_or(NAN)); };
  return json_object({{"recipe", Json(a.recipe)},
                      {"suggested", maybe(found.suggested)},
                      {"why", found.why},
                      {"steepest", maybe(found.steepest)},
                      {"diverged", maybe(found.diverged)},
                      {"rates", found.rates},
                      {"losses", found.losses},
                      {"smoothed", found.smoothed}});
}

int run_lr_find(const LrFindArguments& a) {
  const task::Recipe recipe = train::recipe_of(a.recipe, a.overrides);
  Progress progress(stderr);
  train::Observer observer;
  observer.busy = [&](const std::string& what, int64_t done, int64_t total) {
    progress.count(what + " ", done, total);
  };
  const train::RateFinding found = train::find_rate(recipe, a.sweep, observer);
  progress.finish();
  if (!a.svg.empty())
    write_file(a.svg, rate_svg(found, "loss over the learning rate: " + recipe.train.optimizer.kind));
  if (a.json) {
    print_json(rates_json(a, found));
    return 0;
  }
  if (!found.smoothed.empty()) fmt::print("{}\n", rate_plot(found));
  if (found.steepest) fmt::print("  the loss falls fastest at {:.2g}\n", *found.steepest);
  if (found.diverged) fmt::print("  it diverges at {:.2g}\n", *found.diverged);
  if (!a.svg.empty()) fmt::print("  drawn: {}\n", a.svg);
  if (found.suggested)
    fmt::print("\ntrain.optimizer.lr={:.2g}  ({})\n", *found.suggested, found.why);
  else
    fmt::print("\nno rate to suggest: {}\n", found.why);
  return 0;
}

Action declare_lr_find(Command& command) {
  auto a = std::make_shared<LrFindArguments>();
  command.positional("RECIPE", a->recipe, "a recipe, or a run folder")
      .positional("KEY=VALUE", a->overrides, "changes of the recipe", false)
      .option("--from", a->sweep.low, "the lowest rate")
      .option("--to", a->sweep.high, "the highest rate")
      .option("--steps", a->sweep.steps,
              "how many rates, one a step (default: 100, or up to 1,600 where these say little)")
      .option("--svg", a->svg, "draw the curve into this file")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Trains for some steps while the rate grows from very low to very high, and suggests the one at "
          "which the\n"
          "loss falls fastest, or a tenth of the one at which it diverges where that is less. Nothing is "
          "written but\n"
          "the drawing.\n\n"
          "  millrace lr-find examples/cifar10.toml\n"
          "  millrace lr-find examples/cifar10.toml train.optimizer=lion --steps 200 --svg rates.svg\n");
  return [a] { return run_lr_find(*a); };
}

}  // namespace

MILLRACE_VERB(lr_find){"lr-find", "suggest a learning rate: a sweep over all, and what the loss does",
                       declare_lr_find, 105};

}  // namespace millrace::cli
