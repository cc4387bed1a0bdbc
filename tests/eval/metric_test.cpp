#include "eval/metric.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>

#include <millrace/error.h>
#include <millrace/random.h>

#include "base/format.h"
#include "eval/text_metrics.h"

using namespace millrace;
using namespace millrace::eval;

namespace {

/// The rows of an output, and their targets.
struct JudgedRows {
  std::vector<float> outputs;
  int64_t width;
  std::vector<int64_t> labels;
  std::vector<double> values;
  double bytes = 0;
  std::vector<int64_t> queries = {};
  std::vector<std::string> generated = {}, references = {};

  int64_t rows() const { return static_cast<int64_t>(outputs.size()) / width; }
  Judged part(int64_t begin, int64_t end) const {
    const auto cut = [&](const auto& list, int64_t each) {
      const auto from = static_cast<size_t>(begin * each), count = static_cast<size_t>((end - begin) * each);
      return list.empty() ? std::span(list) : std::span(list).subspan(from, count);
    };
    return {cut(outputs, width),
            end - begin,
            width,
            cut(labels, 1),
            cut(values, width),
            bytes,
            {},
            {},
            cut(queries, 1),
            cut(generated, 1),
            cut(references, 1)};
  }
};

Measured measured(const std::string& metric, const std::string& output, const JudgedRows& rows) {
  Measurement measurement({metric}, output);
  measurement.update(rows.part(0, rows.rows()));
  if (rows.queries.empty()) CHECK(measurement.count() == rows.rows());
  return measurement.finalize().front();
}

double draw(uint32_t seed, uint32_t i) {
  const auto bits = philox({i, seed, 0, 0}, {11, 12});
  return std::sqrt(-2 * std::log((bits[0] + 1.0) / 4294967296.0)) *
         std::cos(2 * M_PI * bits[1] / 4294967296.0);
}

/// Random rows of a kind of output: logits of sizes that rounding matters for.
JudgedRows random_rows(const std::string& output, int64_t rows, int64_t width) {
  JudgedRows made{{}, width, {}, {}, 2.75};
  for (uint32_t i = 0; i < rows * width; ++i) {
    const double target = 100 + 10 * draw(1, i);
    const bool number = output == "number";
    made.outputs.push_back(static_cast<float>(number ? target + draw(2, i) : 3 * draw(2, i)));
    if (number) made.values.push_back(target);
    if (output == "classes") made.values.push_back(draw(1, i) > 0.5);
    if (output == "rank") made.values.push_back(philox({i, 1, 0, 0}, {1, 2})[0] % 4);
    if (output == "rank") made.queries.push_back(i / 5);
  }
  for (uint32_t i = 0; output == "tokens" && i < rows; ++i) {
    std::string own, right;
    for (uint32_t word = 0; word < 8; ++word) {
      const uint32_t drawn = philox({i, word, 0, 0}, {3, 4})[0];
      right += fmt::format("word{} ", drawn % 5);
      own += fmt::format("word{} ", drawn % 7 == 0 ? 9 : drawn % 5);
    }
    made.generated.push_back(own);
    made.references.push_back(right);
  }
  if (made.values.empty())
    for (uint32_t i = 0; i < rows; ++i) made.labels.push_back(philox({i, 0, 0, 0}, {1, 2})[0] % width);
  return made;
}

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

}  // namespace

TEST_CASE("metrics of classes agree with scikit-learn's arithmetic, done by numpy") {
  const JudgedRows rows{{2, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 1, 5, 2, 3, 4}, 6, {0, 0, 0}, {}, 2.5};
  CHECK(measured("accuracy", "class", rows).value == doctest::Approx(1.0 / 3));
  CHECK(measured("top-5", "class", rows).value == doctest::Approx(2.0 / 3));
  CHECK(measured("log-loss", "class", rows).value == doctest::Approx(2.7538503981215747).epsilon(1e-12));
  CHECK(measured("perplexity", "tokens", rows).value == doctest::Approx(15.702978349013083).epsilon(1e-12));
  CHECK(measured("bits-per-byte", "tokens", rows).value ==
        doctest::Approx(1.5891865250880373).epsilon(1e-12));
  CHECK(measured("ece", "class", rows).value == doctest::Approx(0.5955422921605734).epsilon(1e-12));
}

