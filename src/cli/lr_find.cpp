// A learning rate, found by trying all.
#include "train/lr_find.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>

#include "base/file.h"
#include "base/format.h"
#include "cli/json.h"
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
  const auto& y = found.smoothed;
  if (y.empty()) return {};
  const double low = *std::min_element(y.begin(), y.end()), start = y.front();
  const double high = std::max(start, low) + 0.4 * std::max(start - low, 1e-9 + 1e-3 * std::abs(start));
  return {low, high};
}

/// The smoothed losses over the logarithm of the rate, and under it the decades.
std::string rate_plot(const train::RateFinding& found) {
  constexpr int columns = 72, rows = 14;
  const ShownRange shown = shown_range(found);
  std::vector<std::string> lines(rows, std::string(columns, ' '));
  const double from = std::log10(found.rates.front()), to = std::log10(found.rates.back());
  const auto column = [&](double rate) {
    const double part = to > from ? (std::log10(rate) - from) / (to - from) : 0;
    return std::clamp(static_cast<int>(std::lround(part * (columns - 1))), 0, columns - 1);
  };
  if (found.suggested && *found.suggested >= found.rates.front())
    for (std::string& line : lines) line[static_cast<size_t>(column(*found.suggested))] = '|';
  for (size_t i = 0; i < found.smoothed.size(); ++i) {
    const double part = (found.smoothed[i] - shown.low) / (shown.high - shown.low);
    if (part > 1) continue;
    const int row = std::clamp(static_cast<int>(std::lround((1 - part) * (rows - 1))), 0, rows - 1);
    lines[static_cast<size_t>(row)][static_cast<size_t>(column(found.rates[i]))] = '*';
  }
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const double value = shown.high - (shown.high - shown.low) * row / (rows - 1);
    text += fmt::format("{:>9} {}\n", row % 4 == 0 || row == rows - 1 ? fmt::format("{:.4g}", value) : "",
                        lines[row]);
  }
  std::string axis(columns + 8, ' ');
  for (int decade = static_cast<int>(std::ceil(from - 1e-9)); decade <= to + 1e-9; ++decade) {
    const std::string label = fmt::format("1e{}", decade);
    const auto at = static_cast<size_t>(column(std::pow(10, decade)));
    if (axis[at] == ' ' && (at == 0 || axis[at - 1] == ' ')) axis.replace(at, label.size(), label);
  }
  axis.resize(axis.find_last_not_of(' ') + 1);
  return text + fmt::format("{:>9} {}\n", "rate", axis);
}

std::string rate_svg(const train::RateFinding& found, const std::string& title) {
  constexpr double width = 800, height = 420, left = 70, right = 20, top = 50, bottom = 50;
  const ShownRange shown = shown_range(found);
  const double from = std::log10(found.rates.front()), to = std::log10(found.rates.back());
  const auto x = [&](double rate) {
    return left + (width - left - right) * (to > from ? (std::log10(rate) - from) / (to - from) : 0);
  };
  const auto y = [&](double loss) {
    const double part = std::clamp((loss - shown.low) / (shown.high - shown.low), 0.0, 1.0);
    return height - bottom - (height - top - bottom) * part;
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n"
      "<text x=\"{2}\" y=\"24\" font-size=\"15\">{3}</text>\n",
      width, height, left, title);
  for (int decade = static_cast<int>(std::ceil(from - 1e-9)); decade <= to + 1e-9; ++decade)
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#e3e6ea\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">1e{4}</text>\n",
        x(std::pow(10, decade)), top, height - bottom, height - bottom + 18, decade);
  for (int k = 0; k <= 4; ++k) {
    const double value = shown.low + (shown.high - shown.low) * k / 4;
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n", left - 8,
                       y(value) + 4, value);
  }
  svg += "<g fill=\"#b9c2cc\">\n";
  for (size_t i = 0; i < found.losses.size(); ++i)
    if (std::isfinite(found.losses[i]))
      svg +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"/>", x(found.rates[i]), y(found.losses[i]));
  svg += "\n</g>\n<polyline fill=\"none\" stroke=\"#2f7ed8\" stroke-width=\"2\" points=\"";
  for (size_t i = 0; i < found.smoothed.size(); ++i)
    svg += fmt::format("{:.1f},{:.1f} ", x(found.rates[i]), y(found.smoothed[i]));
  svg += "\"/>\n";
  if (found.suggested)
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#d9822b\" stroke-dasharray=\"4 "
        "3\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" fill=\"#d9822b\" text-anchor=\"middle\">{4:.2g}</text>\n",
        x(std::max(*found.suggested, found.rates.front())), top, height - bottom, top - 6, *found.suggested);
  return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">learning rate</text>\n</svg>\n",
                           width / 2, height - 12);
}

Json rates_json(const LrFindArguments& a, const train::RateFinding& found) {
  const auto list = [](const std::vector<double>& values) {
    return Json(std::vector<Json>(values.begin(), values.end()));
  };
  const auto maybe = [](const std::optional<double>& value) { return Json(value.value_or(NAN)); };
  return json_object({{"recipe", Json(a.recipe)},
                      {"suggested", maybe(found.suggested)},
                      {"why", found.why},
                      {"steepest", maybe(found.steepest)},
                      {"diverged", maybe(found.diverged)},
                      {"rates", list(found.rates)},
                      {"losses", list(found.losses)},
                      {"smoothed", list(found.smoothed)}});
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
    fmt::print("{}\n", rates_json(a, found).text);
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
      .option("--steps", a->sweep.steps, "how many rates, one a step")
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
