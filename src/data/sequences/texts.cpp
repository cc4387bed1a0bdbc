#include "data/sequences/texts.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include "base/format.h"
#include "base/philox.h"
#include "data/loader.h"

namespace millrace::data {
namespace {

constexpr int64_t kRun = 1000;  // texts that one thread takes at a time
constexpr size_t kMostClasses = 100'000;

size_t text_column(const Dataset& dataset, const std::string& wanted) {
  const auto& columns = dataset.columns();
  std::vector<size_t> texts;
  for (size_t c = 0; c < columns.size(); ++c)
    if (columns[c].kind == ColumnKind::text) texts.push_back(c);
  size_t found = columns.size();
  if (!wanted.empty()) {
    found = dataset.column(wanted);
  } else {
    for (const size_t c : texts)
      if (columns[c].name == "text") found = c;
    if (found == columns.size() && texts.size() == 1) found = texts[0];
  }
  if (found < columns.size() && columns[found].kind == ColumnKind::text) return found;
  std::vector<std::string> names;
  for (const size_t c : texts) names.push_back(columns[c].name);
  if (!wanted.empty())
    fail<InputError>("{}: the column '{}' holds no texts but {}s (texts: {})", dataset.path(), wanted,
                     kind_name(columns[found].kind),
                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  fail<InputError>("{}: {}", dataset.path(),
                   names.empty() ? std::string("there is no column of texts")
                                 : fmt::format("which column holds the texts? Set data.text to one of {}",
                                               fmt::join(names, ", ")));
}

/// Texts and labels as they are in the data set, tokenised: a run of kRun each.
struct Run {
  std::vector<int32_t> tokens;
  std::vector<int64_t> lengths, bytes;
  std::vector<std::string> labels;
};

class Reader {
 public:
  Reader(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options)
      : dataset_(dataset), tokenizer_(tokenizer), options_(options) {
    columns_.push_back(text_column(dataset, options.column));
    if (options.label.empty()) return;
    columns_.push_back(dataset.column(options.label));
    const ColumnKind kind = dataset.columns()[columns_[1]].kind;
    if (kind != ColumnKind::text && kind != ColumnKind::integer)
      fail<InputError>("{}: the column '{}' cannot be of classes: it holds {}s, not texts or whole numbers",
                       dataset.path(), options.label, kind_name(kind));
    names_ = dataset.class_names(columns_[1]);
  }

  Run read(int64_t first, int64_t count) const {
    Run run;
    std::vector<ColumnValues> values;
    const bool many = dataset_.read_run(first, count, columns_, values);
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (many)
        text = values[0].has(at) ? values[0].contents[at] : std::string_view();
      else if (Value value = dataset_.read(first + i, columns_[0]);
               auto* own = std::get_if<std::string>(&value))
        text = std::move(*own);
      else
        text.clear();  // a missing one
      text += options_.separator;
      const size_t before = run.tokens.size();
      tokenizer_.encode(text, options_.special, run.tokens);
      run.lengths.push_back(static_cast<int64_t>(run.tokens.size() - before));
      run.bytes.push_back(static_cast<int64_t>(text.size()));
      if (columns_.size() > 1) run.labels.push_back(label(many ? &values[1] : nullptr, first + i, at));
    }
    return run;
  }

 private:
  std::string label(const ColumnValues* values, int64_t index, size_t at) const {
    Value value;
    if (!values)
      value = dataset_.read(index, columns_[1]);
    else if (values->has(at))
      value = values->kind == ColumnKind::integer ? Value(values->integers[at])
                                                  : Value(std::string(values->contents[at]));
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    const auto* number = std::get_if<int64_t>(&value);
    if (!number) fail<InputError>("{}: its '{}' is missing", dataset_.name(index), options_.label);
    if (names_.empty()) return std::to_string(*number);
    if (*number < 0 || *number >= static_cast<int64_t>(names_.size()))
      fail<InputError>("{}: its '{}' is {}, there are {} classes", dataset_.name(index), options_.label,
                       *number, names_.size());
    return names_[static_cast<size_t>(*number)];
  }

  const Dataset& dataset_;
  const Tokenizer& tokenizer_;
  const TextOptions& options_;
  std::vector<size_t> columns_;
  std::vector<std::string> names_;
};

bool whole_number(const std::string& text) {
  const size_t digits = text.find_first_not_of('-');
  return digits <= 1 && digits < text.size() && text.size() < 19 &&
         text.find_first_not_of("0123456789", digits) == std::string::npos;
}

/// Names of the classes, sorted: whole numbers by size.
std::vector<std::string> found_classes(const std::vector<Run>& runs, const Dataset& dataset,
                                       const std::string& label) {
  std::map<std::string, int64_t> found;
  for (const Run& run : runs)
    for (const std::string& name : run.labels) {
      found.try_emplace(name, 0);
      if (found.size() > kMostClasses)
        fail<InputError>("{}: more than {} classes in the column {}; is every text one of its own?",
                         dataset.path(), kMostClasses, label);
    }
  std::vector<std::string> names;
  for (const auto& [name, number] : found) names.push_back(name);
  if (std::all_of(names.begin(), names.end(), whole_number))
    std::sort(names.begin(), names.end(),
              [](const auto& a, const auto& b) { return std::stoll(a) < std::stoll(b); });
  return names;
}

/// Is the text of that number in the data set one of those to test on? By a hash of its own, so that the seed of a training
/// changes nothing.
bool kept_for_test(int64_t index, double share) {
  const auto words = philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                            {0x74657374, 0x73706c69});
  return words[0] * 0x1p-32 < share;
}

/// What of all texts a part takes: texts [first, last), of the first one the tokens from `from` on, and up to `to` of the last.
struct Cut {
  int64_t first = 0, last = 0, from = 0, to = 0;
};

/// Where the end is cut off, by the lengths of all texts.
Cut end_cut(const std::vector<Run>& runs, const TextOptions& options) {
  std::vector<int64_t> ends = {0};
  for (const Run& run : runs)
    for (const int64_t length : run.lengths) ends.push_back(ends.back() + length);
  const auto count = static_cast<int64_t>(ends.size()) - 1;
  if (options.part == TextOptions::Part::all) return {0, count, 0, -1};
  const auto border =
      static_cast<int64_t>(std::ceil(static_cast<double>(ends.back()) * (1 - options.test_share)));
  const bool train = options.part == TextOptions::Part::train;
  if (count == 1) return train ? Cut{0, 1, 0, border} : Cut{0, 1, border, -1};
  const auto first_test =
      static_cast<int64_t>(std::lower_bound(ends.begin(), ends.end() - 1, border) - ends.begin());
  return train ? Cut{0, first_test, 0, -1} : Cut{first_test, count, 0, -1};
}

}  // namespace

