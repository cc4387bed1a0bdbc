// What a short training learns must hold on the test set, too.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/learning.h"
#include "check/rows.h"

namespace millrace::check {
namespace {

constexpr int64_t agreement_rows = 400;  // of each set, at most
constexpr int64_t telling_steps = 48;    // of fewer nothing is learnt that could be compared

/// What the model made of rows: of classes the predicted one and the true one, of numbers both numbers.
struct Answers {
  std::vector<double> predicted, known;
  bool classes = false;

  double accuracy() const {
    int64_t right = 0;
    for (size_t i = 0; i < known.size(); ++i) right += predicted[i] == known[i];
    return static_cast<double>(right) / static_cast<double>(std::max<size_t>(known.size(), 1));
  }
  /// What answering always the same would reach.
  double chance() const {
    if (!classes) return 0;
    std::map<double, int64_t> counts;
    int64_t most = 0;
    for (const double c : known) most = std::max(most, ++counts[c]);
    return static_cast<double>(most) / static_cast<double>(std::max<size_t>(known.size(), 1));
  }
  /// The share of the variance that is explained.
  double explained() const {
    double mean = 0, left = 0, all = 0;
    for (const double y : known) mean += y / static_cast<double>(known.size());
    for (size_t i = 0; i < known.size(); ++i) {
      left += (known[i] - predicted[i]) * (known[i] - predicted[i]);
      all += (known[i] - mean) * (known[i] - mean);
    }
    return all > 0 ? 1 - left / all : 0;
  }
  double score() const { return classes ? accuracy() : explained(); }
};

/// Adds rows [batch, …] of outputs and targets.
void add_answers(Answers& to, const Array& output, const Array& target) {
  const int64_t rows = target.shape()[0].size(), width = output.count() / rows, known = target.count() / rows;
  const auto outputs = output.as<float>();
  for (int64_t r = 0; r < rows; ++r) {
    if (to.classes) {
      if (target.int_at(r) < 0) continue;
      const auto row = outputs.subspan(static_cast<size_t>(r * width), static_cast<size_t>(width));
      to.predicted.push_back(static_cast<double>(std::max_element(row.begin(), row.end()) - row.begin()));
      to.known.push_back(static_cast<double>(target.int_at(r)));
    } else {
      to.predicted.push_back(output.at(r * width));
      to.known.push_back(target.at(r * known));
    }
  }
}

/// Batches of the test set as a training would have them, mixed; none where a step wants more than they have.
std::vector<std::vector<Array>> test_batches(Context& context) {
  const task::Task& task = *context.task();
  std::vector<std::string> notes;
  task::TaskFeed tests = task::open_tests(task, "", agreement_rows, 0, nullptr, notes);
  const data::Feed& training = *context.training()->feed;
  const std::vector<Array>& like = context.batch();
  std::vector<std::optional<size_t>> places;  // none of what only training draws: masks, shares of a mix
  for (const data::Field& field : training.fields())
    places.push_back(tests.feed->has_field(field.name) ? std::optional(tests.feed->field(field.name))
                                                       : std::nullopt);
  std::vector<std::vector<Array>> batches;
  const int64_t rows = context.rows();
  for (int64_t b = 0; b < tests.feed->batches_per_epoch(); ++b) {
    const data::FeedBatch& batch = tests.feed->next();
    std::vector<Array> arrays;
    for (const auto& place : places) arrays.push_back(place ? tests.feed->array(batch, *place) : Array());
    const int64_t slices = batch.valid / rows;
    for (int64_t s = 0; s < slices; ++s) {
      std::vector<int64_t> from;
      for (int64_t r = 0; r < rows; ++r) from.push_back(s + r * slices);
      std::vector<Array> slice;
      bool fits = true;
      for (size_t i = 0; i < arrays.size(); ++i) {
        slice.push_back(places[i] ? picked_rows(arrays[i], from) : like[i]);
        fits = fits && slice.back().type() == like[i].type();
      }
      if (fits) batches.push_back(std::move(slice));  // else rows of another length
    }
  }
  return batches;
}

Answers answers_on(Context& context, const std::vector<std::vector<Array>>& batches, size_t first,
                   size_t count) {
  const size_t target = context.subject().targets[0];
  Answers answers;
  answers.classes = context.batch()[target].dtype().is_int();
  for (size_t i = first; i < std::min(first + count, batches.size()); ++i)
    add_answers(answers, context.outputs(context.given(batches[i]))[0], batches[i][target]);
  return answers;
}

/// Which class of the test set is meant where the model says another: pairs of both, the most frequent true
/// class of each answer, and how many would be right then.
struct Renamed {
  std::map<double, double> means;
  double accuracy = 0;
};
Renamed renamed(const Answers& answers) {
  std::map<std::pair<double, double>, int64_t> counts;
  for (size_t i = 0; i < answers.known.size(); ++i) ++counts[{answers.predicted[i], answers.known[i]}];
  std::vector<std::pair<int64_t, std::pair<double, double>>> sorted;
  for (const auto& [pair, count] : counts) sorted.emplace_back(count, pair);
  std::sort(sorted.rbegin(), sorted.rend());
  Renamed found;
  std::map<double, double> taken;
  int64_t right = 0;
  for (const auto& [count, pair] : sorted) {
    if (found.means.contains(pair.first) || taken.contains(pair.second)) continue;
    found.means[pair.first] = pair.second;
    taken[pair.second] = pair.first;
    right += count;
  }
  found.accuracy = static_cast<double>(right) / static_cast<double>(answers.known.size());
  return found;
}

std::string pairs_text(const Renamed& found, const std::vector<std::string>& names) {
  std::vector<std::string> pairs;
  const auto name = [&](double c) {
    const auto at = static_cast<size_t>(c);
    return at < names.size() ? names[at] : fmt::format("{}", c);
  };
  for (const auto& [says, means] : found.means)
    if (says != means && pairs.size() < 4) pairs.push_back(fmt::format("{} for {}", name(means), name(says)));
  return fmt::format("{}", fmt::join(pairs, ", "));
}

Finding judge_agreement(Context& context, const Answers& training, const Answers& tests,
                        const std::vector<std::vector<Array>>& test_rows) {
  const double a = training.score(), b = tests.score(), chance = training.chance();
  const auto count = static_cast<double>(std::min(training.known.size(), tests.known.size()));
  const double noise = tests.classes ? std::sqrt(0.5 / count) : 0.08;
  const std::string saw = fmt::format("after a short training {} {}, {} of the test set's", share_text(a),
                                      tests.classes ? "of new training samples are told rightly"
                                                    : "of the variance of new training samples is explained",
                                      share_text(b));
  const bool learnt = a > chance + std::max(4 * noise, 0.15);
  if (learnt && tests.classes) {
    const Renamed other = renamed(tests);
    // Of classes that are half learnt other names make more right in training, too.
    const double usual = renamed(training).accuracy - a;
    if (other.accuracy > b + usual + std::max(5 * noise, 0.2) && other.accuracy > chance + 0.6 * (a - chance))
      return failed(
          saw + fmt::format("; {} if the test set's classes had each other's names ({})",
                            share_text(other.accuracy),
                            pairs_text(other, context.task()->outputs[0]->classes())),
          "classes are numbered in another order in the test set: name them in both, or give output.classes");
  }
  if (learnt && b < tests.chance() + 0.25 * (a - chance) && a - b > 4 * noise)
    return warned(saw,
                  "what is learnt does not hold there: were the test set's samples made in the same way "
                  "(order of channels or columns, scale, cut), and do its labels belong to its rows?");
  if (!learnt && test_rows.size() >= 12) {
    // Is there something to learn that training does not have?
    const size_t half = test_rows.size() / 2;
    (void)learn(context, [&](size_t i) -> const std::vector<Array>& { return test_rows[i % half]; }, half,
                small_batch_rate(context), {.loss = -INFINITY, .steps = 96, .seconds = 2});
    const Answers rest = answers_on(context, test_rows, half, test_rows.size());
    const double there = rest.score();
    if (there > rest.chance() + std::max(5 * noise, 0.25) && there > a + std::max(5 * noise, 0.25))
      return warned(
          fmt::format("a short training tells {} of new training samples; the same on half of the test "
                      "set tells {} of the other half",
                      share_text(a), share_text(there)),
          "there is less to learn from the training set than from the test set: were its labels mixed up "
          "against its rows?");
  }
  return passed(saw + (learnt ? "" : ", too little above chance to tell more"));
}

Finding run_test_agreement(Context& context) {
  if (!context.samples() || !context.test_samples()) return not_for("there is no test set");
  const task::Task& task = *context.task();
  if (task.outputs[0]->from() || task.outputs[0]->at_places())
    return not_for("what is predicted is made of the inputs");
  const std::vector<Array>& first = context.batch();
  const Array& target = first[context.subject().targets[0]];
  const bool one = target.count() == context.rows() || target.dtype().is_float();
  if (!one) return not_for("there is no class or number for each sample");
  const auto tests = test_batches(context);
  if (tests.size() < 3) return not_for("the test set is small, or its rows are of other lengths");
  const Learning& learning = learn_new_batches(context);
  if (!learning.finite) return not_for("the loss is not finite; ladder tells more");
  if (learning.steps < telling_steps)
    return not_for(fmt::format("a step takes so long here that {} of them teach too little", learning.steps));
  std::vector<std::vector<Array>> fresh;
  for (size_t i = 0; i < tests.size(); ++i) fresh.push_back(context.fresh_batch());
  const Answers of_training = answers_on(context, fresh, 0, fresh.size()),
                of_tests = answers_on(context, tests, 0, tests.size());
  return with_numbers(judge_agreement(context, of_training, of_tests, tests),
                      {{"training", of_training.score()}, {"tests", of_tests.score()}});
}

}  // namespace

MILLRACE_CHECK_KIND(test_agreement){
    .name = "test-agreement",
    .doc = "what a short training learns must hold on the test set: its classes, its channels, its labels",
    .matters =
        "where it does not, the two sets were made in different ways, and what is measured says nothing of "
        "the model",
    .place = 305,
    .run = run_test_agreement,
};

}  // namespace millrace::check
