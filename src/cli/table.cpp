#include "cli/table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"
#include "cli/progress.h"

namespace millrace::cli {
namespace {

/// What would break the table, as C writes it.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text)
    if (c == '\n')
      line += "\\n";
    else if (c == '\t')
      line += "\\t";
    else
      line += c;
  return printable(line);
}

struct Unit {
  double size;
  const char* name;
};

std::string with_unit(double value, std::initializer_list<Unit> units, const char* smallest) {
  for (const Unit& unit : units)
    if (value >= unit.size) return fmt::format("{} {}", number_text(value / unit.size), unit.name);
  return fmt::format("{:.0f} {}", value, smallest);
}

}  // namespace

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    left_.push_back(title.starts_with("<"));
    if (left_.back() || title.starts_with(">")) title.erase(0, 1);
    title = on_one_line(title);
  }
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(titles_.size());
  for (std::string& cell : cells) cell = on_one_line(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::str() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < titles_.size(); ++c) {
    widths.push_back(code_points(titles_[c]));
    for (const auto& cells : rows_) widths[c] = std::max(widths[c], code_points(cells[c]));
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    text += "  ";
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string padding(widths[c] - code_points(cells[c]), ' ');
      const bool last = c + 1 == cells.size();
      text += left_[c] ? cells[c] + (last ? "" : padding) : padding + cells[c];
      text += last ? "\n" : "  ";
    }
  };
  line(titles_);
  for (const auto& cells : rows_) line(cells);
  return text;
}

std::string number_text(double value) {
  const double size = std::abs(value);
  if (size >= 1000) return thousands(std::llround(value));
  return size >= 100  ? fmt::format("{:.0f}", value)
         : size >= 10 ? fmt::format("{:.1f}", value)
                      : fmt::format("{:.2f}", value);
}

std::string time_text(double seconds) {
  if (seconds >= 1) return number_text(seconds) + " s";
  return seconds >= 1e-3 ? number_text(1e3 * seconds) + " ms" : number_text(1e6 * seconds) + " µs";
}

std::string bytes_text(double bytes) {
  return with_unit(bytes, {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}, "B");
}

std::string flops_text(double flops) {
  return with_unit(flops, {{1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}, {1e3, "kFLOP"}}, "FLOP");
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  return percent < 9.95 && percent > 0 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

}  // namespace millrace::cli
