// Curves over a logarithmic axis, for a terminal and as SVG.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace::cli {

/// What is shown. Beyond the ends in y nothing is drawn.
struct PlotRange {
  double from = 1, to = 10;  // x, above 0
  double low = 0, high = 1;
  std::string x_name;
  std::vector<std::pair<double, std::string>> ticks;  // of x
  /// 0 … 1 from one end to the other.
  double along(double x) const;
  double up(double y) const { return (y - low) / (high - low); }
};
/// "1e-3", "1e-2" … between both.
std::vector<std::pair<double, std::string>> decades(double from, double to);

class TextPlot {
 public:
  explicit TextPlot(PlotRange range);
  void column(double x, char c);
  void mark(double x, double y, char c);
  /// The plot with the values of some rows before it, and its ticks under it.
  std::string text() const;

 private:
  int column_of(double x) const;
  PlotRange range_;
  std::vector<std::string> lines_;
};

class SvgPlot {
 public:
  SvgPlot(PlotRange range, const std::string& title);
  void dots(std::span<const double> x, std::span<const double> y, const char* colour, double radius);
  void line(std::span<const double> x, std::span<const double> y, const char* colour);
  /// Between two curves.
  void band(std::span<const double> x, std::span<const double> low, std::span<const double> high,
            const char* colour);
  void vertical(double x, const std::string& label, const char* colour);
  std::string text() const;

 private:
  double place_x(double x) const;
  double place_y(double y) const;
  PlotRange range_;
  std::string svg_;
};

}  // namespace millrace::cli
