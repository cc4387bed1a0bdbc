#include "data/encode/texts.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include "base/format.h"
#include "base/parallel_for.h"
#include "data/table/test_share.h"

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
                                 : fmt::format("which column holds the texts? Set input.column to one of {}",
                                               fmt::join(names, ", ")));
}

/// A run of kRun texts of the data set: all labels, and tokens of the texts that are kept.
struct Run {
  std::vector<int32_t> tokens;
  std::vector<int64_t> lengths, bytes, indices;
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
      if (columns_.size() > 1) {
        run.labels.push_back(label(many ? &values[1] : nullptr, first + i, at));
        if (options_.part != TextOptions::Part::all &&
            kept_for_test(first + i, options_.test_share) != (options_.part == TextOptions::Part::test))
          continue;
      }
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
      run.indices.push_back(first + i);
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
std::vector<std::string> sorted_classes(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  if (std::all_of(names.begin(), names.end(), whole_number))
    std::sort(names.begin(), names.end(),
              [](const auto& a, const auto& b) { return std::stoll(a) < std::stoll(b); });
  return names;
}

/// All that the tokens depend on: equal for equal tokens. Empty where it cannot be told whether the source
/// has changed.
std::string key_of(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options) {
  if (dataset.files().empty()) return {};
  std::string key;
  const auto say = [&](const auto& value) { key += fmt::format("{}\n", value); };
  for (const auto& text : {dataset.path(), dataset.format(), options.column, options.label, options.separator,
                           tokenizer.description()})
    say(fmt::format("{} {}", text.size(), text));
  for (const int64_t number :
       {dataset.count(), int64_t{tokenizer.digest()}, tokenizer.size(), int64_t{options.special}})
    say(number);
  if (!options.label.empty()) say(fmt::format("{} {}", static_cast<int>(options.part), options.test_share));
  for (const auto& file : dataset.files()) {
    if (file->version() == 0) return {};
    say(fmt::format("{} {} {}", file->size(), file->version(), file->path()));
  }
  return key;
}

/// All texts that may be asked for: those of the part where texts have classes, else all.
Tokenised tokenised(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options) {
  const Reader reader(dataset, tokenizer, options);
  const std::string key = key_of(dataset, tokenizer, options);
  if (auto found = find_tokens(key, tokenizer.size());
      found && found->labels.size() == (options.label.empty() ? 0 : found->ends.size()) &&
      (found->indices.empty() || found->indices.back() < dataset.count()))
    return std::move(*found);
  // So many runs are in memory at a time, however many there are.
  constexpr int64_t window = 64;
  const int64_t count = dataset.count(), in_all = (count + kRun - 1) / kRun;
  Tokenised out;
  TokenWriter writer(tokenizer.size(), options.most_bytes, key);
  std::map<std::string, int64_t> numbers;
  std::vector<Run> runs;
  std::atomic<int64_t> done{0};
  for (int64_t begin = 0; begin < in_all; begin += window) {
    const int64_t some = std::min(window, in_all - begin);
    runs.assign(static_cast<size_t>(some), {});
    parallel_for(some, 0, [&](int64_t i) {
      const int64_t first = (begin + i) * kRun, size = std::min(kRun, count - first);
      runs[static_cast<size_t>(i)] = reader.read(first, size);
      done += size;
      if (options.progress && i % 16 == 0) options.progress(done, count);
    });
    for (int64_t i = 0; i < some; ++i) {
      const Run& run = runs[static_cast<size_t>(i)];
      for (const std::string& name : run.labels)
        if (numbers.try_emplace(name, static_cast<int64_t>(out.names.size())).second) {
          out.names.push_back(name);
          if (out.names.size() > kMostClasses)
            fail<InputError>("{}: more than {} classes in the column {}; is every text one of its own?",
                             dataset.path(), kMostClasses, options.label);
        }
      writer.add(run.tokens);
      for (const int64_t length : run.lengths)
        out.ends.push_back((out.ends.empty() ? 0 : out.ends.back()) + length);
      out.bytes.insert(out.bytes.end(), run.bytes.begin(), run.bytes.end());
      out.indices.insert(out.indices.end(), run.indices.begin(), run.indices.end());
      if (run.labels.empty()) continue;
      for (const int64_t index : run.indices)
        out.labels.push_back(numbers.at(run.labels[static_cast<size_t>(index - (begin + i) * kRun)]));
    }
  }
  writer.finish(out);
  return out;
}

/// What of all texts a part takes: texts [first, last), of the first one the tokens from `from` on, and up to
/// `to` of the last.
struct Cut {
  int64_t first = 0, last = 0, from = 0, to = 0;
};

/// Where the end is cut off, by the ends of all texts.
Cut end_cut(const std::vector<int64_t>& ends, const TextOptions& options) {
  const auto count = static_cast<int64_t>(ends.size());
  if (options.part == TextOptions::Part::all || count == 0) return {0, count, 0, -1};
  const auto border =
      static_cast<int64_t>(std::ceil(static_cast<double>(ends.back()) * (1 - options.test_share)));
  const bool train = options.part == TextOptions::Part::train;
  if (count == 1) return train ? Cut{0, 1, 0, border} : Cut{0, 1, border, -1};
  // The first text that begins there or behind.
  const int64_t first_test =
      border <= 0 ? 0 : std::lower_bound(ends.begin(), ends.end() - 1, border) - ends.begin() + 1;
  const int64_t last = std::min(first_test, count);
  return train ? Cut{0, last, 0, -1} : Cut{last, count, 0, -1};
}

}  // namespace

