#include "task/model_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "task/json_text.h"

namespace millrace::task {
namespace {

/// Rows of results that are told by their largest numbers have so many at least.
constexpr int64_t kManyNumbers = 9;

bool is_u64(const Array& array) { return array.dtype() == DType{Kind::unsigned_int, 64}; }

/// Of whole numbers.
std::string digits_of(const Array& array, int64_t i) {
  const int64_t number = array.int_at(i);
  return is_u64(array) ? fmt::format("{}", static_cast<uint64_t>(number)) : fmt::format("{}", number);
}

std::string number_text(const Array& array, int64_t i) {
  return array.dtype().is_float() ? fmt::format("{:.6g}", array.at(i)) : digits_of(array, i);
}

/// The elements from `at` on, of these dimensions, as lists in lists.
void append_nested(std::string& text, const Array& array, std::span<const int64_t> dims, int64_t& at) {
  if (dims.empty()) {
    text += array.dtype().is_float() ? json_number(array.at(at)) : digits_of(array, at);
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

/// A row of a result: its elements begin at `begin`.
struct Part {
  std::vector<int64_t> dims;
  int64_t count, begin;
};

Part part_of(const Array& result, int64_t row, int64_t rows) {
  std::vector<int64_t> dims = result.shape().sizes();
  if (rows > 0) dims.erase(dims.begin());
  const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  return {std::move(dims), count, row * count};
}

std::string nested(const Array& result, const Part& part) {
  std::string text;
  int64_t at = part.begin;
  append_nested(text, result, part.dims, at);
  return text;
}

data::Value number_of(const Array& array, int64_t i) {
  if (array.dtype().is_float()) return array.at(i);
  if (is_u64(array) && array.int_at(i) < 0)
    fail<InputError>("{} is more than 2^63 - 1, the most that a column holds: write a .npy or .jsonl",
                     digits_of(array, i));
  return array.int_at(i);
}

data::ColumnKind kind_of(const SessionValue& output) {
  return output.type.dtype.is_float() ? data::ColumnKind::real : data::ColumnKind::integer;
}

/// Whether the model leaves the number of rows open, or says that it is 1.
bool has_rows(const SessionValue& output) {
  const Shape& shape = output.type.shape;
  return output.data_axis < 0 && shape.rank() > 0 && (!shape[0].is_static() || shape[0] == 1);
}

std::string numbered(const std::string& name, int64_t place) {
  return place == 0 ? name : fmt::format("{}_{}", name, place + 1);
}

}  // namespace

ModelRows::ModelRows(std::vector<SessionValue> outputs, ModelRowOptions options)
    : outputs_(std::move(outputs)), options_(std::move(options)) {
  if (options_.top < 1) fail<InputError>("--top {}: at least one place is named", options_.top);
  // Of fewer names the rest are numbers; of more, all may be those of others.
  const auto has_room = [&](const SessionValue& output) {
    const int64_t width = told(output).width;
    return width < 2 || width >= std::ssize(options_.labels);
  };
  if (!options_.labels.empty() && std::none_of(outputs_.begin(), outputs_.end(), has_room))
    fail<InputError>("--labels: {} names, and '{}' is a row of {} numbers: a line each, in their order",
                     options_.labels.size(), outputs_[0].name, told(outputs_[0]).width);
}

int64_t ModelRows::rows_of(const std::vector<Array>& results) const {
  int64_t rows = -1;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!has_rows(outputs_[i])) return 0;
    const int64_t own = results[i].shape()[0].size();
    if (rows >= 0 && own != rows) return 0;
    rows = own;
  }
  return std::max<int64_t>(rows, 0);
}

std::string ModelRows::name_of(const std::string& sample, int64_t row, int64_t rows) {
  return rows > 1 ? fmt::format("{}#{}", sample, row) : sample;
}

std::string ModelRows::text(const std::vector<Array>& results, int64_t row, int64_t rows) const {
  std::string text;
  for (size_t i = 0; i < results.size(); ++i) {
    const Part part = part_of(results[i], row, rows);
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", outputs_[i].name,
                        text_of(results[i], part.begin, part.dims, part.count));
  }
  return text;
}

