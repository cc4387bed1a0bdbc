// One of each kind of thing that a program may add: an operator, a pass, a provider, a layer, an
// augmentation, a format, a metric and a loss. A recipe names them, and what it trains goes through all of
// them.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <millrace/augment.h>
#include <millrace/exact_sum.h>
#include <millrace/format.h>
#include <millrace/loss.h>
#include <millrace/metric.h>
#include <millrace/nn.h>
#include <millrace/onnx_rule.h>
#include <millrace/operator.h>
#include <millrace/pass.h>
#include <millrace/provider.h>
#include <millrace/rewrite.h>
#include <millrace/run.h>

namespace fs = std::filesystem;
using namespace millrace;

namespace {

/// How often each was called.
struct Calls {
  std::atomic<int64_t> operators, passes, providers, layers, augmentations, formats, metrics, losses;
} calls;

// ---- an operator: the numbers of each row in the opposite order

void reverse_rows(const float* from, float* to, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row)
    std::reverse_copy(from + row * width, from + (row + 1) * width, to + row * width);
}

Operator reversed_rows() {
  Operator op;
  op.name = "reversed_rows";
  op.doc = "the numbers of each row in the opposite order";
  op.op_class = OpClass::heavy;
  op.types = [](const TypeContext& c) {
    if (c.operands[0].shape.rank() != 2 || c.operands[0].dtype != f32) c.error("f32 [rows, width] is needed");
    return std::vector<Type>{c.operands[0]};
  };
  op.flops = [](const Graph&, const Node&) { return 0.0; };
  op.evaluate = [](const Node& node, std::span<const Array> operands) {
    ++calls.operators;
    Array result(node.types[0]);
    const auto sizes = node.types[0].shape.sizes();
    reverse_rows(operands[0].as<float>().data(), result.as<float>().data(), sizes[0], sizes[1]);
    return std::vector<Array>{result};
  };
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{c.graph.add(*c.node.op, {c.result_gradients[0]})};
  };
  op.onnx_rule = [](const OnnxCall& c) {
    return c.one("Slice", {c.operands[0], c.onnx.ints({-1}), c.onnx.ints({-2147483647}), c.onnx.ints({1}),
                           c.onnx.ints({-1})});
  };
  return op;
}

// ---- a provider of kernels for it

class ReverseKernel final : public ChunkedKernel {
 public:
  ReverseKernel(int64_t rows, int64_t width) : rows_(rows), width_(width) {}
  int64_t chunks(int) const override { return (rows_ + piece - 1) / piece; }
  void run_chunk(int, int64_t chunk, void* const* operands, void* const* results, void*) override {
    const int64_t first = chunk * piece * width_, rows = std::min(piece, rows_ - chunk * piece);
    reverse_rows(static_cast<const float*>(operands[0]) + first, static_cast<float*>(results[0]) + first,
                 rows, width_);
    ++calls.providers;
  }
  std::string description() const override { return "rows from behind"; }

 private:
  static constexpr int64_t piece = 16;
  int64_t rows_, width_;
};

class ReverseProvider final : public OperatorProvider {
 public:
  ReverseProvider() : OperatorProvider("only reversed_rows", {{"reversed_rows", kernel}}) {}
  std::string name() const override { return "reverse"; }

 private:
  static std::unique_ptr<Kernel> kernel(const KernelRequest& request) {
    const std::vector<int64_t> sizes = request.operand_type(0).shape.sizes();
    return std::make_unique<ReverseKernel>(sizes[0], sizes[1]);
  }
};

// ---- a pass: what is reversed twice is as it was

Graph drop_pairs(const Graph& graph, const PassContext&) {
  static const Pattern twice =
      Pattern::op("reversed_rows", {Pattern::op("reversed_rows", {Pattern::any("x")})});
  return replace(graph, twice, [](Graph&, const Match& match) {
    ++calls.passes;
    return match.at("x");
  });
}

// ---- a layer

