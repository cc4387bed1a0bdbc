// One or several numbers for each sample.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/format.h"
#include "base/moments.h"
#include "base/number_from.h"
#include "base/utf8.h"
#include "data/encode/table_state.h"
#include "data/feed/array_part.h"
#include "data/table/booleans.h"
#include "data/table/place.h"
#include "data/table/query.h"
#include "data/table/read_columns.h"
#include "eval/metric.h"
#include "task/class_names.h"
#include "task/json_text.h"
#include "task/output.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

using data::ColumnKind;
using data::Dataset;

constexpr int64_t numbers_run = 1 << 14;

/// One of the columns, and what its numbers are like.
struct NumberColumn {
  std::string name;
  double mean = 0, deviation = 1;  // 0 and 1 where the output does not standardise

  /// As the loss sees it: what numbers far from 0 differ by is lost in f32 unless their mean is gone before.
  float learnt(double value) const { return static_cast<float>((value - mean) / deviation); }
};

double number_at(const Dataset& from, const data::ColumnValues& values, size_t at, int64_t sample,
                 const std::string& name) {
  if (!values.has(at))
    fail<InputError>(
        "{}: has no {}; every sample needs a number: leave such samples out by data.where = \"{}\"",
        data::place_of(from, sample), name, data::has_a_value(name));
  double value = 0;
  if (values.kind == ColumnKind::integer) {
    value = static_cast<double>(values.integers[at]);
  } else if (values.kind == ColumnKind::real) {
    value = values.reals[at];
  } else {  // of a file with few rows a column of numbers may be taken for one of texts
    const std::string_view text = values.contents[at];
    const int truth = data::boolean_of(text);
    const auto number = truth >= 0 ? std::optional<double>(truth) : number_from<double>(text);
    if (!number)
      fail<InputError>("{}: its {} is '{}', which is no number", data::place_of(from, sample), name,
                       text.substr(0, 40));
    value = *number;
  }
  if (!data::is_number(value))
    fail<InputError>("{}: its {} is {}, not a number that can be predicted", data::place_of(from, sample),
                     name, value);
  return value;
}

/// use(number in the data set, place of the column, value) for all numbers of these samples.
template <typename Use>
void each_number(const Dataset& from, const std::vector<NumberColumn>& columns, int64_t first, int64_t count,
                 Use&& use) {
  std::vector<size_t> places;
  for (const NumberColumn& column : columns) places.push_back(from.column(column.name));
  const auto values = data::read_columns(from, first, count, places);
  for (size_t c = 0; c < columns.size(); ++c)
    for (int64_t i = 0; i < count; ++i)
      use(first + i, c, number_at(from, values[c], static_cast<size_t>(i), first + i, columns[c].name));
}

class NumberOutput final : public Output {
 public:
  NumberOutput(Section section, std::vector<NumberColumn> columns, double ignorance)
      : Output(std::move(section)), columns_(std::move(columns)), ignorance_(ignorance) {
    if (columns_.size() == 1 && section_.settings.text("column").empty() &&
        section_.settings.texts("columns").empty())
      section_.set("column", columns_[0].name);
    loss_ = chosen_loss(section_);
    std::vector<double> means, deviations;
    for (const NumberColumn& column : columns_) {
      means.push_back(column.mean);
      deviations.push_back(column.deviation);
      plain_ &= column.mean == 0 && column.deviation == 1;
    }
    mean_ = Array::of(f64, {width()}, means);
    deviation_ = Array::of(f64, {width()}, deviations);
  }
  void set_ignorance(double loss) { ignorance_ = loss; }
  /// A column that has this value in all samples to train on.
  void add_constant(const std::string& name, double value) { constant_[name] = value; }

