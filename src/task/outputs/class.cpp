// One class for each sample.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "base/contains.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "base/text_hash.h"
#include "base/utf8.h"
#include "base/words.h"
#include "data/codecs/text/first_group.h"
#include "data/feed/array_part.h"
#include "data/table/booleans.h"
#include "data/table/column_values.h"
#include "data/table/contents.h"
#include "data/table/labels.h"
#include "data/table/place.h"
#include "data/table/query.h"
#include "data/table/read_columns.h"
#include "task/class_doubts.h"
#include "task/class_names.h"
#include "task/class_weights.h"
#include "task/json_text.h"
#include "task/judge_labels.h"
#include "task/open.h"
#include "task/output.h"
#include "task/outputs/class_draft.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

using data::ColumnKind;
using data::Dataset;

constexpr int64_t class_run = 1 << 14;  // samples that one thread takes at a time
constexpr size_t most_class_names = 1'000'000;

/// The class of a sample as its column writes it.
struct WrittenClass {
  std::string_view text;
  std::optional<int64_t> number;  // where the column is one of numbers that the data give no names
};

/// Reads a column of classes.
class ClassColumn {
 public:
  ClassColumn(const Section& section, std::string column)
      : key_(output_key(section)), column_(std::move(column)), trim_(section.settings.text("trim")) {
    const std::string& pattern = section.settings.text("pattern");
    if (!pattern.empty()) pattern_.emplace(pattern);
  }
  const std::string& name() const { return column_; }

  /// Columns of classes are called label here and cls there: where it has such a name, another one of them is
  /// meant by it, too.
  size_t place_in(const Dataset& from) const {
    if (data::names_class(column_) && !from.find_column(column_))
      if (const auto other = data::find_label(from);
          other && (data::names_class(from.columns()[*other].name) || from.class_column() == *other))
        return *other;
    return from.column(column_);
  }

  /// use(number in the data set, its class) for these samples, in order. InputError says which has none;
  /// `lenient`: those that have none are passed over.
  template <typename Use>
  void each(const Dataset& from, int64_t first, int64_t count, Use&& use, bool lenient = false) const {
    const size_t place = place_in(from);
    const ColumnKind kind = from.columns()[place].kind;
    const std::vector<std::string> names =
        kind == ColumnKind::text ? std::vector<std::string>() : from.class_names(place);
    if (kind == ColumnKind::array) {  // its first number
      for (int64_t i = first; i < first + count; ++i) {
        if (lenient && !from.has(i, place)) continue;
        const data::Value value = data::class_of(from, i, place);
        number(from, i, std::get<int64_t>(value), names, use);
      }
      return;
    }
    check_kind(from, kind);
    const auto values = data::read_columns(from, first, count, {&place, 1});
    std::string made;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (!values[0].has(at) && lenient) continue;
      if (!values[0].has(at))
        fail<InputError>(
            "{}: has no {}; every sample needs a class: leave such samples out by data.where = \"{}\"",
            data::place_of(from, first + i), column_, data::has_a_value(column_));
      if (kind == ColumnKind::integer)
        number(from, first + i, values[0].integers[at], names, use);
      else if (kind == ColumnKind::real)
        use(first + i, WrittenClass{made = data::category_text(values[0], at), std::nullopt});
      else
        text(from, first + i, values[0].contents[at], use, lenient);
    }
  }

  void check_kind(const Dataset& from, ColumnKind kind) const {
    if (!data::is_tabular(kind) && kind != ColumnKind::array)
      fail<InputError>("{}: the column '{}' cannot be of classes: it holds {}s, not texts or whole numbers",
                       from.path(), column_, data::kind_name(kind));
  }

 private:
  template <typename Use>
  void number(const Dataset& from, int64_t sample, int64_t value, const std::vector<std::string>& names,
              Use&& use) const {
    if (names.empty()) return use(sample, WrittenClass{std::to_string(value), value});
    if (value < 0 || value >= static_cast<int64_t>(names.size()))
      fail<InputError>("{}: its '{}' is {}, there are {} classes", data::place_of(from, sample), column_,
                       value, names.size());
    use(sample, WrittenClass{names[static_cast<size_t>(value)], std::nullopt});
  }

  template <typename Use>
  void text(const Dataset& from, int64_t sample, std::string_view written, Use&& use, bool lenient) const {
    const std::string_view bare = trimmed(written, trim_);
    if (!pattern_) return use(sample, WrittenClass{bare, std::nullopt});
    const auto found = pattern_->find(bare);
    if (!found && lenient) return;
    if (!found)
      fail<InputError>("{}: its {}, '{}'{}, does not match {}.pattern", data::place_of(from, sample), column_,
                       bare.substr(0, 80), bare.size() > 80 ? " …" : "", key_);
    use(sample, WrittenClass{*found, std::nullopt});
  }

  std::string key_, column_, trim_;
  std::optional<data::FirstGroup> pattern_;
};

