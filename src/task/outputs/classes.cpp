// Several labels, each of which holds for a sample or not.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/contains.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "base/text_hash.h"
#include "base/utf8.h"
#include "base/words.h"
#include "data/feed/array_part.h"
#include "data/table/booleans.h"
#include "data/table/place.h"
#include "data/table/read_columns.h"
#include "task/class_names.h"
#include "task/class_weights.h"
#include "task/json_text.h"
#include "task/judge_labels.h"
#include "task/open.h"
#include "task/output.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

using data::ColumnKind;
using data::Dataset;

constexpr int64_t labels_run = 1 << 14;
constexpr size_t most_labels = 10'000;

bool is_of_labels(ColumnKind kind) { return kind == ColumnKind::text || kind == ColumnKind::json; }

/// Where the labels of samples stand: in one column of texts, or each in a column of zeros and ones.
struct LabelColumns {
  std::string column, separator;
  std::vector<std::string> columns;

  /// use(number in the data set, label) for all labels that hold.
  template <typename Use>
  void each(const Dataset& from, int64_t first, int64_t count, Use&& use) const {
    columns.empty() ? in_column(from, first, count, use) : in_columns(from, first, count, use);
  }

 private:
  template <typename Use>
  void in_column(const Dataset& from, int64_t first, int64_t count, Use&& use) const {
    const size_t place = from.column(column);
    const ColumnKind kind = from.columns()[place].kind;
    if (!is_of_labels(kind))
      fail<InputError>(
          "{}: the column '{}' holds {}s, not lists of texts, nor texts of labels separated by '{}'",
          from.path(), column, data::kind_name(kind), separator);
    const auto add_to = [&](int64_t i) {
      return [&use, sample = first + i](std::string_view label) { use(sample, label); };
    };
    if (kind == ColumnKind::json) {
      for (int64_t i = 0; i < count; ++i) {
        const data::Value value = from.read(first + i, place);
        if (const auto* list = std::get_if<std::string>(&value)) in_list(from, first + i, *list, add_to(i));
      }
      return;
    }
    const auto values = data::read_columns(from, first, count, {&place, 1});
    for (int64_t i = 0; i < count; ++i)
      if (values[0].has(static_cast<size_t>(i)))  // else none holds
        in_text(values[0].contents[static_cast<size_t>(i)], add_to(i));
  }

  template <typename Add>
  void in_text(std::string_view rest, Add&& add) const {
    while (true) {
      const size_t end = rest.find(separator);
      if (const auto label = trimmed(rest.substr(0, end), " \t\r\n"); !label.empty()) add(label);
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + separator.size());
    }
  }

  template <typename Add>
  void in_list(const Dataset& from, int64_t sample, std::string_view content, Add&& add) const {
    const auto list = nlohmann::json::parse(content, nullptr, false);
    const auto is_label = [](const nlohmann::json& each) { return each.is_string() || each.is_null(); };
    if (!(list.is_array() || list.is_null()) || !std::all_of(list.begin(), list.end(), is_label))
      fail<InputError>("{}: its {} is no list of texts, which are the labels that hold",
                       data::place_of(from, sample), column);
    for (const nlohmann::json& each : list)
      if (each.is_string() && !each.get_ref<const std::string&>().empty())
        add(std::string_view(each.get_ref<const std::string&>()));
  }

  template <typename Use>
  void in_columns(const Dataset& from, int64_t first, int64_t count, Use&& use) const {
    std::vector<size_t> places;
    for (const std::string& name : columns) places.push_back(from.column(name));
    const auto values = data::read_columns(from, first, count, places);
    for (size_t c = 0; c < columns.size(); ++c)
      for (int64_t i = 0; i < count; ++i)
        if (holds(from, values[c], static_cast<size_t>(i), first + i, columns[c])) use(first + i, columns[c]);
  }

  static bool holds(const Dataset& from, const data::ColumnValues& values, size_t at, int64_t sample,
                    const std::string& name) {
    double value = -1;
    if (values.has(at)) {
      if (values.kind == ColumnKind::integer) value = static_cast<double>(values.integers[at]);
      if (values.kind == ColumnKind::real) value = values.reals[at];
      if (values.kind == ColumnKind::text) value = data::boolean_of(values.contents[at]);
      if (values.kind == ColumnKind::text && values.contents[at] == "0") value = 0;
      if (values.kind == ColumnKind::text && values.contents[at] == "1") value = 1;
    }
    if (value != 0 && value != 1)
      fail<InputError>("{}: its {} is neither 0 nor 1, nor true or false, which say whether a label holds",
                       data::place_of(from, sample), name);
    return value == 1;
  }
};