void TokenStore::resize(int64_t count) {
  if (narrow_)
    small_.resize(static_cast<size_t>(count));
  else
    large_.resize(static_cast<size_t>(count));
}

void TokenStore::put(int64_t at, std::span<const int32_t> ids) {
  if (narrow_)
    std::transform(ids.begin(), ids.end(), small_.begin() + at,
                   [](int32_t id) { return static_cast<uint16_t>(id); });
  else
    std::copy(ids.begin(), ids.end(), large_.begin() + at);
}

void TokenStore::get(int64_t at, std::span<int64_t> out) const {
  if (narrow_)
    std::copy_n(small_.begin() + at, out.size(), out.begin());
  else
    std::copy_n(large_.begin() + at, out.size(), out.begin());
}

Texts read_texts(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options) {
  const Reader reader(dataset, tokenizer, options);
  const int64_t count = dataset.count(), runs_in_all = (count + kRun - 1) / kRun;
  std::vector<Run> runs(static_cast<size_t>(runs_in_all));
  std::atomic<int64_t> tokens{0}, done{0};
  const int64_t width = tokenizer.size() <= 65536 ? 2 : 4;
  parallel_for(runs_in_all, 0, [&](int64_t i) {
    Run& run = runs[static_cast<size_t>(i)];
    run = reader.read(i * kRun, std::min(kRun, count - i * kRun));
    if ((tokens += static_cast<int64_t>(run.tokens.size())) * width > options.most_bytes)
      fail<InputError>(
          "{}: its tokens take more than the {} MB of data.cache_mb: raise that, or train on a part of it "
          "(data.where)",
          dataset.path(), options.most_bytes >> 20);
    done += static_cast<int64_t>(run.lengths.size());
    if (options.progress && i % 16 == 0) options.progress(done, count);
  });

  Texts texts;
  texts.path = dataset.path();
  texts.tokens = TokenStore(tokenizer.size());
  const bool labelled = !options.label.empty();
  std::map<std::string, int64_t> numbers;
  if (labelled) {
    texts.classes = options.classes.empty() ? found_classes(runs, dataset, options.label) : options.classes;
    for (const std::string& name : texts.classes) numbers.emplace(name, static_cast<int64_t>(numbers.size()));
  }
  const Cut cut = labelled ? Cut{0, count, 0, -1} : end_cut(runs, options);
  texts.begins = {0};
  texts.tokens.resize(tokens);
  int64_t index = 0, filled = 0;
  for (Run& run : runs) {
    int64_t at = 0;
    for (size_t i = 0; i < run.lengths.size(); ++i, ++index) {
      const int64_t length = run.lengths[i], begin = at;
      at += length;
      if (index < cut.first || index >= cut.last) continue;
      if (labelled && options.part != TextOptions::Part::all &&
          kept_for_test(index, options.test_share) != (options.part == TextOptions::Part::test))
        continue;
      if (labelled) {
        const auto number = numbers.find(run.labels[i]);
        if (number == numbers.end())
          fail<InputError>("{}: has the class '{}', which the model does not know (it knows {})",
                           dataset.name(index), run.labels[i], fmt::join(texts.classes, ", "));
        texts.labels.push_back(number->second);
      }
      const int64_t from = cut.from, to = cut.to < 0 ? length : cut.to;
      texts.tokens.put(
          filled,
          std::span(run.tokens).subspan(static_cast<size_t>(begin + from), static_cast<size_t>(to - from)));
      filled += to - from;
      texts.begins.push_back(filled);
      texts.indices.push_back(index);
      texts.bytes += to - from == length
                         ? run.bytes[i]
                         : std::llround(static_cast<double>(run.bytes[i]) * static_cast<double>(to - from) /
                                        static_cast<double>(length));
    }
    run = {};
  }
  texts.tokens.resize(filled);
  if (texts.count() == 0)
    fail<InputError>("{}: {} texts, of which none are {}; give data.test, or another data.test_share",
                     dataset.path(), count,
                     options.part == TextOptions::Part::test ? "left to test on" : "left to train on");
  return texts;
}

}  // namespace millrace::data