  std::string encoding() const override {
    nlohmann::json json{{"columns", nlohmann::json::array()}};
    for (const NumberColumn& column : columns_)
      json["columns"].push_back(
          {{"name", stored_text(column.name)}, {"mean", column.mean}, {"deviation", column.deviation}});
    if (std::isfinite(ignorance_)) json["ignorance"] = ignorance_;
    return json.dump();
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> lines;
    for (const NumberColumn& column : columns_)
      if (!plain_ && !constant_.contains(column.name))
        lines.push_back(fmt::format("{} is {:.6g} ± {:.6g}", column.name, column.mean, column.deviation));
    for (const auto& [name, value] : constant_)
      lines.push_back(fmt::format(
          "{} is {} in all samples to train on, so that there is nothing to learn of it; is it the "
          "right column?",
          name, short_text(value)));
    return lines;
  }
  double ignorance() const override { return ignorance_; }
  int64_t width() const override { return static_cast<int64_t>(columns_.size()); }

  /// Twentieths of all samples by the first number.
  std::vector<int64_t> strata(const Reading& reading) const override {
    const Dataset& from = *reading.samples;
    std::vector<std::pair<double, int64_t>> sorted;
    for (int64_t first = 0; first < from.count(); first += numbers_run)
      each_number(from, {columns_[0]}, first, std::min(numbers_run, from.count() - first),
                  [&](int64_t sample, size_t, double value) { sorted.emplace_back(value, sample); });
    std::sort(sorted.begin(), sorted.end());
    std::vector<int64_t> ranges(sorted.size());
    constexpr size_t parts = 20;
    for (size_t i = 0; i < sorted.size(); ++i)
      ranges[static_cast<size_t>(sorted[i].second)] = static_cast<int64_t>(i * parts / sorted.size());
    return ranges;
  }

  std::shared_ptr<const data::Part> part(const Reading& reading) const override {
    return part_of<float>(reading, "target", f32,
                          [](const NumberColumn& column, double value) { return column.learnt(value); });
  }
  /// The file's own numbers: small ones beside a large deviation are little more than rounding in f32.
  std::shared_ptr<const data::Part> judged_part(const Reading& reading) const override {
    return part_of<double>(reading, "judged", f64,
                           [](const NumberColumn& /*column*/, double value) { return value; });
  }

  Tensor in_unit(const Tensor& numbers) const override {
    const Tensor wide = cast(numbers, f64);
    return plain_ ? wide : wide * Tensor(deviation_) + Tensor(mean_);
  }
  Tensor predictions(const Tensor& logits) const override { return in_unit(logits); }
  std::string predictions_name() const override { return "values"; }

  void judge(std::span<const float> logits, std::span<const std::byte> targets, int64_t /*length*/,
             const std::vector<char>& rows, double bytes, eval::Measurement& into) const override {
    const size_t wide = columns_.size();
    const auto* const judged = reinterpret_cast<const double*>(targets.data());
    const auto* const learnt = reinterpret_cast<const float*>(targets.data());
    const bool exact = targets.size() == rows.size() * wide * sizeof(double);
    std::vector<double> predicted, values;
    for (size_t row = 0; row < rows.size(); ++row)
      for (size_t c = 0; c < wide && rows[row]; ++c) {
        predicted.push_back(in_unit(logits[row * wide + c], c));
        values.push_back(exact ? judged[row * wide + c] : in_unit(learnt[row * wide + c], c));
      }
    into.update({.outputs = {},
                 .rows = static_cast<int64_t>(predicted.size() / wide),
                 .width = width(),
                 .labels = {},
                 .values = values,
                 .bytes = bytes,
                 .predicted = predicted});
  }