Texts read_texts(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options) {
  Tokenised all = tokenised(dataset, tokenizer, options);
  const bool labelled = !options.label.empty();
  Texts texts;
  texts.path = dataset.path();
  texts.file = all.file;
  if (labelled) {
    texts.classes = options.classes.empty() ? sorted_classes(all.names) : options.classes;
    std::map<std::string, int64_t> of_class;
    for (const std::string& name : texts.classes)
      of_class.emplace(name, static_cast<int64_t>(of_class.size()));
    std::vector<int64_t> numbers;
    for (const std::string& name : all.names) {
      const auto at = of_class.find(name);
      numbers.push_back(at == of_class.end() ? -1 : at->second);
    }
    for (size_t i = 0; i < all.labels.size(); ++i) {
      const auto name = static_cast<size_t>(all.labels[i]);
      texts.labels.push_back(numbers[name]);
      if (numbers[name] < 0)
        fail<InputError>("{}: has the class '{}', which the model does not know (it knows {})",
                         dataset.name(all.indices[i]), all.names[name], fmt::join(texts.classes, ", "));
    }
  }
  const Cut cut =
      labelled ? Cut{0, static_cast<int64_t>(all.ends.size()), 0, -1} : end_cut(all.ends, options);
  texts.begins = {0};
  int64_t origin = -1;
  for (int64_t i = cut.first; i < cut.last; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t begin = i > 0 ? all.ends[at - 1] : 0, length = all.ends[at] - begin;
    const int64_t from = cut.from, to = cut.to < 0 ? length : cut.to;
    if (origin < 0) origin = begin + from;
    texts.begins.push_back(begin + to - origin);
    texts.indices.push_back(all.indices[at]);
    texts.bytes += to - from == length
                       ? all.bytes[at]
                       : std::llround(static_cast<double>(all.bytes[at]) * static_cast<double>(to - from) /
                                      static_cast<double>(length));
  }
  if (texts.count() == 0)
    fail<InputError>("{}: {} texts, of which none are {}; give data.test, or another data.test_share",
                     dataset.path(), dataset.count(),
                     options.part == TextOptions::Part::test ? "left to test on" : "left to train on");
  texts.tokens = all.tokens.part(origin, texts.begins.back());
  return texts;
}

}  // namespace millrace::data
