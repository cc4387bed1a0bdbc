// Labels: there, readable, of all classes, and not of one alone.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/format.h"
#include "check/check.h"
#include "check/codes.h"
#include "check/columns.h"
#include "check/context.h"
#include "task/class_weights.h"

namespace millrace::check {
namespace {

std::vector<double> class_shares(const std::vector<int64_t>& labels, size_t classes) {
  std::vector<double> shares(classes);
  double all = 0;
  for (const int64_t label : labels)
    if (label >= 0) {
      ++shares[static_cast<size_t>(label)];
      ++all;
    }
  for (double& share : shares) share /= std::max(all, 1.0);
  return shares;
}

/// How far apart shares of classes are by chance alone where each is of so many samples drawn alike: half the
/// sum of the mean differences.
double apart_by_chance(const std::vector<double>& one, double samples, const std::vector<double>& other,
                       double others) {
  double apart = 0;
  for (size_t c = 0; c < one.size(); ++c) {
    const double share = (one[c] * samples + other[c] * others) / (samples + others);
    apart += std::sqrt(2 * share * (1 - share) * (1 / samples + 1 / others) / std::numbers::pi) / 2;
  }
  return apart;
}

/// `all`: the samples to train on, of which those of `training` were looked at.
Finding judge_classes(const Targets& training, const Targets& tests, int64_t all) {
  const auto count = static_cast<double>(training.classes.size());
  const auto unknown = static_cast<double>(std::count(training.classes.begin(), training.classes.end(), -1));
  const std::vector<double> shares = class_shares(training.classes, training.names.size());
  const auto most = std::max_element(shares.begin(), shares.end()),
             least = std::min_element(shares.begin(), shares.end());
  const auto name = [&](auto at) { return training.names[static_cast<size_t>(at - shares.begin())]; };
  const std::string saw = fmt::format("{} classes, from {} ('{}') to {} ('{}') of the samples", shares.size(),
                                      share_text(*least), name(least), share_text(*most), name(most));
  Finding finding = passed(saw);
  if (unknown > 0.01 * count)
    finding = failed(fmt::format("{} of the samples have no label", share_text(unknown / count)),
                     "label them, or leave them out (data.where)");
  else if (*most > 0.999)
    finding = failed(saw, "there is next to nothing to learn: add samples of other classes");
  else if (const double each = static_cast<double>(all) / static_cast<double>(shares.size()); each < 5)
    finding = warned(fmt::format("{} classes, {} samples of each to train on, as a mean", shares.size(),
                                 short_number(each)),
                     "so few samples teach next to nothing of a class: take more, or join rare classes into "
                     "larger ones; are these numbers of rows, or amounts (output.kind = \"number\")?");
  else if (*most > 0.95 || *least * static_cast<double>(all) < 5)
    finding = warned(saw,
                     "report a metric that sees rare classes (F1, PR-AUC), weigh classes in the loss, or "
                     "draw them alike (data.order); accuracy says little here");
  if (!tests.classes.empty()) {
    const std::vector<double> other = class_shares(tests.classes, training.names.size());
    double apart = 0;
    for (size_t c = 0; c < shares.size(); ++c) apart += std::abs(shares[c] - other[c]) / 2;
    constexpr double expected = 10;  // samples to test on: fewer may be missing by chance
    for (size_t c = 0; c < shares.size(); ++c)
      if (other[c] == 0 && shares[c] * static_cast<double>(tests.classes.size()) >= expected) {
        finding =
            worse(finding, warned(fmt::format("'{}', {} of the samples to train on, is never in the test set",
                                              training.names[c], share_text(shares[c])),
                                  "nothing is known of how well it is told: test on samples of all classes "
                                  "(data.test_by = \"stratified\")"));
        break;
      }
    const double by_chance =
        apart_by_chance(shares, count, other, static_cast<double>(std::max<size_t>(tests.classes.size(), 1)));
    if (apart > 0.25 + by_chance)
      finding = worse(finding,
                      warned(fmt::format("classes are as frequent in the test set for {} of the samples only",
                                         share_text(1 - apart)),
                             "data sorted by class was cut in two? data.test_by = \"stratified\""));
  }
  return with_numbers(
      finding,
      {{"classes", shares.size()}, {"least_share", *least}, {"most_share", *most}, {"unlabelled", unknown}});
}

/// Weights by which nearly all of the loss is that of one class.
Finding judge_weights(const task::Output& output, const Targets& targets) {
  if (!output.settings().find("class_weights")) return passed("");
  const std::vector<double> shares = class_shares(targets.classes, targets.names.size());
  std::vector<double> balanced;
  for (const double share : shares) balanced.push_back(share > 0 ? 1 / share : 1);
  const std::vector<double> weights =
      task::class_weights(output.settings().texts("class_weights"), "class_weights", targets.names, balanced);
  if (weights.empty()) return passed("");
  double all = 0, most = 0;
  size_t heaviest = 0;
  for (size_t c = 0; c < shares.size(); ++c) {
    const double part = shares[c] * weights[c];
    all += part;
    if (part <= most) continue;
    most = part;
    heaviest = c;
  }
  constexpr double nearly_all = 0.97;
  return all > 0 && most > nearly_all * all && most > 1.02 * shares[heaviest] * all
             ? warned(
                   fmt::format("by class_weights {} of the loss is that of '{}', which {} of the samples are",
                               share_text(most / all), targets.names[heaviest], share_text(shares[heaviest])),
                   "the model will say it of everything: \"balanced\" gives each class as much")
             : passed("");
}

Finding judge_numbers(const Context& context, const Targets& targets) {
  const Moments m = moments_of(targets.numbers);
  const auto count = static_cast<int64_t>(targets.numbers.size());
  const std::string saw = fmt::format("{}: {} ± {}, from {} to {}", targets.column, short_number(m.mean),
                                      short_number(m.deviation), short_number(m.least), short_number(m.most));
  Finding finding = passed(saw);
  const double far = m.deviation > 0 ? std::max(m.most - m.mean, m.mean - m.least) / m.deviation : 0;
  if (count - m.count > count / 100)
    finding =
        failed(fmt::format("{} of the samples have no number in {}",
                           share_text(static_cast<double>(count - m.count) / static_cast<double>(count)),
                           targets.column),
               "leave them out (data.where), or say how what is missing is written (data.missing)");
  else if (m.deviation == 0)
    finding = failed(fmt::format("{} is always {}", targets.column, short_number(m.mean)),
                     "is it the right column?");
  else if (Finding codes = judge_codes(context, targets); codes.verdict != Verdict::pass)
    finding = std::move(codes);
  else if (far > 30)
    finding =
        warned(saw + fmt::format("; the farthest is {} deviations away", short_number(far)),
               "a few such numbers rule a squared loss: look at them (a unit, a word for missing such as "
               "-999?), take output.loss = \"huber\", or learn the logarithm");
  return with_numbers(finding, {{"mean", m.mean}, {"deviation", m.deviation}, {"farthest", far}});
}

/// Samples that could not be read, of those that were tried.
Finding judge_reading(Context& context) {
  if (context.quick()) return passed("");
  for (size_t i = 0; i < 4; ++i) (void)context.batch(i);
  const data::Tried tried = context.training()->feed->tried();
  if (tried.bad == 0 && tried.known_bad == 0) return passed("all samples tried can be read");
  const double share =
      static_cast<double>(tried.bad) / static_cast<double>(std::max<int64_t>(1, tried.samples));
  const std::string saw = fmt::format("{} of {} samples tried cannot be read", tried.bad, tried.samples);
  constexpr const char* advice = "millrace data verify and millrace data stat name them: mend or remove them";
  return share > 0.01 ? failed(saw, advice) : warned(saw, advice);
}

/// Of one output.
Finding judge_targets(const Context& context, const Targets& training) {
  if (training.classes.empty()) return judge_numbers(context, training);
  Targets tests;
  if (context.test_samples()) tests = read_targets_of(*training.output, context, context.test_samples());
  Finding finding = judge_classes(training, tests, context.samples()->count());
  if (const Finding weights = judge_weights(*training.output, training); weights.verdict != Verdict::pass)
    finding = worse(std::move(finding), weights);
  return finding;
}

Finding run_labels(Context& context) {
  if (!context.task()) return not_for("no data: a model of C++");
  Finding finding = judge_reading(context);
  if (!context.samples()) return finding;
  const std::vector<Targets> all = read_all_targets(context, context.samples());
  if (all.empty()) return finding;
  Finding own;
  for (const Targets& each : all) {
    Finding next = judge_targets(context, each);
    if (all.size() > 1) next.saw = fmt::format("{}: {}", task::output_key(each.output->section()), next.saw);
    own = &each == &all[0] ? std::move(next) : worse(std::move(own), next);
  }
  constexpr int64_t few_tests = 25;
  if (context.test_samples() && context.test_samples()->count() < few_tests)
    own = worse(std::move(own),
                warned(fmt::format("no more than {} samples to test on", context.test_samples()->count()),
                       "so few tell a good model from a bad one only by luck: keep more (data.test_share)"));
  return context.quick() ? own : worse(std::move(own), finding);
}

}  // namespace

MILLRACE_CHECK_KIND(labels){
    .name = "labels",
    .doc = "targets: there, readable, more than one, none that nearly all samples have",
    .matters = "a model learns what its labels say: where they are missing, odd or all alike, it learns that",
    .place = 100,
    .quick = true,
    .run = run_labels,
};

}  // namespace millrace::check
