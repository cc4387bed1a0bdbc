// Models from lines: "conv 32 3", "batch-norm", "relu", "max-pool 2", "flatten", "linear 10".
#include <charconv>
#include <cmath>
#include <sstream>

#include <millrace/nn.h>

#include "base/format.h"
#include "base/suggest.h"
#include "nn/models/models.h"

namespace millrace::nn {
namespace {

/// One line taken apart: name, numbers in order, and key=value pairs.
struct Line {
  std::string text, name;
  std::vector<double> numbers;
  std::vector<std::pair<std::string, double>> options;

  [[noreturn]] void error(const std::string& what) const { fail<InputError>("layer '{}': {}", text, what); }

  double number(size_t i, std::string_view what) const {
    if (i >= numbers.size()) error(fmt::format("the {} is missing", what));
    return numbers[i];
  }
  int64_t whole(size_t i, std::string_view what) const {
    const int64_t value = to_whole(number(i, what), what);
    if (value < 1) error(fmt::format("the {} must be at least 1", what));
    return value;
  }
  int64_t whole_or(size_t i, std::string_view what, int64_t otherwise) const {
    return i < numbers.size() ? whole(i, what) : otherwise;
  }
  double option(const std::string& key, double otherwise) const {
    for (const auto& [name_given, value] : options)
      if (name_given == key) return value;
    return otherwise;
  }
  int64_t whole_option(const std::string& key, int64_t otherwise) const {
    return to_whole(option(key, static_cast<double>(otherwise)), key);
  }