struct KnownLabels {
  std::vector<std::string> names;
  std::vector<int64_t> counts;  // of the training data; empty: not known
  int64_t samples = 0;
  std::map<std::string, size_t, std::less<>> ids;

  void index() {
    for (size_t i = 0; i < names.size(); ++i) ids.emplace(names[i], i);
  }
};

class ClassesOutput final : public Output {
 public:
  ClassesOutput(Section section, LabelColumns columns, KnownLabels known)
      : Output(std::move(section)),
        columns_(std::move(columns)),
        known_(std::make_shared<KnownLabels>(known)) {
    if (!columns_.column.empty() && section_.settings.text("column").empty())
      section_.set("column", columns_.column);
    const std::string key = output_key(section_) + ".pos_weight";
    loss_ = chosen_loss(
        section_, class_weights(section_.settings.texts("pos_weight"), key, known_->names, balanced()), key);
    known_->index();
  }

  std::string encoding() const override {
    return nlohmann::json{{"column", stored_text(columns_.column)},
                          {"columns", stored_names(columns_.columns)},
                          {"classes", stored_names(known_->names)},
                          {"counts", known_->counts},
                          {"samples", known_->samples}}
        .dump();
  }
  /// Samples that do not have the label, by those that do; 1 where all are of one side.
  std::vector<double> balanced() const {
    std::vector<double> weights;
    for (const int64_t count : known_->counts)
      weights.push_back(count > 0 && count < known_->samples
                            ? static_cast<double>(known_->samples - count) / static_cast<double>(count)
                            : 1);
    return weights;
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> lines = {
        fmt::format("{} labels ({})", known_->names.size(), names_text(known_->names))};
    for (size_t i = 0; i < known_->counts.size(); ++i)
      if (known_->counts[i] == 0)
        lines.push_back(fmt::format("no sample to train on has the label '{}'", known_->names[i]));
    return lines;
  }
  /// The mean of the labels' entropies.
  double ignorance() const override {
    if (known_->counts.empty() || known_->samples == 0) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0;
    for (const int64_t count : known_->counts) {
      const double p = static_cast<double>(count) / static_cast<double>(known_->samples);
      for (const double share : {p, 1 - p})
        if (share > 0) sum -= share * std::log(share);
    }
    return sum / static_cast<double>(known_->counts.size());
  }
  int64_t width() const override { return static_cast<int64_t>(known_->names.size()); }
  std::vector<std::string> classes() const override { return known_->names; }

  std::shared_ptr<const data::Part> part(const Reading& reading) const override {
    if (columns_.columns.empty()) (void)reading.samples->column(columns_.column);
    for (const std::string& name : columns_.columns) (void)reading.samples->column(name);
    return std::make_shared<data::ArrayPart>(
        std::vector<data::Field>{{"target", {f32, {Dim::named("batch"), width()}}}},
        [columns = columns_, known = known_](const Dataset& from, int64_t first, int64_t count,
                                             std::span<std::byte* const> rows) {
          auto* to = reinterpret_cast<float*>(rows[0]);
          const auto each = static_cast<int64_t>(known->names.size());
          std::fill_n(to, count * each, 0.0F);
          columns.each(from, first, count, [&](int64_t sample, std::string_view label) {
            const auto at = known->ids.find(label);
            if (at == known->ids.end())
              fail<InputError>("{}: has the label '{}', which the model does not know (it knows {})",
                               data::place_of(from, sample), label, names_text(known->names));
            to[(sample - first) * each + static_cast<int64_t>(at->second)] = 1;
          });
        },
        data::ArrayPartOptions{{}, reading.streamed});
  }

  Tensor predictions(const Tensor& logits) const override { return sigmoid(cast(logits, f32)); }
  std::string predictions_name() const override { return "probabilities"; }
  eval::Link link() const override { return eval::Link::sigmoid; }

