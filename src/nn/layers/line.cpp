// Lines such as "conv 32 3 stride=2" taken apart.
#include <charconv>
#include <cmath>
#include <sstream>

#include "base/format.h"
#include "nn/layers/layer.h"

namespace millrace::nn {
namespace {

int64_t whole_number(const LayerLine& line, double value, std::string_view what) {
  const auto rounded = value >= 0 && value <= 1e15 ? static_cast<int64_t>(value) : int64_t{-1};
  if (rounded < 0 || static_cast<double>(rounded) != value)
    line.error(fmt::format("the {} must be a whole number, not {}", what, value));
  return rounded;
}

double parse_number(const LayerLine& line, std::string_view word) {
  double value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    line.error(fmt::format("'{}' is not a number", word));
  return value;
}

}  // namespace

void LayerLine::error(const std::string& what) const { fail<InputError>("layer '{}': {}", text, what); }

double LayerLine::number(size_t i, std::string_view what) const {
  if (i >= numbers.size()) error(fmt::format("the {} is missing", what));
  return numbers[i];
}

int64_t LayerLine::whole(size_t i, std::string_view what) const {
  const int64_t value = whole_number(*this, number(i, what), what);
  if (value < 1) error(fmt::format("the {} must be at least 1", what));
  return value;
}

double LayerLine::option(const std::string& key, double otherwise) const {
  for (const auto& [given, value] : options)
    if (given == key) return value;
  return otherwise;
}

int64_t LayerLine::whole_option(const std::string& key, int64_t otherwise) const {
  return whole_number(*this, option(key, static_cast<double>(otherwise)), key);
}

namespace layers {

LayerLine parse_line(const std::string& text) {
  LayerLine line{text, {}, {}, {}};
  std::istringstream words(text);
  words >> line.name;
  for (std::string word; words >> word;) {
    const size_t sign = word.find('=');
    if (sign == std::string::npos)
      line.numbers.push_back(parse_number(line, word));
    else
      line.options.emplace_back(word.substr(0, sign),
                                parse_number(line, std::string_view(word).substr(sign + 1)));
  }
  for (size_t i = 0; i < line.options.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (line.options[i].first == line.options[k].first)
        line.error(fmt::format("the option '{}' is given twice", line.options[i].first));
  return line;
}

int64_t features_of(const LayerLine& line, const Tensor& x, int axis) {
  if (!x.dim(axis).is_static())
    line.error(fmt::format("the input {} has no fixed number of features", x.type().str()));
  return x.dim(axis).size();
}

void need_pictures(const LayerLine& line, const Tensor& x) {
  if (x.rank() != 4)
    line.error(fmt::format("the input must be [batch, channels, height, width], not {}", x.type().str()));
}

}  // namespace layers
}  // namespace millrace::nn
