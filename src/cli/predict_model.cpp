#include "cli/predict_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

#include <millrace/session.h>

#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"
#include "cli/json.h"
#include "cli/verbs.h"
#include "data/codecs/arrays/npy.h"

namespace millrace::cli {
namespace {

/// Rows of results that are told by their largest numbers have so many at least.
constexpr int64_t kManyNumbers = 9;

std::string number_text(const Array& array, int64_t i) {
  return array.dtype().is_float() ? fmt::format("{:.6g}", array.at(i)) : fmt::format("{}", array.int_at(i));
}

/// Elements [begin, begin + count) of an array, of these dimensions, as lists in lists.
void append_nested(std::string& text, const Array& array, std::span<const int64_t> dims, int64_t& at) {
  if (dims.empty()) {
    const bool number = array.dtype().is_float();
    text += number ? Json(array.at(at)).text : Json(array.int_at(at)).text;
    ++at;
    return;
  }
  text += "[";
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i > 0) text += ", ";
    append_nested(text, array, dims.subspan(1), at);
  }
  text += "]";
}

/// Prints what a model says, and keeps it for a file where one is asked for.
class ModelPrinter {
 public:
  ModelPrinter(const PredictModelArguments& a, const Session& session) : a_(a), outputs_(session.outputs()) {
    if (!a.labels.empty()) {
      std::istringstream lines(read_text(a.labels));
      for (std::string line; std::getline(lines, line);) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        labels_.push_back(line);
      }
    }
  }

  /// Rows of a batch are samples of their own where all results have as many, and the model leaves their
  /// number open.
  void print(const std::string& name, const std::vector<Array>& results) {
    const int64_t rows = rows_of(results);
    for (int64_t row = 0; row < std::max<int64_t>(rows, 1); ++row) {
      const std::string who = rows > 1 ? fmt::format("{}#{}", name, row) : name;
      std::vector<std::pair<std::string, Json>> fields = {{"input", who}};
      std::string text;
      for (size_t i = 0; i < results.size(); ++i) {
        const Array& result = results[i];
        const std::vector<int64_t> sizes = result.shape().sizes();
        const std::span<const int64_t> dims = std::span(sizes).subspan(rows > 0 ? 1 : 0);
        const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
        if (a_.json || jsonl()) {
          std::string nested;
          int64_t at = row * count;
          append_nested(nested, result, dims, at);
          fields.emplace_back(outputs_[i].name, Json::raw(std::move(nested)));
        }
        text += fmt::format("{}{} {}", text.empty() ? "" : "; ", outputs_[i].name,
                            told(result, row * count, dims, count));
      }
      const std::string object = a_.json || jsonl() ? json_object(fields).text : "";
      if (jsonl()) lines_ += object + "\n";
      if (a_.json)
        fmt::print("{}\n", object);
      else
        fmt::print("{}: {}\n", printable(who), printable(text));
    }
    if (npy()) kept_.push_back(results[0]);
    ++predicted;
  }

  void write() const {
    if (jsonl()) write_file(a_.out, lines_);
    if (npy() && !kept_.empty()) write_file(a_.out, data::encode_npy(stacked()));
  }

  /// InputError for a file that is of no kind that is written.
  void check_out() const {
    if (a_.out.empty()) return;
    if (!npy() && !jsonl())
      fail<InputError>("-o {}: its name says .npy or .jsonl, for that is what is written", a_.out);
    if (npy() && outputs_.size() != 1)
      fail<InputError>("-o {}: an .npy file holds one array, but the model has {} outputs; .jsonl holds all",
                       a_.out, outputs_.size());
  }

  int predicted = 0;

 private:
  bool npy() const { return a_.out.ends_with(".npy"); }
  bool jsonl() const { return a_.out.ends_with(".jsonl"); }

  /// 0: results are told as a whole.
  int64_t rows_of(const std::vector<Array>& results) const {
    int64_t rows = -1;
    for (size_t i = 0; i < results.size(); ++i) {
      const Shape& declared = outputs_[i].type.shape;
      if (outputs_[i].data_axis >= 0) return 0;
      if (declared.rank() == 0 || (declared[0].is_static() && !(declared[0] == 1))) return 0;
      const int64_t own = results[i].shape()[0].size();
      if (rows >= 0 && own != rows) return 0;
      rows = own;
    }
    return std::max<int64_t>(rows, 0);
  }

  std::string told(const Array& result, int64_t begin, std::span<const int64_t> dims, int64_t count) const {
    if (count == 0) return "nothing";
    if (dims.size() <= 1 && count < kManyNumbers && labels_.empty()) {
      std::string text;
      for (int64_t i = 0; i < count; ++i) text += (i ? " " : "") + number_text(result, begin + i);
      return text;
    }
    if (dims.size() == 1) return largest(result, begin, count);
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double value = result.at(begin + i);
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
    }
    return fmt::format("{}{}, from {:.6g} to {:.6g}, mean {:.6g}", result.dtype().name(),
                       Shape(std::vector<int64_t>(dims.begin(), dims.end())).str(), low, high,
                       sum / static_cast<double>(count));
  }

  /// "281 (tabby) 12.1, 282 11.3, …"
  std::string largest(const Array& result, int64_t begin, int64_t count) const {
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    const auto most = static_cast<std::ptrdiff_t>(std::min(a_.top, count));
    std::partial_sort(order.begin(), order.begin() + most, order.end(), [&](int64_t x, int64_t y) {
      const double a = result.at(begin + x), b = result.at(begin + y);
      // Of what is no number nothing can be said: it comes last.
      return std::isnan(a) || std::isnan(b) ? !std::isnan(a) && std::isnan(b) : a > b || (a == b && x < y);
    });
    std::string text;
    for (std::ptrdiff_t k = 0; k < most; ++k) {
      const auto i = static_cast<size_t>(order[static_cast<size_t>(k)]);
      text += fmt::format("{}{} {}", k ? ", " : "", i < labels_.size() ? labels_[i] : std::to_string(i),
                          number_text(result, begin + static_cast<int64_t>(i)));
    }
    return text;
  }

  /// All results behind each other.
  Array stacked() const {
    int64_t rows = 0;
    for (const Array& each : kept_) {
      const Shape &shape = each.shape(), &first = kept_[0].shape();
      if (shape.rank() == 0 || !std::equal(shape.begin() + 1, shape.end(), first.begin() + 1, first.end()))
        fail<InputError>("-o {}: results of {} and {} do not fit into one array; .jsonl holds them", a_.out,
                         kept_[0].type().str(), each.type().str());
      rows += shape[0].size();
    }
    Shape shape = kept_[0].shape();
    shape[0] = rows;
    Array all(kept_[0].dtype(), shape);
    auto* to = static_cast<char*>(all.data());
    for (const Array& each : kept_) {
      std::memcpy(to, each.data(), static_cast<size_t>(each.bytes()));
      to += each.bytes();
    }
    return all;
  }

  const PredictModelArguments& a_;
  const std::vector<SessionValue>& outputs_;
  std::vector<std::string> labels_;
  std::vector<Array> kept_;
  std::string lines_;
};

}  // namespace

int predict_model(const PredictModelArguments& a) {
  if (a.top < 1) fail<InputError>("--top {}: at least one place is named", a.top);
  const Session session = Session::load(a.model, {.precision = a.precision});
  for (const std::string& line : session.notes()) fmt::print(stderr, "{}\n", line);
  ModelPrinter printer(a, session);
  printer.check_out();
  const task::ModelSamples samples(session.inputs(), a.pictures);
  if (const std::string line = samples.preparation(); !line.empty()) fmt::print(stderr, "{}\n", line);
  int failures = 0;
  const auto failed = [&](const std::string& message) {
    fmt::print(stderr, "error: {}\n", printable(message));
    ++failures;
  };
  samples.each(a.samples, {[&](task::ModelSample sample) {
                             std::optional<std::vector<Array>> results;
                             try {
                               results = session.run(sample.inputs);
                             } catch (const Error& e) {
                               failed(fmt::format("{}: {}", sample.name, e.what()));
                             }
                             if (results) printer.print(sample.name, *results);
                           },
                           failed});
  printer.write();
  return failures ? 1 : 0;
}

}  // namespace millrace::cli
