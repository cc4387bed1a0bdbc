#include "data/encode/texts.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <millrace/random.h>

#include "base/contains.h"
#include "base/format.h"
#include "base/parallel_for.h"
#include "data/encode/text_column.h"

namespace millrace::data {
namespace {

constexpr int64_t kRun = 1000;  // texts that one thread takes at a time

/// A run of kRun texts of the data set.
struct Run {
  std::vector<int32_t> tokens;
  std::vector<int64_t> lengths, bytes;
};

Run read_run(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options, size_t column,
             int64_t first, int64_t count) {
  Run run;
  std::vector<ColumnValues> values;
  const bool many = dataset.read_run(first, count, {&column, 1}, values);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    if (many)
      text = values[0].has(at) ? values[0].contents[at] : std::string_view();
    else if (Value value = dataset.read(first + i, column); auto* own = std::get_if<std::string>(&value))
      text = std::move(*own);
    else
      text.clear();  // a missing one
    text += options.separator;
    const size_t before = run.tokens.size();
    tokenizer.encode(text, options.special, run.tokens);
    run.lengths.push_back(static_cast<int64_t>(run.tokens.size() - before));
    run.bytes.push_back(static_cast<int64_t>(text.size()));
  }
  return run;
}

/// All that the tokens depend on: equal for equal tokens. Empty where it cannot be told whether the source
/// has changed.
std::string key_of(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options) {
  if (dataset.files().empty()) return {};
  std::string key;
  const auto say = [&](const auto& value) { key += fmt::format("{}\n", value); };
  for (const auto& text :
       {dataset.path(), dataset.format(), options.column, options.separator, tokenizer.description()})
    say(fmt::format("{} {}", text.size(), text));
  for (const int64_t number :
       {dataset.count(), int64_t{tokenizer.digest()}, tokenizer.size(), int64_t{options.special}})
    say(number);
  for (const auto& file : dataset.files()) {
    if (file->version() == 0) return {};
    say(fmt::format("{} {} {}", file->size(), file->version(), file->path()));
  }
  return key;
}

/// All texts, whatever part of them is asked for.
Tokenised tokenised(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options) {
  const size_t column = dataset.column(text_column(dataset, options.column));
  const std::string key = key_of(dataset, tokenizer, options);
  const int64_t count = dataset.count();
  if (auto found = find_tokens(key, tokenizer.size()); found && std::ssize(found->ends) == count)
    return std::move(*found);
  // So many runs are in memory at a time, however many there are.
  constexpr int64_t window = 64;
  const int64_t in_all = (count + kRun - 1) / kRun;
  Tokenised out;
  TokenWriter writer(tokenizer.size(), options.most_bytes, key);
  std::vector<Run> runs;
  std::atomic<int64_t> done{0};
  for (int64_t begin = 0; begin < in_all; begin += window) {
    const int64_t some = std::min(window, in_all - begin);
    runs.assign(static_cast<size_t>(some), {});
    parallel_for(some, 0, [&](int64_t i) {
      const int64_t first = (begin + i) * kRun, size = std::min(kRun, count - first);
      runs[static_cast<size_t>(i)] = read_run(dataset, tokenizer, options, column, first, size);
      done += size;
      if (options.progress && i % 16 == 0) options.progress(done, count);
    });
    for (int64_t i = 0; i < some; ++i) {
      const Run& run = runs[static_cast<size_t>(i)];
      writer.add(run.tokens);
      for (const int64_t length : run.lengths)
        out.ends.push_back((out.ends.empty() ? 0 : out.ends.back()) + length);
      out.bytes.insert(out.bytes.end(), run.bytes.begin(), run.bytes.end());
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

/// Of what is trained on a piece: texts from one on, or of a single text the tokens from one on.
Cut sample_cut(const Cut& all, const std::vector<int64_t>& ends, const TextOptions& options) {
  if (options.part != TextOptions::Part::train || options.sample >= 1 || all.last <= all.first) return all;
  const int64_t begin = all.first > 0 ? ends[static_cast<size_t>(all.first) - 1] : 0;
  const int64_t end = ends[static_cast<size_t>(all.last) - 1];
  const int64_t tokens = all.to < 0 ? end - begin : all.to - all.from;
  const auto size = std::max<int64_t>(1, std::llround(options.sample * static_cast<double>(tokens)));
  const auto from = static_cast<int64_t>(
      static_cast<double>(tokens - size) *
      (philox({0, 0, 0, 0}, {static_cast<uint32_t>(options.seed), 0x73616d70})[0] * 0x1p-32));
  if (all.last - all.first == 1) return {all.first, all.last, all.from + from, all.from + from + size};
  const auto text_at = [&](int64_t token) {
    return std::upper_bound(ends.begin() + all.first, ends.begin() + all.last - 1, begin + token) -
           ends.begin();
  };
  const int64_t first = text_at(from);
  return {first, std::max(first + 1, std::min<int64_t>(text_at(from + size), all.last)), 0, -1};
}

}  // namespace

Texts read_texts(const Dataset& dataset, const Tokenizer& tokenizer, const TextOptions& options) {
  Tokenised all = tokenised(dataset, tokenizer, options);
  Texts texts;
  texts.path = dataset.path();
  texts.file = all.file;
  const Cut cut = sample_cut(end_cut(all.ends, options), all.ends, options);
  texts.begins = {0};
  int64_t origin = -1;
  for (int64_t i = cut.first; i < cut.last; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t begin = i > 0 ? all.ends[at - 1] : 0, length = all.ends[at] - begin;
    const int64_t from = cut.from, to = cut.to < 0 ? length : cut.to;
    if (origin < 0) origin = begin + from;
    texts.begins.push_back(begin + to - origin);
    texts.indices.push_back(i);
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