  void judge(std::span<const float> logits, std::span<const std::byte> targets, int64_t /*length*/,
             const std::vector<char>& rows, double bytes, eval::Measurement& into) const override {
    const auto wide = static_cast<size_t>(width());
    const auto* const all = reinterpret_cast<const float*>(targets.data());
    std::vector<float> outputs;
    std::vector<double> values;
    int64_t count = 0;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (!rows[row]) continue;
      outputs.insert(outputs.end(), logits.begin() + static_cast<int64_t>(row * wide),
                     logits.begin() + static_cast<int64_t>((row + 1) * wide));
      values.insert(values.end(), all + row * wide, all + (row + 1) * wide);
      ++count;
    }
    into.update({.outputs = outputs,
                 .rows = count,
                 .width = width(),
                 .labels = {},
                 .values = values,
                 .bytes = bytes,
                 .thresholds = thresholds()});
  }

  Prediction predict(std::span<const float> logits, int64_t top) const override {
    std::vector<double> probabilities;
    for (const float logit : logits) probabilities.push_back(1 / (1 + std::exp(-static_cast<double>(logit))));
    Prediction told;
    std::vector<std::pair<std::string, double>> shares;
    std::string holding;
    for (const size_t i : most_probable(probabilities, top)) {
      told.text += fmt::format("{}{} {:.1f} %", told.text.empty() ? "" : ", ", stored_text(known_->names[i]),
                               100 * probabilities[i]);
      shares.emplace_back(known_->names[i], probabilities[i]);
    }
    for (size_t i = 0; i < probabilities.size(); ++i)
      if (is_told(logits, i)) holding += (holding.empty() ? "" : ", ") + json_string(known_->names[i]);
    told.json = {{"classes", "[" + holding + "]"},
                 {"probabilities", json_numbers(shares)},
                 {"logits", json_numbers(logits)}};
    return told;
  }
  std::string target_text(std::span<const std::byte> target) const override {
    const auto* const holds = reinterpret_cast<const float*>(target.data());
    std::string text;
    for (size_t i = 0; i < known_->names.size(); ++i)
      if (holds[i] > 0.5F) text += (text.empty() ? "" : ", ") + stored_text(known_->names[i]);
    return text.empty() ? "none" : text;
  }
  std::string predicted_text(std::span<const float> logits,
                             std::span<const std::byte> /*target*/) const override {
    std::string text;
    for (size_t i = 0; i < known_->names.size(); ++i)
      if (is_told(logits, i)) text += (text.empty() ? "" : ", ") + stored_text(known_->names[i]);
    return text.empty() ? "none" : text;
  }

 private:
  /// Is it told of a row that label i holds?
  bool is_told(std::span<const float> logits, size_t i) const {
    return static_cast<double>(logits[i]) > (thresholds().empty() ? 0 : thresholds()[i]);
  }

  LabelColumns columns_;
  std::shared_ptr<KnownLabels> known_;
};

/// How often each label holds.
std::map<std::string, int64_t, std::less<>> count_labels(const Dataset& samples,
                                                         const LabelColumns& columns) {
  std::map<std::string, int64_t, std::less<>> all;
  std::mutex mutex;
  parallel_parts(samples.count(), labels_run, 0, [&](int64_t first, int64_t end) {
    TextMap<int64_t> mine;
    columns.each(samples, first, end - first,
                 [&](int64_t, std::string_view label) { count_text(label, mine); });
    const std::lock_guard lock(mutex);
    for (const auto& [label, times] : mine) all[label] += times;
  });
  return all;
}

LabelColumns label_columns(const Section& section) {
  return {section.settings.text("column"), section.settings.text("separator"),
          section.settings.texts("columns")};
}

std::string recognise_classes(const Dataset& samples) {
  for (const char* name : {"labels", "tags", "classes"})
    if (const auto found = samples.find_column(name); found && is_of_labels(samples.columns()[*found].kind))
      return name;
  return {};
}

