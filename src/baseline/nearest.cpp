// Nearest neighbours of what is no table: pictures and sounds by all their numbers, texts by their words.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <millrace/compile.h>

#include "base/format.h"
#include "base/words.h"
#include "baseline/context.h"
#include "baseline/neighbours.h"
#include "data/table/read_columns.h"

namespace millrace::baseline {
namespace {

constexpr int64_t neighbours_asked = 5;
constexpr int64_t rows_at_once = 256;  // samples to test on at a time

/// Of each sample to test on the samples to train on that are nearest to it; fewer where nothing is alike.
using NearestLists = std::vector<std::vector<int64_t>>;

/// Words of texts, rare ones weighing more (tf-idf as scikit-learn's: 1 + log((1 + n) / (1 + df))), rows of
/// length 1; the nearest have the largest cosine.
class WordIndex {
 public:
  void add(const std::string& text) {
    for (const auto& [word, count] : counted(text))
      words_[word].emplace_back(texts_, static_cast<float>(count));
    ++texts_;
  }
  void finish() {
    std::vector<double> squares(static_cast<size_t>(texts_));
    for (auto& [word, places] : words_)
      for (auto& [text, weight] : places) {
        weight *= idf(places.size());
        squares[static_cast<size_t>(text)] += static_cast<double>(weight) * static_cast<double>(weight);
      }
    for (auto& [word, places] : words_)
      for (auto& [text, weight] : places)
        weight /= static_cast<float>(std::sqrt(squares[static_cast<size_t>(text)]));
  }
  /// `scores`: zeros, one for each text, and so it is left.
  std::vector<int64_t> nearest(const std::string& text, std::vector<float>& scores) const {
    std::vector<int64_t> touched;
    for (const auto& [word, count] : counted(text)) {
      const auto found = words_.find(word);
      if (found == words_.end()) continue;
      const float own = static_cast<float>(count) * idf(found->second.size());
      for (const auto& [other, weight] : found->second) {
        float& score = scores[static_cast<size_t>(other)];
        if (score == 0) touched.push_back(other);
        score += own * weight;
      }
    }
    const auto most = std::min<std::ptrdiff_t>(neighbours_asked, std::ssize(touched));
    std::partial_sort(touched.begin(), touched.begin() + most, touched.end(), [&](int64_t a, int64_t b) {
      const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
      return x != y ? x > y : a < b;
    });
    for (const int64_t other : touched) scores[static_cast<size_t>(other)] = 0;
    touched.resize(static_cast<size_t>(most));
    return touched;
  }

 private:
  static std::unordered_map<std::string, int64_t> counted(const std::string& text) {
    std::unordered_map<std::string, int64_t> counts;
    for (std::string& word : words_in(text)) ++counts[std::move(word)];
    return counts;
  }
  float idf(size_t texts) const {
    return static_cast<float>(
        1 + std::log((1.0 + static_cast<double>(texts_)) / (1.0 + static_cast<double>(texts))));
  }

