#include "cli/plot.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "cli/svg_text.h"

namespace millrace::cli {
namespace {

constexpr int plot_columns = 72, plot_rows = 14;
constexpr double svg_width = 800, svg_height = 420, svg_left = 70, svg_right = 20, svg_top = 50,
                 svg_bottom = 50;

}  // namespace

double PlotRange::along(double x) const { return to > from ? std::log(x / from) / std::log(to / from) : 0; }

std::vector<std::pair<double, std::string>> decades(double from, double to) {
  std::vector<std::pair<double, std::string>> ticks;
  const double last = std::log10(to) + 1e-9;
  for (int decade = static_cast<int>(std::ceil(std::log10(from) - 1e-9)); decade <= last; ++decade)
    ticks.emplace_back(std::pow(10, decade), fmt::format("1e{}", decade));
  return ticks;
}

TextPlot::TextPlot(PlotRange range)
    : range_(std::move(range)), lines_(plot_rows, std::string(plot_columns, ' ')) {}

int TextPlot::column_of(double x) const {
  return std::clamp(static_cast<int>(std::lround(range_.along(x) * (plot_columns - 1))), 0, plot_columns - 1);
}

void TextPlot::column(double x, char c) {
  for (std::string& line : lines_) line[static_cast<size_t>(column_of(x))] = c;
}

void TextPlot::mark(double x, double y, char c) {
  const double part = range_.up(y);
  if (!(part <= 1)) return;
  const int row = std::clamp(static_cast<int>(std::lround((1 - part) * (plot_rows - 1))), 0, plot_rows - 1);
  lines_[static_cast<size_t>(row)][static_cast<size_t>(column_of(x))] = c;
}

std::string TextPlot::text() const {
  std::string text;
  for (int row = 0; row < plot_rows; ++row) {
    double value = range_.high - (range_.high - range_.low) * row / (plot_rows - 1);
    if (std::abs(value) < 1e-9 * (range_.high - range_.low)) value = 0;  // what rounding leaves of it
    text +=
        fmt::format("{:>9} {}\n", row % 4 == 0 || row == plot_rows - 1 ? fmt::format("{:.4g}", value) : "",
                    lines_[static_cast<size_t>(row)]);
  }
  std::string axis(plot_columns + 8, ' ');
  for (const auto& [x, label] : range_.ticks) {
    const auto at = static_cast<size_t>(column_of(x));
    if (axis[at] == ' ' && (at == 0 || axis[at - 1] == ' ')) axis.replace(at, label.size(), label);
  }
  axis.resize(axis.find_last_not_of(' ') + 1);
  return text + fmt::format("{:>9} {}\n", range_.x_name, axis);
}

SvgPlot::SvgPlot(PlotRange range, const std::string& title) : range_(std::move(range)) {
  svg_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n"
      "<text x=\"{2}\" y=\"24\" font-size=\"15\">{3}</text>\n",
      svg_width, svg_height, svg_left, svg_escaped(title));
  for (const auto& [x, label] : range_.ticks)
    svg_ += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#e3e6ea\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        place_x(x), svg_top, svg_height - svg_bottom, svg_height - svg_bottom + 18, svg_escaped(label));
  for (int k = 0; k <= 4; ++k) {
    const double value = range_.low + (range_.high - range_.low) * k / 4;
    svg_ += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n", svg_left - 8,
                        place_y(value) + 4, value);
  }
}

double SvgPlot::place_x(double x) const {
  return svg_left + (svg_width - svg_left - svg_right) * range_.along(x);
}

double SvgPlot::place_y(double y) const {
  return svg_height - svg_bottom - (svg_height - svg_top - svg_bottom) * std::clamp(range_.up(y), 0.0, 1.0);
}

void SvgPlot::dots(std::span<const double> x, std::span<const double> y, const char* colour, double radius) {
  svg_ += fmt::format("<g fill=\"{}\">\n", colour);
  for (size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(y[i]))
      svg_ +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", place_x(x[i]), place_y(y[i]), radius);
  svg_ += "\n</g>\n";
}

void SvgPlot::line(std::span<const double> x, std::span<const double> y, const char* colour) {
  svg_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"", colour);
  for (size_t i = 0; i < x.size(); ++i) svg_ += fmt::format("{:.1f},{:.1f} ", place_x(x[i]), place_y(y[i]));
  svg_ += "\"/>\n";
}

void SvgPlot::band(std::span<const double> x, std::span<const double> low, std::span<const double> high,
                   const char* colour) {
  svg_ += fmt::format("<polygon fill=\"{}\" points=\"", colour);
  for (size_t i = 0; i < x.size(); ++i) svg_ += fmt::format("{:.1f},{:.1f} ", place_x(x[i]), place_y(low[i]));
  for (size_t i = x.size(); i > 0; --i)
    svg_ += fmt::format("{:.1f},{:.1f} ", place_x(x[i - 1]), place_y(high[i - 1]));
  svg_ += "\"/>\n";
}

void SvgPlot::vertical(double x, const std::string& label, const char* colour) {
  svg_ += fmt::format(
      "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"{5}\" stroke-dasharray=\"4 3\"/>"
      "<text x=\"{0:.1f}\" y=\"{3}\" fill=\"{5}\" text-anchor=\"middle\">{4}</text>\n",
      place_x(x), svg_top, svg_height - svg_bottom, svg_top - 6, svg_escaped(label), colour);
}

std::string SvgPlot::text() const {
  return svg_ + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n</svg>\n",
                            svg_width / 2, svg_height - 12, range_.x_name);
}

}  // namespace millrace::cli