  Prediction predict(std::span<const float> logits, int64_t /*top*/) const override {
    Prediction told;
    std::vector<std::pair<std::string, double>> numbers;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const double value = in_unit(logits[c], c);
      told.text += fmt::format("{}{} {}", c > 0 ? ", " : "", columns_[c].name, short_text(value));
      numbers.emplace_back(columns_[c].name, value);
    }
    told.json = {{"numbers", json_numbers(numbers)}, {"logits", json_numbers(logits)}};
    return told;
  }
  std::string target_text(std::span<const std::byte> target) const override {
    const auto* const values = reinterpret_cast<const float*>(target.data());
    std::string text;
    for (size_t c = 0; c < columns_.size(); ++c)
      text += fmt::format("{}{} {}", c > 0 ? ", " : "", columns_[c].name, as_read(values[c], c));
    return text;
  }

 private:
  /// Rows of what `make` gives for each number.
  template <typename T, typename Make>
  std::shared_ptr<const data::Part> part_of(const Reading& reading, const char* name, DType dtype,
                                            Make make) const {
    for (const NumberColumn& column : columns_) (void)reading.samples->column(column.name);
    return std::make_shared<data::ArrayPart>(
        std::vector<data::Field>{{name, {dtype, {Dim::named("batch"), width()}}}},
        [columns = columns_, make](const Dataset& from, int64_t first, int64_t count,
                                   std::span<std::byte* const> rows) {
          auto* to = reinterpret_cast<T*>(rows[0]);
          each_number(from, columns, first, count, [&](int64_t sample, size_t column, double value) {
            to[static_cast<size_t>(sample - first) * columns.size() + column] = make(columns[column], value);
          });
        },
        data::ArrayPartOptions{{}, reading.streamed});
  }

  /// Six digits, and all those before the point: "251000", "0.0123457".
  static std::string short_text(double value) {
    return std::abs(value) >= 1e5 && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                            : fmt::format("{:.6g}", value);
  }
  /// What the data had, of which a feed has no more than an f32 of the standardised number.
  std::string as_read(float target, size_t c) const {
    constexpr int most_digits = 6;
    const double value = in_unit(target, c),
                 rounding = std::abs(target) * columns_[c].deviation * 0x1p-23 + std::abs(value) * 1e-15;
    if (std::abs(value) <= rounding) return "0";
    for (int digits = 1; digits < most_digits; ++digits) {
      const std::string text = fmt::format("{:.{}g}", value, digits);
      if (std::abs(std::stod(text) - value) <= rounding) return short_text(std::stod(text));
    }
    return short_text(value);
  }
  double in_unit(float logit, size_t c) const {
    return static_cast<double>(logit) * columns_[c].deviation + columns_[c].mean;
  }

  std::vector<NumberColumn> columns_;
  std::map<std::string, double> constant_;
  double ignorance_;
  bool plain_ = true;
  Array mean_, deviation_;
};

std::string number_refuses(const Dataset& samples, const std::string& column) {
  const ColumnKind kind = samples.columns()[samples.column(column)].kind;
  if (data::is_numeric(kind) || data::holds_booleans(samples, samples.column(column))) return {};
  return fmt::format("'{}' holds {}s, not numbers", column, data::kind_name(kind));
}

std::string recognise_number(const Dataset& samples) {
  for (const char* name : {"target", "label", "y", "value"})
    if (samples.find_column(name) && number_refuses(samples, name).empty()) return name;
  return {};
}

std::vector<NumberColumn> number_columns(const Section& section, const Dataset& samples) {
  std::vector<std::string> names = section.settings.texts("columns");
  if (names.empty()) {
    names = {section.settings.text("column")};
    if (names[0].empty()) names[0] = recognise_number(samples);
    if (names[0].empty())
      fail<InputError>("{}: which number is to be predicted? Set {}.column", samples.path(),
                       output_key(section));
  }
  std::vector<NumberColumn> columns;
  for (const std::string& name : names) {
    if (!data::is_tabular(samples.columns()[samples.column(name)].kind))
      fail<InputError>("{}: {}", samples.path(), number_refuses(samples, name));
    columns.push_back({name});
  }
  return columns;
}