std::string ModelRows::json(const std::string& name, const std::vector<Array>& results, int64_t row,
                            int64_t rows) const {
  std::string text = "{\"input\": " + json_string(name);
  for (size_t i = 0; i < results.size(); ++i)
    text += fmt::format(", {}: {}", json_string(outputs_[i].name),
                        nested(results[i], part_of(results[i], row, rows)));
  return text + "}";
}

std::string ModelRows::label(int64_t i) const {
  return i < std::ssize(options_.labels) ? options_.labels[static_cast<size_t>(i)] : std::to_string(i);
}

std::vector<int64_t> ModelRows::largest(const Array& array, int64_t begin, int64_t count) const {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const int64_t most = std::min(options_.top, count);
  std::partial_sort(order.begin(), order.begin() + most, order.end(), [&](int64_t x, int64_t y) {
    const double a = array.at(begin + x), b = array.at(begin + y);
    // Of what is no number nothing can be said: it comes last.
    return std::isnan(a) || std::isnan(b) ? !std::isnan(a) && std::isnan(b) : a > b || (a == b && x < y);
  });
  order.resize(static_cast<size_t>(most));
  return order;
}

std::string ModelRows::text_of(const Array& result, int64_t begin, std::span<const int64_t> dims,
                               int64_t count) const {
  if (count == 0) return "nothing";
  if (dims.size() <= 1 && count < kManyNumbers && options_.labels.empty()) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += (i ? " " : "") + number_text(result, begin + i);
    return text;
  }
  if (dims.size() == 1) {
    // "281 (tabby) 12.1, 282 11.3, …"
    std::string text;
    for (const int64_t i : largest(result, begin, count))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", label(i), number_text(result, begin + i));
    return text;
  }
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

ModelRows::Told ModelRows::told(const SessionValue& output) const {
  const Shape& shape = output.type.shape;
  const bool rows = std::all_of(outputs_.begin(), outputs_.end(), has_rows);
  const int first = rows ? 1 : 0;
  const bool row_of_numbers =
      shape.rank() == first || (shape.rank() == first + 1 && shape[first].is_static());
  if (!row_of_numbers || output.data_axis >= 0) return {.json = true};
  const int64_t width = shape.rank() == first ? 1 : shape[first].size();
  const bool largest = width >= kManyNumbers || (!options_.labels.empty() && width > 1);
  return {.width = width, .largest = largest, .each = !largest || options_.all};
}

std::vector<data::Column> ModelRows::columns() const {
  std::vector<data::Column> columns;
  for (const SessionValue& output : outputs_) {
    const Told own = told(output);
    if (own.json) columns.push_back({output.name, data::ColumnKind::text});
    for (int64_t k = 0; own.largest && k < std::min(options_.top, own.width); ++k) {
      columns.push_back({numbered(output.name, k),
                         options_.labels.empty() ? data::ColumnKind::integer : data::ColumnKind::text});
      columns.push_back({numbered(output.name + "_value", k), kind_of(output)});
    }
    for (int64_t i = 0; own.each && i < own.width; ++i)
      columns.push_back(
          {own.width == 1 ? output.name : fmt::format("{}.{}", output.name, label(i)), kind_of(output)});
  }
  return columns;
}

std::vector<data::Value> ModelRows::values(const std::vector<Array>& results, int64_t row,
                                           int64_t rows) const {
  std::vector<data::Value> values;
  for (size_t o = 0; o < results.size(); ++o) {
    const Array& result = results[o];
    const Told own = told(outputs_[o]);
    const Part part = part_of(result, row, rows);
    if (own.json) {
      values.emplace_back(nested(result, part));
      continue;
    }
    if (part.dims.size() > 1 || part.count != own.width)
      fail<InputError>(
          "output '{}' is {} here, not the row of {} numbers that the model promises; .jsonl holds it",
          outputs_[o].name, result.type().str(), own.width);
    if (own.largest)
      for (const int64_t i : largest(result, part.begin, part.count)) {
        if (options_.threshold != 0 && !(result.at(part.begin + i) >= options_.threshold)) {
          values.resize(values.size() + 2);
          continue;
        }
        if (options_.labels.empty())
          values.emplace_back(i);
        else
          values.emplace_back(label(i));
        values.push_back(number_of(result, part.begin + i));
      }
    for (int64_t i = 0; own.each && i < own.width; ++i) values.push_back(number_of(result, part.begin + i));
  }
  return values;
}

}  // namespace millrace::task