TEST_CASE("metrics of numbers are means over columns, as scikit-learn's uniform_average") {
  const JudgedRows rows{{1.0F, 2001, 2.5F, 2008, 0.0F, 2005, 3.0F, 1995, 3.5F, 2000},
                        2,
                        {},
                        {1.5, 2000, 2.0, 2010, -0.5, 2005, 4.0, 1990, 3.25, 2003}};
  CHECK(measured("mae", "number", rows).value == doctest::Approx(1.375).epsilon(1e-14));
  CHECK(measured("rmse", "number", rows).value == doctest::Approx(1.6974638688467014).epsilon(1e-14));
  CHECK(measured("r2", "number", rows).value == doctest::Approx(0.8366370157496267).epsilon(1e-13));
}

TEST_CASE("R² of targets far from zero loses nothing, of constant ones it is 1 or 0") {
  // Around 2^40 the squares of the targets have 80 bits. The variance is that of 0 … 3, which is 1.25; errors
  // are 0, 0, 0, 1/4.
  const double far = std::ldexp(1, 40);
  const JudgedRows rows{{static_cast<float>(far), 0, 0, 0}, 1, {}, {far, far + 1, far + 2, far + 3}};
  JudgedRows shifted = rows;
  for (double& value : shifted.values) value -= far;
  shifted.outputs = {0, 1, 2, 3.25F};
  CHECK(measured("r2", "number", shifted).value == 1 - 0.0625 / 5);
  // A prediction that misses all by far: 1 − (3 · 2^80 + …) / 5, whose divisor must be 5 and not what
  // rounding left of it.
  const double errors = std::pow(far + 1, 2) + std::pow(far + 2, 2) + std::pow(far + 3, 2);
  CHECK(measured("r2", "number", rows).value == doctest::Approx(1 - errors / 5).epsilon(1e-14));

  CHECK(measured("r2", "number", {{0.5F, 0.5F, 0.5F}, 1, {}, {0.5, 0.5, 0.5}}).value == 1);
  CHECK(measured("r2", "number", {{0.5F, 0.5F, 0.5F}, 1, {}, {0.1, 0.1, 0.1}}).value == 0);
  CHECK(std::isnan(measured("r2", "number", {{0.5F}, 1, {}, {0.1}}).value));
}

TEST_CASE("intervals end where a metric's values do") {
  // One row of forty is far off: the mean's error is as large as the mean.
  JudgedRows rows{{}, 1, {}, {}};
  for (int i = 0; i < 40; ++i) {
    rows.values.push_back(0);
    rows.outputs.push_back(i == 7 ? 100.0F : 0.0F);
  }
  for (const char* name : {"mae", "rmse", "mse"}) {
    const Measured error = measured(name, "number", rows);
    CHECK(error.low == 0);
    CHECK(error.high > error.value);
  }
  for (size_t i = 0; i < 40; ++i) {
    rows.values[i] = static_cast<double>(i);
    rows.outputs[i] = static_cast<float>(i == 7 ? 9 : i);
  }
  const Measured explained = measured("r2", "number", rows);
  CHECK(explained.value < 1);
  CHECK(explained.high == 1);
}

TEST_CASE("metrics of labels count at a logit above 0") {
  // Told: + − +, − + −, − − + (0 is not above 0), + + −. Right to hold 4, told 6, holding 7; 7 of 12 labels
  // are right.
  const JudgedRows rows{
      {1.5F, -2, 0.25F, -1, 3, -0.5F, 0, -1, 2, 2, 1, -3}, 3, {}, {1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0}};
  const Measured accuracy = measured("label-accuracy", "classes", rows);
  CHECK(accuracy.value == doctest::Approx(7.0 / 12));
  CHECK(measured("f1", "classes", rows).value == doctest::Approx(8.0 / 13));
  CHECK(std::pair(accuracy.low, accuracy.high) == wilson_interval(7.0 / 12, 4));
  CHECK(measured("f1", "classes", {{-1, -1}, 2, {}, {0, 0}}).value == 0);
}

TEST_CASE("metrics of texts are those of the functions that they stand for") {
  Judged rows;
  const std::vector<std::string> generated = {"the cat sat on a mat today", "no"},
                                 references = {"the cat sat on the mat", "yes"};
  rows.rows = 2;
  rows.generated = generated;
  rows.references = references;
  Measurement measurement({"wer", "cer", "rouge-1", "bleu"}, "tokens");
  measurement.update(rows);
  const std::vector<Measured> results = measurement.finalize();
  // Of 7 words one is changed, one put in, and "no" for "yes"; 6 of 7 and 0 of 1 words overlap.
  CHECK(results[0].value == doctest::Approx(3.0 / 7));
  CHECK(results[2].value == doctest::Approx((2 * 5.0 / 13 + 0) / 2));
  Bleu bleu;
  for (size_t i = 0; i < 2; ++i) bleu.add(generated[i], references[i]);
  CHECK(results[3].value == bleu.value());
  CHECK(metric_kind("wer").texts);
}