/// What was learnt.
struct KnownClasses {
  std::vector<std::string> names;
  std::vector<int64_t> counts;  // in the training data; empty: not known
  /// The classes have names that the column's numbers, 0 and up, stand for in this order.
  bool numbered = false;
  TextMap<int64_t> ids;

  void index() {
    for (size_t i = 0; i < names.size(); ++i) ids.emplace(names[i], static_cast<int64_t>(i));
    data::add_booleans(ids);
  }
  /// -1 for none.
  int64_t find(const WrittenClass& written) const {
    if (const auto at = ids.find(written.text); at != ids.end()) return at->second;
    if (numbered && written.number && *written.number >= 0 &&
        *written.number < static_cast<int64_t>(names.size()))
      return *written.number;
    return -1;
  }
};

/// Names in the order in which they come, and of each sample which it is.
struct SeenClasses {
  std::vector<std::string> names;
  TextMap<int64_t> ids;
  std::vector<int64_t> labels;

  int64_t id(std::string_view name) {
    if (const auto at = ids.find(name); at != ids.end()) return at->second;
    const auto id = std::ssize(names);
    names.emplace_back(name);
    ids.emplace(std::string(name), id);
    if (data::boolean_of(name) >= 0) data::add_booleans(ids);  // a mixture may have both True and true
    return id;
  }
};

/// Numbers from 0 on of which at least half occur are those of classes, and so are the others: logit k is
/// class k, and what is not there in training may be in the test set.
void fill_numbers(std::vector<std::string>& names) {
  const auto none = [](const std::string& name) { return name.empty() || name[0] == '-' || name.size() > 9; };
  if (!contains(names, "0") || std::any_of(names.begin(), names.end(), none)) return;
  size_t last = 0;
  for (const std::string& name : names) last = std::max<size_t>(last, std::stoul(name));
  const size_t different = std::set<std::string>(names.begin(), names.end()).size();
  if (2 * different <= last) return;
  for (size_t i = 0; i <= last; ++i) names.push_back(std::to_string(i));
}

/// Goes once through all samples. `known`: not null where another class than those is wrong; `lenient`:
/// samples without one are passed over.
SeenClasses see_classes(const Dataset& samples, const ClassColumn& column, const KnownClasses* known,
                        const ReadProgress& progress, bool lenient = false) {
  const int64_t count = samples.count(), runs = (count + class_run - 1) / class_run;
  std::vector<SeenClasses> of_run(static_cast<size_t>(runs));
  parallel_for(runs, 0, [&](int64_t r) {
    SeenClasses& mine = of_run[static_cast<size_t>(r)];
    const int64_t first = r * class_run;
    column.each(
        samples, first, std::min(class_run, count - first),
        [&](int64_t sample, const WrittenClass& written) {
          if (!known) return mine.labels.push_back(mine.id(written.text));
          mine.labels.push_back(known->find(written));
          if (mine.labels.back() < 0)
            fail<InputError>("{}: has the class '{}', which the model does not know (it knows {})",
                             data::place_of(samples, sample), written.text, names_text(known->names));
        },
        lenient);
  });
  SeenClasses all;
  all.labels.reserve(static_cast<size_t>(count));
  for (SeenClasses& run : of_run) {
    std::vector<int64_t> number;
    for (const std::string& name : run.names) number.push_back(all.id(name));
    for (const int64_t label : run.labels)
      all.labels.push_back(known ? label : number[static_cast<size_t>(label)]);
    run = {};
    if (all.names.size() > most_class_names)
      fail<InputError>("{}: more than {} classes in the column {}; is every sample one of its own?",
                       samples.path(), most_class_names, column.name());
  }
  if (progress) progress(samples.path(), count, count);
  return all;
}