/// Loss where the mean is predicted every time: of all samples, or of enough of them spread over all.
double loss_of_mean(const NumberOutput& output, const Dataset& samples,
                    const std::vector<NumberColumn>& columns, const std::vector<double>& means) {
  constexpr int64_t most = 1 << 16;
  const int64_t count = samples.count(), taken = std::min(count, most);
  const auto wide = static_cast<int64_t>(columns.size());
  Array targets(f32, {taken, wide}), logits(f32, {taken, wide});
  const std::span<float> to = targets.as<float>(), guess = logits.as<float>();
  for (int64_t i = 0; i < taken; ++i)
    for (size_t c = 0; c < columns.size(); ++c)
      guess[static_cast<size_t>(i) * columns.size() + c] = columns[c].learnt(means[c]);
  int64_t row = 0;
  for (int64_t first = 0; first < count; first += numbers_run)
    each_number(samples, columns, first, std::min(numbers_run, count - first),
                [&](int64_t sample, size_t c, double value) {
                  // Sample number row · count / taken is row number `row`.
                  row = sample * taken / count;
                  if (row < taken && (row * count + taken - 1) / taken == sample)
                    to[static_cast<size_t>(row) * columns.size() + c] = columns[c].learnt(value);
                });
  return output.loss(Tensor(logits), Tensor(targets), true).item();
}

std::unique_ptr<Output> learn_number(const Section& section, const Reading& reading,
                                     std::span<const std::unique_ptr<Input>> /*inputs*/) {
  const Dataset& samples = *reading.samples;
  std::vector<NumberColumn> columns = number_columns(section, samples);
  std::vector<Moments> moments(columns.size());
  const int64_t count = samples.count();
  for (int64_t first = 0; first < count; first += numbers_run)
    each_number(samples, columns, first, std::min(numbers_run, count - first),
                [&](int64_t, size_t c, double value) { moments[c].add(value); });
  if (count == 0) fail<InputError>("{}: has no samples to learn from", samples.path());
  std::vector<double> means, deviations;
  for (const Moments& each : moments) {
    means.push_back(each.mean());
    deviations.push_back(each.deviation());
  }
  if (section.settings.flag("standardise"))
    for (size_t c = 0; c < columns.size(); ++c) {
      columns[c].mean = means[c];
      columns[c].deviation = deviations[c] > 0 ? deviations[c] : 1;
    }
  auto output = std::make_unique<NumberOutput>(section, columns, NAN);
  for (size_t c = 0; c < columns.size(); ++c)
    if (count > 1 && deviations[c] == 0) output->add_constant(columns[c].name, means[c]);
  output->set_ignorance(loss_of_mean(*output, samples, columns, means));
  return output;
}

std::unique_ptr<Output> load_number(const Section& section, const std::string& encoding,
                                    std::span<const std::unique_ptr<Input>> /*inputs*/) {
  return read_encoding(encoding, output_key(section), [&](const nlohmann::json& json) {
    std::vector<NumberColumn> columns;
    for (const auto& each : json.at("columns")) {
      columns.push_back({text_of_stored(each.at("name").get<std::string>()), each.at("mean").get<double>(),
                         each.at("deviation").get<double>()});
      if (!std::isfinite(columns.back().mean) || !(columns.back().deviation > 0))
        fail<InputError>("the mean and deviation of {} are damaged", columns.back().name);
    }
    if (columns.empty()) fail<InputError>("what the checkpoint knows of {} is damaged", output_key(section));
    return std::make_unique<NumberOutput>(section, std::move(columns), json.value("ignorance", NAN));
  });
}

}  // namespace

MILLRACE_OUTPUT(number){
    .name = "number",
    .doc = "one or several numbers, in their own unit",
    .settings =
        {{"columns", "columns of several numbers that are predicted together", std::vector<std::string>()},
         {"standardise",
          "the loss sees numbers less their mean, divided by their standard deviation; predictions have "
          "the unit of the data all the same",
          true}},
    .metrics = {"mae", "rmse", "r2"},
    .loss = "mse",
    .refuses = number_refuses,
    .recognise = recognise_number,
    .rank = 1,
    .check =
        [](const Section& section, const Recipe& /*recipe*/) {
          const std::string key = output_key(section);
          const std::vector<std::string>& columns = section.settings.texts("columns");
          if (!columns.empty() && !section.settings.text("column").empty())
            fail<InputError>("{}.column and {}.columns both say what is predicted: give one", key, key);
          require_different(columns, key + ".columns");
        },
    .learn = learn_number,
    .load = load_number,
};

}  // namespace millrace::task