std::shared_ptr<nn::Module> make_reverse(const Settings&, const Tensor&) {
  ++calls.layers;
  return std::make_shared<nn::Function>(
      [](const Tensor& x) { return millrace::apply("reversed_rows", std::span(&x, 1))[0]; });
}

// ---- an augmentation: pictures in less light

class Dim final : public data::Augmentation {
 public:
  explicit Dim(double least) : least_(least) {}
  void apply(const data::Extent& extent, const uint8_t* in, uint8_t* out, data::Draw& draw) const override {
    ++calls.augmentations;
    const double light = least_ + (1 - least_) * draw.random.uniform();
    std::transform(in, in + extent.bytes(), out, [&](uint8_t x) { return static_cast<uint8_t>(light * x); });
  }

 private:
  double least_;
};

// ---- a format: a line "left ..#." is a picture of one row of pixels with its label

class Dots final : public data::Dataset {
 public:
  Dots(const std::string& path, const std::vector<std::shared_ptr<const data::RandomAccessFile>>& files)
      : Dataset(path) {
    columns_ = {{"image", data::ColumnKind::picture}, {"label", data::ColumnKind::text}};
    for (const auto& file : files) {
      std::istringstream text(std::string(file->read(0, file->size()).text()));
      std::string magic, label, dots;
      text >> magic;
      while (text >> label >> dots) rows_.push_back({label, dots});
      if (rows_.empty()) throw InputError(file->path() + ": there are no dots");
    }
  }
  int64_t count() const override { return static_cast<int64_t>(rows_.size()); }
  data::Value read(int64_t index, size_t column) const override {
    ++calls.formats;
    const Row& row = rows_.at(static_cast<size_t>(index));
    if (column == 1) return row.label;
    std::vector<uint8_t> pixels;
    for (const char dot : row.dots) pixels.push_back(dot == '#' ? 255 : 0);
    return data::Pixels{side, side, 1, data::Bytes(std::move(pixels))};
  }

  static constexpr int side = 8;

 private:
  struct Row {
    std::string label, dots;
  };
  std::vector<Row> rows_;
};

void write_dots(const fs::path& path) {
  std::ofstream file(path);
  file << "dots8x8\n";
  for (int i = 0; i < 200; ++i) {
    const bool left = i % 2 == 0;
    std::string dots(64, '.');
    for (int k = 0; k < 6; ++k)
      dots[static_cast<size_t>((i * 7 + k * 5) % 8 * 8 + (i + k * 3) % 4 + (left ? 0 : 4))] = '#';
    file << (left ? "left " : "right ") << dots << '\n';
  }
}

// ---- a metric: by how much the right class wins, on average

class Margin final : public eval::Metric {
 public:
  void update(const eval::Judged& judged) override {
    ++calls.metrics;
    for (int64_t row = 0; row < judged.rows; ++row) {
      const auto logits = judged.logits(row);
      const auto right = static_cast<size_t>(judged.labels[static_cast<size_t>(row)]);
      double other = -INFINITY;
      for (size_t k = 0; k < logits.size(); ++k)
        if (k != right) other = std::max<double>(other, logits[k]);
      sum_.add(logits[right] - other);
    }
    count_ += judged.rows;
  }
  void merge(const eval::Metric& other) override {
    const auto& own = eval::same_metric<Margin>(other);
    sum_.merge(own.sum_);
    count_ += own.count_;
  }
  double finalize() const override { return count_ ? sum_.value() / static_cast<double>(count_) : NAN; }

 private:
  ExactSum sum_;
  int64_t count_ = 0;
};

// ---- a loss: the squared error of the probabilities (Brier, 1950)

Tensor brier(const Tensor& logits, const Tensor& targets, const Settings& settings, bool mean) {
  ++calls.losses;
  const Tensor error =
      softmax(logits * settings.number("sharpness")) - one_hot(targets, logits.shape()[1].size());
  const Tensor rows = sum(error * error, {1});
  return mean ? rows.mean() : rows;
}