/// The labels of a data set whose class_column() it is: numbers already.
std::vector<int64_t> numbered_labels(const Dataset& samples) {
  const data::Labels labels(samples);
  std::vector<int64_t> all(static_cast<size_t>(samples.count()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = labels[static_cast<int64_t>(i)];
  return all;
}

/// The labels of one data set, kept as long as somebody asks for it.
struct LabelsOf {
  std::shared_ptr<const Dataset> samples;
  std::vector<int64_t> labels;
};

class ClassOutput final : public Output {
 public:
  ClassOutput(Section section, std::string column, KnownClasses known)
      : Output(std::move(section)), known_(std::make_shared<KnownClasses>(std::move(known))) {
    if (section_.settings.text("column").empty()) section_.set("column", column);
    column_ = std::make_shared<const ClassColumn>(section_, std::move(column));
    const std::string key = output_key(section_) + ".class_weights";
    loss_ = chosen_loss(
        section_, class_weights(section_.settings.texts("class_weights"), key, known_->names, balanced()),
        key);
    known_->index();
  }
  /// What learning has read.
  void keep(std::shared_ptr<const LabelsOf> learnt) { learnt_ = std::move(learnt); }

  std::string encoding() const override {
    return nlohmann::json{{"column", stored_text(column_->name())},
                          {"classes", stored_names(known_->names)},
                          {"counts", known_->counts},
                          {"numbered", known_->numbered}}
        .dump();
  }
  /// How often the classes would be if all were alike, by how often they are: samples / (classes × those of
  /// the class). Classes that no sample has weigh 1.
  std::vector<double> balanced() const {
    double all = 0, present = 0;
    for (const int64_t count : known_->counts) {
      all += static_cast<double>(count);
      present += count > 0 ? 1 : 0;
    }
    std::vector<double> weights;
    for (const int64_t count : known_->counts)
      weights.push_back(count > 0 ? all / (present * static_cast<double>(count)) : 1);
    return weights;
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> lines = {fmt::format("{} is one of {} classes ({})", column_->name(),
                                                  known_->names.size(), names_text(known_->names))};
    for (std::string& line :
         class_doubts(column_->name(), known_->names, known_->counts, output_key(section_)))
      lines.push_back(std::move(line));
    return lines;
  }
  /// The entropy of how often the classes are.
  double ignorance() const override {
    double all = 0, entropy = 0;
    for (const int64_t count : known_->counts) all += static_cast<double>(count);
    if (all == 0) return std::numeric_limits<double>::quiet_NaN();
    for (const int64_t count : known_->counts)
      if (count > 0) entropy -= static_cast<double>(count) / all * std::log(static_cast<double>(count) / all);
    return entropy;
  }
  int64_t width() const override { return static_cast<int64_t>(known_->names.size()); }
  std::vector<std::string> classes() const override { return known_->names; }

  std::vector<int64_t> labels(const Reading& reading) const override {
    return reading.streamed ? std::vector<int64_t>() : labels_of(reading)->labels;
  }

  std::shared_ptr<const data::Part> part(const Reading& reading) const override {
    (void)column_->place_in(*reading.samples);
    const auto read = reading.streamed ? nullptr : labels_of(reading);
    return std::make_shared<data::ArrayPart>(
        std::vector<data::Field>{{"target", {i64, {Dim::named("batch")}}}},
        [read, known = known_, column = column_](const Dataset& from, int64_t first, int64_t count,
                                                 std::span<std::byte* const> rows) {
          auto* to = reinterpret_cast<int64_t*>(rows[0]);
          if (read && &from == read->samples.get()) {
            std::copy_n(read->labels.begin() + first, count, to);
            return;
          }
          column->each(from, first, count, [&](int64_t sample, const WrittenClass& written) {
            const int64_t label = known->find(written);
            if (label < 0)
              fail<InputError>("{}: has the class '{}', which the model does not know (it knows {})",
                               data::place_of(from, sample), written.text, names_text(known->names));
            to[sample - first] = label;
          });
        },
        data::ArrayPartOptions{{data::pad_of(int64_t{-1})}, reading.streamed});
  }

  Tensor predictions(const Tensor& logits) const override { return softmax(cast(logits, f32), -1); }
  std::string predictions_name() const override { return "probabilities"; }
  eval::Link link() const override { return eval::Link::softmax; }

  void judge(std::span<const float> logits, std::span<const std::byte> targets, int64_t /*length*/,
             const std::vector<char>& rows, double bytes, eval::Measurement& into) const override {
    judge_labels(logits, targets, 1, width(), rows, bytes, into, thresholds());
  }

  Prediction predict(std::span<const float> logits, int64_t top) const override {
    std::vector<double> probabilities;
    eval::softmax(logits, probabilities);
    std::vector<size_t> order = most_probable(probabilities, top);
    if (!thresholds().empty()) {  // what is told comes first, be it less probable
      const size_t first = logits[1] - logits[0] > thresholds()[0] ? 1 : 0;
      if (order[0] != first) order = order.size() > 1 ? std::vector{first, order[0]} : std::vector{first};
    }
    Prediction told;
    std::vector<std::pair<std::string, double>> shares;
    for (const size_t i : order) {
      told.text += fmt::format("{}{} {:.1f} %", told.text.empty() ? "" : ", ", stored_text(known_->names[i]),
                               100 * probabilities[i]);
      shares.emplace_back(known_->names[i], probabilities[i]);
    }
    told.json = {{"class", json_string(known_->names[order[0]])},
                 {"probabilities", json_numbers(shares)},
                 {"logits", json_numbers(logits)}};
    return told;
  }
  std::string target_text(std::span<const std::byte> target) const override {
    const int64_t label = labels_in(target)[0];
    return label < 0 ? "-" : stored_text(known_->names.at(static_cast<size_t>(label)));
  }

 private:
  std::shared_ptr<const LabelsOf> labels_of(const Reading& reading) const {
    if (learnt_ && learnt_->samples == reading.samples) return learnt_;
    auto read = std::make_shared<LabelsOf>();
    read->samples = reading.samples;
    read->labels = see_classes(*reading.samples, *column_, known_.get(), reading.progress).labels;
    return read;
  }

  std::shared_ptr<KnownClasses> known_;
  std::shared_ptr<const ClassColumn> column_;
  std::shared_ptr<const LabelsOf> learnt_;
};

bool no_names_are_numbers(const std::vector<std::string>& names) {
  return std::none_of(names.begin(), names.end(), [](const auto& name) { return is_whole_number(name); });
}

/// Of a stream the classes cannot be counted: those listed, else those of the test set.
std::vector<std::string> classes_of_stream(const Section& section, const Reading& reading) {
  const std::vector<std::string>& listed = section.settings.texts("classes");
  if (!listed.empty()) return listed_names(listed, output_key(section) + ".classes");
  const auto tests = has_tests(reading.recipe) ? open_test_source(reading.recipe, false, "") : nullptr;
  if (!tests)
    fail<InputError>("{}: all classes of a stream must be known before: set {}.classes, or data.test",
                     reading.samples->path(), output_key(section));
  std::string name = section.settings.text("column");
  if (name.empty()) name = tests->columns()[data::label_column(*tests)].name;
  const size_t place = tests->column(name);
  if (tests->columns()[place].kind != ColumnKind::text)
    if (auto names = tests->class_names(place); !names.empty()) return names;
  return sorted_names(see_classes(*tests, ClassColumn(section, name), nullptr, reading.progress).names);
}

std::unique_ptr<Output> learn_class(const Section& section, const Reading& reading,
                                    std::span<const std::unique_ptr<Input>> /*inputs*/) {
  const Dataset& samples = *reading.samples;
  std::string name = section.settings.text("column");
  if (name.empty()) {
    if (const std::string why = samples.lacks(); !why.empty() && !data::find_label(samples))
      throw InputError(why);
    const auto found = data::find_label(samples);
    if (!found)
      fail<InputError>("{}: which column is the class? Set {}.column; there are: {}", samples.path(),
                       output_key(section), data::columns_text(samples));
    name = samples.columns()[*found].name;
  }
  const size_t place = samples.column(name);
  const ColumnKind kind = samples.columns()[place].kind;
  KnownClasses known;
  const std::vector<std::string> listed =
      listed_names(section.settings.texts("classes"), output_key(section) + ".classes");
  std::vector<std::string> named = samples.class_names(place);  // may say why there are no classes
  if (kind == ColumnKind::text) named.clear();
  if (reading.streamed) {
    known.names = classes_of_stream(section, reading);
    known.numbered = no_names_are_numbers(known.names);
    return std::make_unique<ClassOutput>(section, name, std::move(known));
  }
  const ClassColumn column(section, name);
  column.check_kind(samples, kind);
  auto learnt = std::make_shared<LabelsOf>();
  learnt->samples = reading.samples;
  known.names = !listed.empty() ? listed : named;
  known.numbered = !known.names.empty() && kind != ColumnKind::text && no_names_are_numbers(known.names);
  if (!known.names.empty()) {
    KnownClasses lookup = known;
    lookup.index();
    learnt->labels = listed.empty() && samples.class_column() == place
                         ? numbered_labels(samples)
                         : see_classes(samples, column, &lookup, reading.progress).labels;
  } else {
    SeenClasses seen = see_classes(samples, column, nullptr, reading.progress);
    known.names = seen.names;
    if (const auto all = open_unselected(reading))
      for (std::string& each : see_classes(*all, column, nullptr, nullptr, true).names)
        known.names.push_back(std::move(each));
    if (kind == ColumnKind::integer || kind == ColumnKind::array) fill_numbers(known.names);
    known.names = sorted_names(std::move(known.names));
    if (kind == ColumnKind::real && known.names.size() > 100)
      fail<InputError>(
          "{}: '{}' holds {} different real numbers: a class would be learnt for each; choose a column of "
          "classes, or {}.kind = \"number\"",
          samples.path(), name, known.names.size(), output_key(section));
    KnownClasses lookup = known;
    lookup.index();
    std::vector<int64_t> number;
    for (const std::string& each : seen.names) number.push_back(lookup.ids.at(each));
    for (int64_t& label : seen.labels) label = number[static_cast<size_t>(label)];
    learnt->labels = std::move(seen.labels);
  }
  require_two_classes(known.names, samples.path(), name, output_key(section) + ".classes");
  known.counts.assign(known.names.size(), 0);
  for (const int64_t label : learnt->labels) ++known.counts.at(static_cast<size_t>(label));
  auto output = std::make_unique<ClassOutput>(section, name, std::move(known));
  output->keep(std::move(learnt));
  return output;
}

std::unique_ptr<Output> load_class(const Section& section, const std::string& encoding,
                                   std::span<const std::unique_ptr<Input>> /*inputs*/) {
  return read_encoding(encoding, output_key(section), [&](const nlohmann::json& json) {
    KnownClasses known;
    known.names = names_of_stored(json.at("classes").get<std::vector<std::string>>());
    json.at("counts").get_to(known.counts);
    json.at("numbered").get_to(known.numbered);
    if (known.names.empty() || (!known.counts.empty() && known.counts.size() != known.names.size()))
      fail<InputError>("its classes and how often they are do not go together");
    return std::make_unique<ClassOutput>(section, text_of_stored(json.at("column").get<std::string>()),
                                         std::move(known));
  });
}

/// Why the first samples' whole numbers are amounts rather than numbers of classes; "" when they may be
/// classes.
std::string why_amounts(const Dataset& samples, size_t column) {
  const int64_t most = std::min<int64_t>(samples.count(), 1 << 14);
  std::set<int64_t> seen;
  for (int64_t first = 0; first < most && !too_many_classes(std::ssize(seen), most); first += 512) {
    const auto values =
        data::read_columns(samples, first, std::min<int64_t>(512, most - first), {&column, 1});
    for (size_t i = 0; i < values[0].size(); ++i)
      if (values[0].has(i)) seen.insert(values[0].integers[i]);
  }
  const int64_t different = std::ssize(seen);
  if (too_many_classes(different, most)) return "more than 100, or more than half of them differ";
  if (different > 0 && look_like_amounts(different, *seen.begin(), *seen.rbegin()))
    return fmt::format("{} from {} to {}", different, *seen.begin(), *seen.rbegin());
  return {};
}

/// Are the first samples' values all whole numbers from 0 on, as formats without whole numbers write classes?
bool whole_values(const Dataset& samples, size_t column) {
  const int64_t most = std::min<int64_t>(samples.count(), 1 << 10);
  const auto values = data::read_columns(samples, 0, most, {&column, 1});
  for (size_t i = 0; i < values[0].size(); ++i)
    if (values[0].has(i) &&
        !(values[0].reals[i] >= 0 && values[0].reals[i] == std::floor(values[0].reals[i])))
      return false;
  return true;
}

std::string class_refuses(const Dataset& samples, const std::string& column) {
  const size_t place = samples.column(column);
  const ColumnKind kind = samples.columns()[place].kind;
  if (kind == ColumnKind::real) {
    if ((column == "label" || column == "cls" || column == "class") && whole_values(samples, place))
      return {};
    return fmt::format("'{}' holds real numbers, which classes are not", column);
  }
  if (kind == ColumnKind::text || kind == ColumnKind::array) return {};
  if (kind != ColumnKind::integer)
    return fmt::format("'{}' holds {}s, which are no classes", column, data::kind_name(kind));
  // Named so, or with names for its numbers: classes, however many.
  if (column == "label" || column == "cls" || column == "class" || samples.class_column() == place ||
      !samples.class_names(place).empty())
    return {};
  const std::string why = why_amounts(samples, place);
  return why.empty() ? ""
                     : fmt::format("'{}' holds many different whole numbers ({}): they look like amounts",
                                   column, why);
}

std::string recognise_class(const Dataset& samples) {
  const auto found = data::find_label(samples);
  if (!found) return {};
  const std::string& name = samples.columns()[*found].name;
  return class_refuses(samples, name).empty() ? name : "";
}

void check_pattern(const Section& section) {
  for (const std::string& pattern : texts_of(section, "pattern")) try {
      (void)data::FirstGroup(pattern);
    } catch (const InputError& error) {
      fail<InputError>("{}.pattern: {}", output_key(section), error.what());
    }
}

void check_class(const Section& section, const Recipe& /*recipe*/) {
  (void)listed_names(section.settings.texts("classes"), output_key(section) + ".classes");
  check_class_weights(section.settings.texts("class_weights"), output_key(section) + ".class_weights");
}

}  // namespace

MILLRACE_OUTPUT(class){
    .name = "class",
    .doc = "one of several classes, as a column says: texts, or whole numbers",
    .settings =
        {{"pattern", "a regular expression whose first group, in the text of the column, is the class",
          std::string()},
         {"trim", "characters that are cut off at both ends of the texts in the column", std::string()},
         {"classes",
          "all classes that there are, in the order of the logits: [\"cat\", \"dog\"], or [\"0..9\"] for "
          "numbers; empty: those in the data, of a stream those of data.test",
          std::vector<std::string>()},
         class_weights_setting(
             "class_weights",
             "weights of the classes in the loss: \"balanced\" (samples / (classes × samples of the class)), "
             "a number for each class in order, or for some by name, { spam = 5 }; empty: all alike")},
    .listed = "classes",
    .batch_weights = "class_weights",
    .metrics = {"accuracy", "log-loss"},
    .loss = "cross-entropy",
    .refuses = class_refuses,
    .recognise = recognise_class,
    .rank = 2,
    .check_early = check_pattern,
    .check = check_class,
    .learn = learn_class,
    .load = load_class,
    .derive = derive_class,
    .draft = draft_class,
};

}  // namespace millrace::task