  std::unordered_map<std::string, std::vector<std::pair<int64_t, float>>> words_;
  int64_t texts_ = 0;
};

template <typename Use>
void each_text(Context& context, bool tests, const std::string& column, const Use& use) {
  const data::Dataset& from = *context.samples(tests);
  const size_t place = from.column(column);
  for (int64_t first = 0; first < from.count() && !context.options().stop(); first += rows_at_once) {
    const auto values =
        data::read_columns(from, first, std::min(rows_at_once, from.count() - first), {&place, 1});
    for (size_t i = 0; i < values[0].size(); ++i)
      use(values[0].has(i) ? std::string(values[0].contents[i]) : std::string());
    context.progress(tests ? "nearest_neighbours" : "nearest_neighbours: reading", first, from.count());
  }
}

NearestLists nearest_texts(Context& context, const std::string& column) {
  WordIndex index;
  each_text(context, false, column, [&](const std::string& text) { index.add(text); });
  index.finish();
  NearestLists all;
  std::vector<float> scores(static_cast<size_t>(context.samples(false)->count()));
  each_text(context, true, column,
            [&](const std::string& text) { all.push_back(index.nearest(text, scores)); });
  return all;
}

/// How many samples to train on are compared with: no more than fit, and than are compared in some seconds.
int64_t most_compared(const Context& context, size_t width) {
  constexpr double most_floats = 1.2e8, most_products = 5e11;
  const double each = static_cast<double>(std::max<size_t>(1, width));
  const double most =
      std::min(most_floats,
               most_products / static_cast<double>(std::max<int64_t>(1, context.samples(true)->count()))) /
      each;
  return std::clamp<int64_t>(static_cast<int64_t>(most), 1, context.samples(false)->count());
}

NearestLists nearest_rows(Context& context, std::span<const int64_t> among) {
  context.progress("nearest_neighbours: reading", 0, 1);
  Features features = features_of(context, among, false);
  const auto width = static_cast<int64_t>(features.width);
  Array rows(f32, {std::ssize(among), width});
  std::copy(features.numbers.begin(), features.numbers.end(), rows.as<float>().begin());
  features = {};
  // Nearest is where 2·x·r − r² is largest: x² is the same for all.
  const auto near = compile([](const Tensor& x, const Tensor& r) {
    return 2 * matmul(x, r, false, true) - unsqueeze((r * r).sum({1}), 0);
  });
  NearestLists all;
  const int64_t count = context.samples(true)->count(),
                most = std::min<int64_t>(neighbours_asked, std::ssize(among));
  for (int64_t first = 0; first < count && !context.options().stop(); first += rows_at_once) {
    // The last rows overlap those before, so that all are of one size.
    const int64_t begin = std::max<int64_t>(0, std::min(first, count - rows_at_once));
    std::vector<int64_t> tested(static_cast<size_t>(std::min(rows_at_once, count)));
    std::iota(tested.begin(), tested.end(), begin);
    const Features own = features_of(context, tested, true);
    Array x(f32, {std::ssize(tested), width});
    std::copy(own.numbers.begin(), own.numbers.end(), x.as<float>().begin());
    const Array found = near(Tensor(x), Tensor(rows)).to_array();
    const std::span<const float> scores = found.as<float>();
    std::vector<int64_t> places(among.size());
    for (int64_t i = first - begin; i < std::ssize(tested); ++i) {
      const std::span<const float> of = scores.subspan(static_cast<size_t>(i) * among.size(), among.size());
      std::iota(places.begin(), places.end(), int64_t{0});
      std::partial_sort(places.begin(), places.begin() + most, places.end(), [&](int64_t a, int64_t b) {
        const float p = of[static_cast<size_t>(a)], q = of[static_cast<size_t>(b)];
        return p != q ? p > q : a < b;
      });
      std::vector<int64_t>& kept = all.emplace_back(places.begin(), places.begin() + most);
      for (int64_t& place : kept) place = among[static_cast<size_t>(place)];
    }
    context.progress("nearest_neighbours", first, count);
  }
  return all;
}

/// Shares of neighbours as logits of the same probabilities, and of numbers their mean.
std::vector<float> logits_of_nearest(Context& context, const NearestLists& nearest) {
  const task::Output& output = *context.task().outputs[0];
  const PartRows& rows = context.targets(0, false);
  const Array& targets = rows.arrays[0];
  const auto width = static_cast<size_t>(output.width());
  const bool classes = output.link() == eval::Link::softmax, labels = output.link() == eval::Link::sigmoid;
  constexpr double least = 1e-6;
  std::vector<double> all(width);  // where nobody is near
  double counted = 0;
  const auto add = [&](size_t sample, std::vector<double>& to) {
    if (!rows.good[sample]) return 0;
    if (classes) {
      const int64_t label = targets.as<int64_t>()[sample];
      if (label < 0) return 0;
      to[static_cast<size_t>(label)] += 1;
    } else {
      for (size_t c = 0; c < width; ++c)
        to[c] += static_cast<double>(targets.as<float>()[sample * width + c]);
    }
    return 1;
  };
  for (size_t i = 0; i < rows.good.size(); ++i) counted += add(i, all);
  std::vector<float> logits;
  for (const std::vector<int64_t>& own : nearest) {
    std::vector<double> sums(width);
    double count = 0;
    for (const int64_t sample : own) count += add(static_cast<size_t>(sample), sums);
    if (count == 0) {
      sums = all;
      count = counted;
    }
    for (size_t c = 0; c < width; ++c) {
      const double mean = sums[c] / std::max(1.0, count);
      if (!classes && !labels)
        logits.push_back(static_cast<float>(mean));
      else
        logits.push_back(static_cast<float>(std::log(std::max(mean, least)) -
                                            (labels ? std::log(std::max(1 - mean, least)) : 0)));
    }
  }
  return logits;
}

}  // namespace

Result nearest_samples(Context& context) {
  const task::Input& input = *context.task().inputs[0];
  NearestLists nearest;
  std::string note;
  if (input.gives() == "tokens") {
    const std::vector<std::string> columns = input.text_columns();
    if (columns.size() != 1) return not_for("compares texts of one column by their words");
    nearest = nearest_texts(context, columns[0]);
    note = "by their words";
  } else {
    const Features first = features_of(context, spread(context.samples(false)->count(), 1), false);
    if (first.columns > 0) return not_for("compares numbers, and these samples have others");
    const int64_t all = context.samples(false)->count(), most = most_compared(context, first.width);
    nearest = nearest_rows(context, spread(all, most));
    note = most < all ? fmt::format("by all numbers of a sample, among {} of {}", most, all)
                      : "by all numbers of a sample";
  }
  if (std::ssize(nearest) < context.samples(true)->count()) return not_for("was stopped");
  return {.note = note, .metrics = context.judged({logits_of_nearest(context, nearest)})};
}

}  // namespace millrace::baseline