void register_all() {
  register_operator(reversed_rows());
  register_provider(
      {.name = "reverse",
       .doc = "rows in the opposite order",
       .place = 5,
       .make = []() -> std::unique_ptr<Provider> { return std::make_unique<ReverseProvider>(); }});
  register_pass(
      {.name = "reverse-twice", .doc = "what is reversed twice is as it was", .place = 5, .run = drop_pairs});
  nn::register_layer({.name = "reverse", .doc = "each sample's numbers from behind", .make = make_reverse});
  data::register_augmentation({.name = "dim",
                               .doc = "less light",
                               .settings = {{"LEAST", "the least that stays of it", 0.5, 0, 1}},
                               .make = [](const Settings& settings) -> std::unique_ptr<data::Augmentation> {
                                 return std::make_unique<Dim>(settings.number("LEAST"));
                               }});
  data::register_format(
      {.name = "dots",
       .doc = "pictures of dots",
       .place = 5,
       .matches =
           [](std::string_view, std::span<const uint8_t> head) {
             return std::string_view(reinterpret_cast<const char*>(head.data()), head.size())
                 .starts_with("dots8x8\n");
           },
       .open = [](const std::string& path, std::vector<std::shared_ptr<const data::RandomAccessFile>> files,
                  const data::OpenOptions&) -> std::unique_ptr<data::Dataset> {
         return std::make_unique<Dots>(path, files);
       }});
  eval::register_metric(
      {.name = "margin",
       .doc = "by how much the logit of the right class is above the others, on average",
       .outputs = {"class"},
       .higher_is_better = true,
       .init = []() -> std::unique_ptr<eval::Metric> { return std::make_unique<Margin>(); }});
  task::register_loss({.name = "brier",
                       .doc = "the squared error of the probabilities",
                       .outputs = {"class"},
                       .settings = {{"sharpness", "what logits are multiplied with", 1.0, 0.1, 10}},
                       .make = brier});
}

}  // namespace

int train_with_own_kinds(const fs::path& out) {
  register_all();
  write_dots(out / "pictures.dots");
  const task::Recipe recipe =
      task::parse_recipe(R"(
[data]
test_share = 0.25
[input]
kind    = "picture"
augment = ["dim 0.5"]
[output]
kind = "class"
loss = { kind = "brier", sharpness = 2 }
[model]
layers = ["flatten", "reverse", "reverse", "reverse", "linear 16", "relu", "linear 2"]
[train]
epochs    = 8
batch     = 25
optimizer = { kind = "adamw", lr = 1e-2 }
[eval]
metrics = ["accuracy", "margin"]
)",
                         "dots", std::vector<std::string>{"data.train=" + (out / "pictures.dots").string()});
  Run run = Run::train(recipe, out / "run");
  const task::Evaluation measured = run.evaluate();
  for (const eval::Measured& metric : measured.metrics)
    std::cout << metric.name << ' ' << metric.value << " (" << metric.low << " to " << metric.high << ")\n";
  if (measured.metrics[0].value < 0.9 || measured.metrics[1].value <= 0)
    throw std::runtime_error("it does not learn which side the dots are on");

  // The kernel gives what the operator means.
  const Array x = Array::of(f32, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  for (const char* target : {"cpu", "ref"}) {
    set_default_target(target);
    const Tensor given(x);
    if (millrace::apply("reversed_rows", std::span(&given, 1))[0].to_array().to_doubles() !=
        std::vector<double>{3, 2, 1, 6, 5, 4})
      throw std::runtime_error(std::string("rows are not reversed on ") + target);
  }

  const std::map<std::string, int64_t> counted = {{"operator", calls.operators},
                                                  {"pass", calls.passes},
                                                  {"provider", calls.providers},
                                                  {"layer", calls.layers},
                                                  {"augmentation", calls.augmentations},
                                                  {"format", calls.formats},
                                                  {"metric", calls.metrics},
                                                  {"loss", calls.losses}};
  for (const auto& [kind, count] : counted) {
    std::cout << kind << ": called " << count << " times\n";
    if (count == 0) throw std::runtime_error("the own " + kind + " was never called");
  }
  std::cout << "all of them work\n";
  return 0;
}