std::unique_ptr<Output> learn_classes(const Section& section, const Reading& reading,
                                      std::span<const std::unique_ptr<Input>> /*inputs*/) {
  LabelColumns columns = label_columns(section);
  const std::string key = output_key(section);
  if (columns.columns.empty() && columns.column.empty()) columns.column = recognise_classes(*reading.samples);
  if (columns.columns.empty() && columns.column.empty())
    fail<InputError>(
        "{}: which labels hold? Set {}.column to a column of texts (\"red,round\") or lists, "
        "or {}.columns to columns of 0 and 1",
        reading.samples->path(), key, key);
  KnownLabels known;
  known.names = columns.columns.empty() ? listed_names(section.settings.texts("classes"), key + ".classes")
                                        : columns.columns;
  if (reading.streamed) {
    if (known.names.empty())
      fail<InputError>("{}: all labels of a stream must be known before: set {}.classes",
                       reading.samples->path(), key);
    return std::make_unique<ClassesOutput>(section, std::move(columns), std::move(known));
  }
  const auto counts = count_labels(*reading.samples, columns);
  if (known.names.empty()) {
    for (const auto& [label, count] : counts) known.names.push_back(label);
    if (const auto all = open_unselected(reading))
      for (const auto& [label, count] : count_labels(*all, columns)) known.names.push_back(label);
    known.names = sorted_names(std::move(known.names));
  }
  if (known.names.empty() || known.names.size() > most_labels)
    fail<InputError>(
        "{}: {} different labels in the column {} (wanted are 1 to {}); are they separated by "
        "{}.separator = \"{}\"?",
        reading.samples->path(), known.names.size(), columns.column, most_labels, key, columns.separator);
  known.samples = reading.samples->count();
  for (const std::string& name : known.names) {
    const auto at = counts.find(name);
    known.counts.push_back(at == counts.end() ? 0 : at->second);
  }
  for (const auto& [label, count] : counts)
    if (!contains(known.names, label))
      fail<InputError>("{}: {} samples have the label '{}', which is not in {}.classes",
                       reading.samples->path(), count, label, key);
  return std::make_unique<ClassesOutput>(section, std::move(columns), std::move(known));
}

std::unique_ptr<Output> load_classes(const Section& section, const std::string& encoding,
                                     std::span<const std::unique_ptr<Input>> /*inputs*/) {
  return read_encoding(encoding, output_key(section), [&](const nlohmann::json& json) {
    LabelColumns columns = label_columns(section);
    columns.column = text_of_stored(json.at("column").get<std::string>());
    columns.columns = names_of_stored(json.at("columns").get<std::vector<std::string>>());
    KnownLabels known;
    known.names = names_of_stored(json.at("classes").get<std::vector<std::string>>());
    json.at("counts").get_to(known.counts);
    json.at("samples").get_to(known.samples);
    if (known.names.empty() || (!known.counts.empty() && known.counts.size() != known.names.size()))
      fail<InputError>("its labels and how often they hold do not go together");
    return std::make_unique<ClassesOutput>(section, std::move(columns), std::move(known));
  });
}

void check_classes(const Section& section, const Recipe& /*recipe*/) {
  const std::string key = output_key(section);
  const bool columns = !section.settings.texts("columns").empty();
  if (columns && !section.settings.text("column").empty())
    fail<InputError>("{}.column and {}.columns both say where the labels are: give one", key, key);
  if (columns && !section.settings.texts("classes").empty())
    fail<InputError>("{}.columns names the labels, {}.classes too: give one", key, key);
  require_different(section.settings.texts("columns"), key + ".columns");
  if (section.settings.text("separator").empty()) fail<InputError>("{}.separator is empty", key);
  (void)listed_names(section.settings.texts("classes"), key + ".classes");
  check_class_weights(section.settings.texts("pos_weight"), key + ".pos_weight");
}

}  // namespace

MILLRACE_OUTPUT(classes){
    .name = "classes",
    .doc =
        "several labels, each of which holds or not: separated in a column of texts, in a column of lists, "
        "or columns of 0 and 1",
    .settings = {{"separator", "between the labels in a text", std::string(",")},
                 {"columns", "columns of 0 and 1, one for each label, instead of a column of texts",
                  std::vector<std::string>()},
                 {"classes",
                  "all labels that there are, in the order of the logits; empty: those in the data",
                  std::vector<std::string>()},
                 class_weights_setting(
                     "pos_weight",
                     "weights in the loss of labels that hold, against those that do not: \"balanced\" "
                     "(samples without the label / samples with it), a number for each label in order, or "
                     "for some by name, { rare = 20 }; empty: all 1")},
    .listed = "classes",
    .metrics = {"label-accuracy", "f1"},
    .loss = "binary-cross-entropy",
    .refuses = [](const Dataset& samples, const std::string& column) -> std::string {
      const ColumnKind kind = samples.columns()[samples.column(column)].kind;
      if (is_of_labels(kind)) return {};
      return fmt::format("'{}' holds {}s, not texts or lists of labels", column, data::kind_name(kind));
    },
    .recognise = recognise_classes,
    .rank = 0,
    .check = check_classes,
    .learn = learn_classes,
    .load = load_classes,
};

}  // namespace millrace::task