TEST_CASE("log-loss stays exact where a probability underflows") {
  CHECK(measured("log-loss", "class", {{2000, 0}, 2, {1}, {}}).value == doctest::Approx(2000));
}

TEST_CASE("top-5 takes the first of equals, and a NaN for the last") {
  const auto top = [](float own, int64_t label) {
    JudgedRows rows{{1, 1, 1, 1, 1, 1, 1}, 7, {label}, {}};
    rows.outputs[static_cast<size_t>(label)] = own;
    return measured("top-5", "class", rows).value;
  };
  CHECK(top(1, 4) == 1);
  CHECK(top(1, 5) == 0);
  CHECK(top(2, 6) == 1);
  CHECK(top(NAN, 0) == 0);
}

TEST_CASE("a calibrated predictor has no calibration error, an overconfident one its excess") {
  const auto logit = [](double p) { return static_cast<float>(std::log(p / (1 - p))); };
  JudgedRows calibrated{{}, 2, {}, {}}, sure{{}, 2, {}, {}};
  for (int i = 0; i < 10; ++i) {
    calibrated.outputs.insert(calibrated.outputs.end(), {logit(0.7), 0});
    sure.outputs.insert(sure.outputs.end(), {logit(0.9), 0});
    calibrated.labels.push_back(i < 7 ? 0 : 1);
    sure.labels.push_back(i < 7 ? 0 : 1);
  }
  CHECK(measured("ece", "class", calibrated).value == doctest::Approx(0).epsilon(1e-6));
  CHECK(measured("ece", "class", sure).value == doctest::Approx(0.2));
}

TEST_CASE("a confidence on the edge of a calibration bin belongs to the bin below") {
  // Three alike: 1/3, the edge of bins 5 and 6, is in bin 5 together with 0.30 (right: their gaps cancel),
  // not with 0.36.
  const auto gap = [](float top) {
    const float rest = std::log((1 - std::exp(top)) / 3);  // four classes: exp(top), and three alike
    JudgedRows rows{{0, 0, 0, -INFINITY, top, rest, rest, rest}, 4, {1, 0}, {}};
    return measured("ece", "class", rows).value;
  };
  const double third = 1.0 / 3;
  CHECK(gap(std::log(0.30F)) == doctest::Approx(std::abs(third + 0.30 - 1) / 2).epsilon(1e-6));
  CHECK(gap(std::log(0.36F)) == doctest::Approx((third + 1 - 0.36) / 2).epsilon(1e-6));
  CHECK(std::isnan(measured("ece", "class", {{NAN, 0}, 2, {0}, {}}).value));
}

TEST_CASE("parts of a pass, merged in any order, give every metric and interval to the last bit") {
  constexpr int64_t count = 205;
  for (const MetricKind* kind : metric_kinds().all())
    for (const std::string& output : kind->outputs) {
      CAPTURE(kind->name);
      const int64_t width = output == "rank" ? 1 : 7, together = output == "rank" ? 5 : 1;
      const JudgedRows rows = random_rows(output, count, width);
      const Measured whole = measured(kind->name, output, rows);
      CHECK(std::isfinite(whole.value));
      CHECK(whole.low < whole.value);
      CHECK(whole.value < whole.high);
      for (uint32_t trial = 0; trial < 10; ++trial) {
        std::vector<int64_t> cuts = {0, count};
        for (uint32_t i = 0; i < 6; ++i)
          cuts.push_back(philox({i, trial, 1, 0}, {3, 4})[0] % (count / together + 1) * together);
        std::sort(cuts.begin(), cuts.end());
        std::vector<Measurement> parts;
        std::unique_ptr<Metric> alone = kind->init();
        for (size_t i = 0; i + 1 < cuts.size(); ++i) {
          const Judged judged = rows.part(cuts[i], cuts[i + 1]);
          parts.emplace_back(std::vector<std::string>{kind->name}, output);
          parts.back().at(cuts[i] / together);
          parts.back().update(judged);
          std::unique_ptr<Metric> piece = kind->init();
          piece->update(judged);
          if (i % 2) std::swap(alone, piece);  // merging goes either way
          alone->merge(*piece);
        }
        std::vector<size_t> order(parts.size());
        std::iota(order.begin(), order.end(), size_t{0});
        for (uint32_t i = 0; i < order.size(); ++i)
          std::swap(order[i], order[philox({i, trial, 2, 0}, {3, 4})[0] % order.size()]);
        for (size_t i = 1; i < order.size(); ++i) parts[order[0]].merge(parts[order[i]]);
        const Measured merged = parts[order[0]].finalize().front();
        CHECK(parts[order[0]].count() == count / together);
        CHECK(same_bits(merged.value, whole.value));
        CHECK(same_bits(merged.low, whole.low));
        CHECK(same_bits(merged.high, whole.high));
        CHECK(same_bits(alone->finalize(), whole.value));
      }
    }
}

