#include "check/telltales.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/format.h"
#include "base/seconds_since.h"
#include "base/words.h"
#include "data/codecs/pictures/picture_size.h"
#include "data/codecs/sounds/sound.h"
#include "data/table/read_columns.h"
#include "data/table/select.h"
#include "task/feed_parts.h"

namespace millrace::check {
namespace {

int64_t most_frequent(const std::map<int64_t, int64_t>& counts) {
  return std::max_element(counts.begin(), counts.end(), [](auto& a, auto& b) { return a.second < b.second; })
      ->first;
}

/// A word that stands for a class: how well, as the harmonic mean of how many of its texts are of the class
/// and how many texts of the class have it.
struct ClassWord {
  std::string word;
  double score = 0;
};

std::map<int64_t, ClassWord> class_words(const std::vector<std::set<std::string>>& texts,
                                         const std::vector<int64_t>& classes) {
  constexpr int64_t least = 5;  // texts that have it
  std::unordered_map<std::string, std::map<int64_t, int64_t>> counts;
  std::map<int64_t, int64_t> of_class;
  for (size_t i = 0; i < texts.size(); i += 2) {
    if (classes[i] < 0) continue;
    ++of_class[classes[i]];
    for (const std::string& word : texts[i]) ++counts[word][classes[i]];
  }
  std::map<int64_t, ClassWord> best;
  for (const auto& [word, own] : counts) {
    int64_t all = 0;
    for (const auto& [label, count] : own) all += count;
    if (all < least) continue;
    for (const auto& [label, count] : own) {
      const double score = 2.0 * static_cast<double>(count) / static_cast<double>(all + of_class[label]);
      ClassWord& found = best[label];
      if (score > found.score || (score == found.score && word < found.word)) found = {word, score};
    }
  }
  return best;
}

int64_t format_of(std::span<const uint8_t> bytes) {
  int64_t code = 0;
  for (size_t i = 0; i < std::min<size_t>(2, bytes.size()); ++i) code = code * 256 + bytes[i];
  return code;
}

}  // namespace

double told_of_classes(const std::vector<int64_t>& cells, const std::vector<int64_t>& classes) {
  std::map<int64_t, std::map<int64_t, int64_t>> counts;
  std::map<int64_t, int64_t> all;
  for (size_t i = 0; i < cells.size(); i += 2)
    if (classes[i] >= 0) {
      ++counts[cells[i]][classes[i]];
      ++all[classes[i]];
    }
  if (all.size() < 2) return 0;
  const int64_t usual = most_frequent(all);
  std::unordered_map<int64_t, int64_t> guesses;  // of each cell, once: it may have as many classes as rows
  for (const auto& [cell, own] : counts) guesses.emplace(cell, most_frequent(own));
  double right = 0, base = 0, count = 0;
  for (size_t i = 1; i < cells.size(); i += 2) {
    if (classes[i] < 0) continue;
    const auto at = guesses.find(cells[i]);
    right += (at == guesses.end() ? usual : at->second) == classes[i];
    base += usual == classes[i];
    ++count;
  }
  return count > base ? (right - base) / (count - base) : 0;
}

std::vector<int64_t> cells_of(const Column& column, size_t quantiles) {
  std::map<uint64_t, int64_t> values;
  for (const uint64_t code : column.codes) values.emplace(code, std::ssize(values));
  std::vector<int64_t> cells(column.codes.size());
  if (!column.numeric || values.size() <= 2 * quantiles) {
    for (size_t i = 0; i < cells.size(); ++i) cells[i] = values[column.codes[i]];
    return cells;
  }
  std::vector<double> sorted;
  for (const double x : column.numbers)
    if (!std::isnan(x)) sorted.push_back(x);
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> ends;
  for (size_t q = 1; q < quantiles; ++q) ends.push_back(sorted[q * sorted.size() / quantiles]);
  for (size_t i = 0; i < cells.size(); ++i)
    cells[i] = std::isnan(column.numbers[i])
                   ? -1
                   : std::upper_bound(ends.begin(), ends.end(), column.numbers[i]) - ends.begin();
  return cells;
}

Telltale telling_words(const Context& context, const task::Input& input, const Targets& targets) {
  Telltale found{.kind = "word"};
  const data::Dataset& from = *context.samples();
  const std::vector<std::string> columns = input.text_columns();
  if (columns.size() != 1 || !from.find_column(columns[0])) return found;
  const size_t place = from.column(columns[0]);
  std::vector<std::set<std::string>> texts;
  for (const auto& [first, count] : looked_at(from.count(), context.most_samples())) {
    const auto values = data::read_columns(from, first, count, {&place, 1});
    for (size_t i = 0; i < values[0].size(); ++i) {
      auto& own = texts.emplace_back();
      if (!values[0].has(i)) continue;
      // Beginnings: where texts are long, most words stand in all of them.
      const size_t most = context.quick() ? 300 : 2000;
      for (std::string& word : words_in(values[0].contents[i].substr(0, most))) own.insert(std::move(word));
    }
  }
  if (texts.size() != targets.classes.size()) return found;
  const std::map<int64_t, ClassWord> words = class_words(texts, targets.classes);
  std::vector<std::pair<double, int64_t>> order;
  for (const auto& [label, word] : words) order.emplace_back(-word.score, label);
  std::sort(order.begin(), order.end());
  std::vector<int64_t> cells;
  for (const auto& own : texts) {
    const auto has = std::find_if(order.begin(), order.end(),
                                  [&](const auto& each) { return own.contains(words.at(each.second).word); });
    cells.push_back(has == order.end() ? -1 : has->second);
  }
  found.told = told_of_classes(cells, targets.classes);
  if (found.told <= 0) return found;
  std::vector<std::string> names;
  for (const auto& [score, label] : order)
    if (names.size() < 3 && -score > 0.5) names.push_back(fmt::format("'{}'", words.at(label).word));
  if (names.empty()) names.push_back(fmt::format("'{}'", words.at(order[0].second).word));
  found.what = fmt::format("{} {}", names.size() > 1 ? "one of the words" : "the word", listed(names, "or"));
  return found;
}

Telltale telling_file(const Context& context, const Targets& targets) {
  Telltale found{.kind = "size or format of files"};
  const data::Dataset& from = *context.samples();
  const auto content =
      std::find_if(from.columns().begin(), from.columns().end(), [](const data::Column& column) {
        return column.kind == data::ColumnKind::picture || column.kind == data::ColumnKind::audio ||
               column.kind == data::ColumnKind::bytes;
      });
  if (content == from.columns().end()) return found;
  const auto place = static_cast<size_t>(content - from.columns().begin());
  constexpr size_t most = 2000;
  constexpr double seconds = 1;
  const size_t each = std::max<size_t>(1, targets.classes.size() / most);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<int64_t> classes, sizes, formats;
  size_t at = 0;
  bool sounds = false;
  for (const auto& [first, count] : looked_at(from.count(), context.most_samples()))
    for (int64_t i = first; i < first + count; ++i, ++at) {
      if (at % each != 0) continue;
      if (seconds_since(begin) > seconds) break;
      const data::Value value = from.read(i, place);
      const auto* const bytes = std::get_if<data::Bytes>(&value);
      if (!bytes) continue;
      const std::span<const uint8_t> view(reinterpret_cast<const uint8_t*>(bytes->view().data()),
                                          bytes->view().size());
      data::SoundInfo sound;
      if (const auto size = data::picture_size(view)) {
        sizes.push_back((size->height << 24) + (size->width << 2) + size->channels);
      } else if (data::read_sound_info(view, sound).empty()) {
        sounds = true;
        // Lengths in hundredths of an octave: recordings are never quite alike.
        const double length = 100 * std::log2(1.0 + static_cast<double>(sound.frames));
        sizes.push_back((static_cast<int64_t>(length) << 24) + sound.rate * 4LL + sound.channels);
      } else {
        continue;
      }
      formats.push_back(format_of(view));
      classes.push_back(targets.classes[at]);
    }
  constexpr size_t enough = 50;
  if (classes.size() < enough) return found;
  const auto consider = [&](const std::vector<int64_t>& cells, const char* what) {
    if (const double told = told_of_classes(cells, classes); told > found.told)
      found = {found.kind, what, told};
  };
  consider(sizes,
           sounds ? "the length, rate or number of channels of a sound" : "the size of a picture's file");
  consider(formats, "the format of a file");
  return found;
}

Telltale telling_place(const Context& context, const task::Input& input, const Targets& targets) {
  Telltale found{.kind = "place of pictures"};
  constexpr int64_t most = 1000, least = 50, grid = 32, levels = 32;
  const auto some = data::sample_of(context.samples(), most);
  const task::Task& task = *context.task();
  const task::Output* const output = targets.output;
  const std::vector<int64_t> labels = output->labels({task.recipe, some});
  task::TaskFeed set = task::open_predictions(task, some, std::min<int64_t>(some->count(), 64));
  // The brightness of places, which are up to 32 × 32 of them.
  std::vector<std::vector<int64_t>> places;
  std::vector<int64_t> classes;
  const size_t field = set.feed->field(input.prefix() + input.fields()[0].name);
  int64_t rows = 0, columns = 0;
  for (int64_t b = 0, sample = 0; b < set.feed->batches_per_epoch(); ++b) {
    const data::FeedBatch& batch = set.feed->next();
    const Array array = set.feed->array(batch, field);
    if (array.shape().rank() != 4 || array.dtype() != u8) return found;
    const int64_t channels = array.shape()[1].size(), height = array.shape()[2].size(),
                  width = array.shape()[3].size();
    rows = std::min(height, grid);
    columns = std::min(width, grid);
    places.resize(static_cast<size_t>(rows * columns));
    const auto pixels = array.as<uint8_t>();
    for (int64_t i = 0; i < batch.valid; ++i, ++sample) {
      std::vector<int64_t> sums(places.size()), counts(places.size());
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t y = 0; y < height; ++y)
          for (int64_t x = 0; x < width; ++x) {
            const auto at = static_cast<size_t>(y * rows / height * columns + x * columns / width);
            sums[at] += pixels[static_cast<size_t>(((i * channels + c) * height + y) * width + x)];
            ++counts[at];
          }
      for (size_t p = 0; p < places.size(); ++p) places[p].push_back(sums[p] * levels / (256 * counts[p]));
      classes.push_back(static_cast<size_t>(sample) < labels.size() ? labels[static_cast<size_t>(sample)]
                                                                    : -1);
    }
  }
  const std::set<int64_t> kinds(classes.begin(), classes.end());
  constexpr size_t most_kinds = 20;
  if (std::ssize(classes) < least || kinds.size() > most_kinds) return found;
  const std::vector<std::string> names = output->classes();
  for (const int64_t kind : kinds) {
    if (kind < 0) continue;
    std::vector<int64_t> own;
    for (const int64_t each : classes) own.push_back(each < 0 ? -1 : each == kind);
    const int64_t of_kind = std::count(own.begin(), own.end(), 1);
    for (size_t p = 0; p < places.size(); ++p) {
      const std::vector<int64_t>& cells = places[p];
      // A mark is the same in nearly all pictures of its class.
      std::map<int64_t, int64_t> times;
      for (size_t i = 0; i < cells.size(); ++i)
        if (own[i] == 1) ++times[cells[i]];
      const int64_t mark = times.empty() ? 0 : most_frequent(times);
      if (of_kind < 10 || 20 * times[mark] < 19 * of_kind) continue;
      // Whether it is there: among few pictures other values are seldom seen twice.
      std::vector<int64_t> marked;
      for (const int64_t cell : cells) marked.push_back(cell == mark);
      const int64_t left = static_cast<int64_t>(p) % columns, above = static_cast<int64_t>(p) / columns;
      if (const double told = told_of_classes(marked, own); told > found.told)
        found = {found.kind,
                 fmt::format("one place of '{}' ({} from the left, {} from above)",
                             static_cast<size_t>(kind) < names.size() ? names[static_cast<size_t>(kind)] : "",
                             share_text(static_cast<double>(left) / static_cast<double>(columns)),
                             share_text(static_cast<double>(above) / static_cast<double>(rows))),
                 told};
    }
  }
  return found;
}

}  // namespace millrace::check