 private:
  int64_t to_whole(double value, std::string_view what) const {
    const auto rounded = value >= 0 && value <= 1e15 ? static_cast<int64_t>(value) : int64_t{-1};
    if (rounded < 0 || static_cast<double>(rounded) != value)
      error(fmt::format("the {} must be a whole number, not {}", what, value));
    return rounded;
  }
};

double parse_number(const Line& line, std::string_view word) {
  double value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    line.error(fmt::format("'{}' is not a number", word));
  return value;
}

using Maker = std::shared_ptr<Module> (*)(const Line& line, const Tensor& x);

struct LayerKind {
  std::string name, arguments;
  size_t most_numbers;
  std::vector<std::string> options;
  Maker make;
};

int64_t features_of(const Line& line, const Tensor& x, int axis) {
  if (!x.dim(axis).is_static())
    line.error(fmt::format("the input {} has no fixed number of features", x.type().str()));
  return x.dim(axis).size();
}

void need_pictures(const Line& line, const Tensor& x) {
  if (x.rank() != 4)
    line.error(fmt::format("the input must be [batch, channels, height, width], not {}", x.type().str()));
}

const std::vector<LayerKind>& kinds() {
  static const std::vector<LayerKind> list = {
      {"conv",
       "CHANNELS KERNEL [stride=1] [padding=KERNEL/2] [dilation=1] [groups=1] [bias=1]",
       2,
       {"stride", "padding", "dilation", "groups", "bias"},
       [](const Line& line, const Tensor& x) -> std::shared_ptr<Module> {
         need_pictures(line, x);
         const int64_t kernel = line.whole(1, "kernel"), in = features_of(line, x, 1),
                       groups = line.whole_option("groups", 1);
         if (groups < 1 || in % groups != 0)
           line.error(fmt::format("{} channels cannot form {} groups", in, groups));
         return std::make_shared<Conv2d>(in, line.whole(0, "number of channels"), kernel,
                                         ConvOptions{.stride = line.whole_option("stride", 1),
                                                     .padding = line.whole_option("padding", kernel / 2),
                                                     .dilation = line.whole_option("dilation", 1),
                                                     .groups = groups,
                                                     .bias = line.option("bias", 1) != 0});
       }},
      {"linear",
       "FEATURES [bias=1]",
       1,
       {"bias"},
       [](const Line& line, const Tensor& x) -> std::shared_ptr<Module> {
         if (x.rank() > 2)
           line.error(fmt::format("the input is {}; put \"flatten\" before it", x.type().str()));
         return std::make_shared<Linear>(features_of(line, x, -1), line.whole(0, "number of features"),
                                         line.option("bias", 1) != 0);
       }},
      {"batch-norm",
       "[momentum=0.1] [eps=1e-5]",
       0,
       {"momentum", "eps"},
       [](const Line& line, const Tensor& x) -> std::shared_ptr<Module> {
         return std::make_shared<BatchNorm>(
             features_of(line, x, 1),
             BatchNormOptions{.epsilon = line.option("eps", 1e-5), .momentum = line.option("momentum", 0.1)});
       }},
      {"layer-norm",
       "",
       0,
       {},
       [](const Line& line, const Tensor& x) -> std::shared_ptr<Module> {
         return std::make_shared<LayerNorm>(features_of(line, x, -1));
       }},
      {"rms-norm",
       "",
       0,
       {},
       [](const Line& line, const Tensor& x) -> std::shared_ptr<Module> {
         return std::make_shared<RMSNorm>(features_of(line, x, -1));
       }},
      {"embedding",
       "ROWS WIDTH",
       2,
       {},
       [](const Line& line, const Tensor&) -> std::shared_ptr<Module> {
         return std::make_shared<Embedding>(line.whole(0, "number of rows"), line.whole(1, "width"));
       }},
      {"dropout",
       "PROBABILITY",
       1,
       {},
       [](const Line& line, const Tensor&) -> std::shared_ptr<Module> {
         const double probability = line.number(0, "probability");
         if (!(probability >= 0 && probability < 1))
           line.error(fmt::format("the probability must be at least 0 and less than 1, not {}", probability));
         return std::make_shared<Dropout>(probability);
       }},
      {"max-pool",
       "KERNEL [stride=KERNEL] [padding=0]",
       1,
       {"stride", "padding"},
       [](const Line& line, const Tensor& x) {
         need_pictures(line, x);
         return max_pool2d(line.whole(0, "kernel"), line.whole_option("stride", 0),
                           line.whole_option("padding", 0));
       }},
      {"avg-pool",
       "KERNEL [stride=KERNEL] [padding=0]",
       1,
       {"stride", "padding"},
       [](const Line& line, const Tensor& x) {
         need_pictures(line, x);
         return avg_pool2d(line.whole(0, "kernel"), line.whole_option("stride", 0),
                           line.whole_option("padding", 0));
       }},
      {"global-avg-pool",
       "",
       0,
       {},
       [](const Line& line, const Tensor& x) {
         need_pictures(line, x);
         return global_avg_pool();
       }},
      {"flatten", "", 0, {}, [](const Line&, const Tensor&) { return flatten(); }},
      {"relu", "", 0, {}, [](const Line&, const Tensor&) { return relu(); }},
      {"relu6", "", 0, {}, [](const Line&, const Tensor&) { return relu6(); }},
      {"gelu", "", 0, {}, [](const Line&, const Tensor&) { return gelu(); }},
      {"silu", "", 0, {}, [](const Line&, const Tensor&) { return silu(); }},
      {"sigmoid", "", 0, {}, [](const Line&, const Tensor&) { return sigmoid(); }},
      {"tanh", "", 0, {}, [](const Line&, const Tensor&) { return tanh(); }},
      {"residual",
       "CHANNELS KERNEL [stride=1]",
       2,
       {"stride"},
       [](const Line& line, const Tensor& x) -> std::shared_ptr<Module> {
         need_pictures(line, x);
         const int64_t in = features_of(line, x, 1), out = line.whole(0, "number of channels"),
                       kernel = line.whole(1, "kernel"), stride = line.whole_option("stride", 1);
         auto body = std::make_shared<Sequential>();
         models::append_conv_norm(*body, in, out, kernel, {.stride = stride, .padding = kernel / 2}, relu());
         models::append_conv_norm(*body, out, out, kernel, {.padding = kernel / 2}, nullptr);
         std::shared_ptr<Sequential> shortcut;
         if (stride != 1 || in != out) {
           shortcut = std::make_shared<Sequential>();
           models::append_conv_norm(*shortcut, in, out, 1, {.stride = stride}, nullptr);
         }
         auto whole = std::make_shared<Sequential>();
         whole->append(std::make_shared<Residual>(body, shortcut));
         whole->append(relu());
         return whole;
       }},
  };
  return list;
}

Line parse(const std::string& text) {
  Line line{text, {}, {}, {}};
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

const LayerKind& kind_of(const Line& line) {
  std::vector<std::string> names;
  for (const LayerKind& kind : kinds()) {
    names.push_back(kind.name);
    if (kind.name != line.name) continue;
    if (line.numbers.size() > kind.most_numbers)
      line.error(fmt::format("usage: {} {}", kind.name, kind.arguments));
    for (const auto& option : line.options)
      if (std::find(kind.options.begin(), kind.options.end(), option.first) == kind.options.end())
        line.error(
            fmt::format("there is no option '{}'; usage: {} {}", option.first, kind.name, kind.arguments));
    return kind;
  }
  line.error(fmt::format("there is no layer '{}'; did you mean '{}'?", line.name, nearest(line.name, names)));
}

}  // namespace

std::vector<std::string> layer_kinds() {
  std::vector<std::string> usages;
  for (const LayerKind& kind : kinds())
    usages.push_back(kind.arguments.empty() ? kind.name : kind.name + " " + kind.arguments);
  return usages;
}

Model make_layers(const std::vector<std::string>& lines, const Shape& input, DType dtype) {
  if (lines.empty()) fail<InputError>("a model needs at least one layer");
  auto layers = std::make_shared<Sequential>();
  const Type type = models::batch_of(input, dtype);
  Tensor x = Tensor::symbol("input", type);
  for (const std::string& text : lines) {
    const Line line = parse(text);
    try {
      const auto layer = kind_of(line).make(line, x);
      layers->append(layer);
      // Evaluation mode: the shapes of training need the size of the batch.
      layer->eval();
      x = (*layer)(x);
      layer->train();
    } catch (const TypeError& error) {
      line.error(error.what());
    } catch (const InputError& error) {  // of the layer itself; those of the line name it already
      if (std::string_view(error.what()).starts_with("layer '")) throw;
      line.error(error.what());
    }
  }
  return {"layers", layers, {{"x0", type}}};
}

}  // namespace millrace::nn