TEST_CASE("the jackknife of a mean gives about the textbook's standard error") {
  constexpr int64_t count = 20000;
  JudgedRows rows{std::vector<float>(count, 0), 1, {}, {}};
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const double error = std::abs(5 + 2 * draw(9, i));
    rows.values.push_back(error);
    sum += error;
    squares += error * error;
  }
  const double mean = sum / count, error = std::sqrt((squares / count - mean * mean) / count);
  const Measured mae = measured("mae", "number", rows);
  CHECK(mae.value == doctest::Approx(mean).epsilon(1e-12));
  // An estimate of an error from 20 groups is itself only good to 1 / √(2 · 19) = 16 %, twice that here.
  CHECK((mae.high - mae.low) / 2 == doctest::Approx(1.96 * error).epsilon(0.33));
  CHECK((mae.high + mae.low) / 2 == doctest::Approx(mean));
}

TEST_CASE("the jackknife of a mean of 20 rows is the textbook's standard error, and of fewer there is none") {
  JudgedRows rows{std::vector<float>(20, 0), 1, {}, {}};
  for (int i = 1; i <= 20; ++i) rows.values.push_back(i);
  // The variance of 1 … 20 is 35 (with n − 1).
  const Measured twenty = measured("mae", "number", rows);
  CHECK(twenty.value == 10.5);
  CHECK(twenty.high - twenty.value ==
        doctest::Approx(1.959963984540054 * std::sqrt(35.0 / 20)).epsilon(1e-12));
  rows.values.pop_back();
  rows.outputs.pop_back();
  const Measured fewer = measured("mae", "number", rows);
  CHECK(fewer.value == 10);
  CHECK(std::isnan(fewer.low));
  CHECK(std::isnan(fewer.high));
}

TEST_CASE("metrics of nothing are NaN") {
  for (const MetricKind* kind : metric_kinds().all()) {
    CAPTURE(kind->name);
    CHECK(std::isnan(kind->init()->finalize()));
    const Measured nothing = Measurement({kind->name}, kind->outputs.front()).finalize().front();
    CHECK(std::isnan(nothing.value));
    CHECK(std::isnan(nothing.low));
    CHECK(!kind->doc.empty());
  }
}

TEST_CASE("Wilson's interval is that of the literature") {
  const auto [low, high] = wilson_interval(0.9, 10);
  CHECK(low == doctest::Approx(0.5958).epsilon(1e-3));
  CHECK(high == doctest::Approx(0.9821).epsilon(1e-3));
  CHECK(wilson_interval(1, 50).second == 1);
}

TEST_CASE("unknown metrics name the nearest, those of other outputs which apply") {
  CHECK_THROWS_WITH_AS(Measurement({"acuracy"}, "class"), doctest::Contains("did you mean 'accuracy'"),
                       InputError);
  CHECK_THROWS_WITH_AS(
      Measurement({"mae", "accuracy"}, "number"),
      "the metric accuracy does not apply to an output of kind number, but to class, tokens and duel; "
      "number is measured by mae, mape, mse, pinball-50, r2, rmse",
      InputError);
  const std::vector<std::string> outputs = {"classes"};
  const std::vector<std::string> all = metrics_for(outputs);
  for (const char* name : {"f1", "label-accuracy", "roc-auc"})
    CHECK(std::find(all.begin(), all.end(), name) != all.end());
  CHECK(std::find(all.begin(), all.end(), "accuracy") == all.end());
  Measurement accuracy({"accuracy"}, "class"), loss({"log-loss"}, "class");
  CHECK_THROWS_AS(accuracy.merge(loss), InternalError);
  CHECK_THROWS_AS(accuracy.update(JudgedRows{{1, 2}, 2, {2}, {}}.part(0, 1)), InternalError);
}
