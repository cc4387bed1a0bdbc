// The same preprocessing wherever the model is used.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"
#include "data/table/select.h"
#include "ir/first_along.h"
#include "task/feed_parts.h"

namespace millrace::check {
namespace {

constexpr int64_t looked_at = 512;

/// The arrays that a task makes of samples to predict, a few hundred from all over.
struct Made {
  std::vector<std::string> names;
  std::vector<std::vector<Array>> batches;
  int64_t rows = 0;  // that count
  std::vector<int64_t> valid;
};
Made made_of(const task::Task& task, const std::shared_ptr<const data::Dataset>& samples) {
  const auto some = data::sample_of(samples, looked_at);
  task::TaskFeed set = task::open_predictions(task, some, std::min<int64_t>(some->count(), 64));
  Made made;
  for (const data::Field& field : task.fields()) made.names.push_back(field.name);
  for (int64_t i = 0; i < set.feed->batches_per_epoch(); ++i) {
    const data::FeedBatch& batch = set.feed->next();
    std::vector<Array> arrays;
    for (const std::string& name : made.names)
      arrays.push_back(set.feed->array(batch, set.feed->field(name)));
    made.batches.push_back(std::move(arrays));
    made.valid.push_back(batch.valid);
    made.rows += batch.valid;
  }
  return made;
}

bool same_arrays(const Made& one, const Made& other) {
  if (one.batches.size() != other.batches.size()) return false;
  for (size_t b = 0; b < one.batches.size(); ++b)
    for (size_t k = 0; k < one.batches[b].size(); ++k)
      if (!one.batches[b][k].identical(other.batches[b][k])) return false;
  return true;
}

/// Of a column of an array [rows, columns], or of all elements of others: mean and deviation as they are, and
/// without what is far out, which a few rows with large numbers do not move.
struct Spread {
  Moments all, usual;
};

Moments without_far_out(std::vector<double> values) {
  constexpr size_t parts = 100, least = 20;
  if (values.size() < least) return moments_of(values);
  std::sort(values.begin(), values.end());
  const size_t cut = std::max<size_t>(1, values.size() / parts);
  const double low = values[cut], high = values[values.size() - 1 - cut];
  for (double& value : values) value = std::clamp(value, low, high);
  return moments_of(values);
}

std::vector<Spread> spreads_of(const Made& made, size_t k) {
  constexpr int64_t most_columns = 256, most_values = 1 << 18;
  const Array& first = made.batches[0][k];
  const bool table = first.shape().rank() == 2 && first.shape()[1].size() <= most_columns;
  const int64_t columns = table ? first.shape()[1].size() : 1;
  int64_t all = 0;
  for (const auto& batch : made.batches) all += batch[k].count();
  const int64_t step = table ? 1 : std::max<int64_t>(1, all / most_values);
  std::vector<std::vector<double>> values(static_cast<size_t>(columns));
  for (size_t b = 0; b < made.batches.size(); ++b) {
    const Array& array = made.batches[b][k];
    const int64_t width = array.count() / array.shape()[0].size();
    for (int64_t i = 0; i < made.valid[b] * width; i += step)
      if (const double x = array.at(i); std::isfinite(x))
        values[static_cast<size_t>(i % columns)].push_back(x);
  }
  std::vector<Spread> spreads;
  for (std::vector<double>& column : values) {
    const Moments moments = moments_of(column);
    spreads.push_back({moments, without_far_out(std::move(column))});
  }
  return spreads;
}

/// How far apart training and test set are, in deviations or as a factor of them; and where.
struct Apart {
  double shift = 0, factor = 1;
  std::string where = {};

  double size() const { return std::max(shift, factor - 1); }
};
Apart apart(const Moments& one, const Moments& other) {
  const double size = std::max(one.deviation, 1e-9 * std::abs(one.mean));
  if (size == 0 || one.deviation == 0) return {};
  const double factor = other.deviation / size;
  return {std::abs(one.mean - other.mean) / size, std::max(factor, 1 / std::max(factor, 1e-6))};
}
Apart apart(const Made& training, const Made& tests) {
  Apart worst;
  for (size_t k = 0; k < training.names.size(); ++k) {
    if (training.batches.empty() || tests.batches.empty()) continue;
    const DType dtype = training.batches[0][k].dtype();
    if (!dtype.is_float() && dtype != u8) continue;  // ids
    const std::vector<Spread> one = spreads_of(training, k), other = spreads_of(tests, k);
    for (size_t c = 0; c < std::min(one.size(), other.size()); ++c) {
      // Another unit shows either way. One row of a million where others have ten, or a column that is nearly
      // always 0, shows in one way only.
      Apart here = apart(one[c].all, other[c].all);
      const Apart usual = apart(one[c].usual, other[c].usual);
      if (usual.size() < here.size()) here = usual;
      if (here.size() <= worst.size()) continue;
      worst = here;
      worst.where = one.size() > 1 ? fmt::format("{}, column {}", training.names[k], c) : training.names[k];
    }
  }
  return worst;
}

/// Of pictures [rows, channels, height, width] the spread of each channel; empty of others.
std::vector<Moments> channels_of(const Made& made, size_t k) {
  constexpr int64_t most_values = 1 << 18;
  const Shape& shape = made.batches[0][k].shape();
  constexpr int64_t colours = 3;
  if (shape.rank() != 4 || shape[1].size() != colours) return {};
  const int64_t inner = shape[2].size() * shape[3].size();
  const int64_t step = std::max<int64_t>(1, made.rows * inner / most_values);
  std::vector<std::vector<double>> values(colours);
  for (size_t b = 0; b < made.batches.size(); ++b)
    for (int64_t plane = 0; plane < made.valid[b] * colours; ++plane)
      for (int64_t i = 0; i < inner; i += step)
        values[static_cast<size_t>(plane % colours)].push_back(made.batches[b][k].at(plane * inner + i));
  std::vector<Moments> channels;
  for (const auto& own : values) channels.push_back(moments_of(own));
  return channels;
}

/// Two columns, or channels, that are far apart in the sets as they are, and alike when the test set's change
/// places.
Finding judge_exchanged(const Made& training, const Made& tests) {
  constexpr double least = 0.5, least_of_channels = 0.15, part = 0.25;
  constexpr int64_t enough = 100;
  if (training.rows < enough || tests.rows < enough) return passed("");
  for (size_t k = 0; k < training.names.size(); ++k) {
    const DType dtype = training.batches[0][k].dtype();
    if (!dtype.is_float() && dtype != u8) continue;
    std::vector<Moments> one = channels_of(training, k), other = channels_of(tests, k);
    const bool channels = !one.empty();
    if (!channels) {
      for (const Spread& spread : spreads_of(training, k)) one.push_back(spread.usual);
      for (const Spread& spread : spreads_of(tests, k)) other.push_back(spread.usual);
    }
    if (one.size() != other.size()) continue;
    for (size_t i = 0; i < one.size(); ++i)
      for (size_t j = i + 1; j < one.size(); ++j) {
        const double as_is = std::min(apart(one[i], other[i]).size(), apart(one[j], other[j]).size()),
                     exchanged = std::max(apart(one[i], other[j]).size(), apart(one[j], other[i]).size());
        if (as_is < (channels ? least_of_channels : least) || exchanged > part * as_is) continue;
        return warned(fmt::format("{} {} and {} of {} look as if they had changed places in the test set",
                                  channels ? "channels" : "columns", i, j, training.names[k]),
                      channels
                          ? "was one set read as RGB and the other as BGR?"
                          : "were the columns of one file written in another order, or under each other's "
                            "names?");
      }
  }
  return passed("");
}

Finding judge_apart(const Apart& found) {
  const std::string saw =
      found.where.empty()
          ? std::string("training and test set have the same spread")
          : fmt::format(
                "training and test set are farthest apart in {}: their means by {} deviations, their "
                "deviations by a factor of {}",
                found.where, short_number(found.shift), short_number(found.factor));
  constexpr const char* advice =
      "were both made in the same way (units, scale 0…1 or 0…255, order of columns or channels, words for "
      "missing)? If the world has changed, a result on the old part says little";
  return with_numbers(found.shift > 5 || found.factor > 10    ? failed(saw, advice)
                      : found.shift > 1.5 || found.factor > 4 ? warned(saw, advice)
                                                              : passed(saw),
                      {{"shift", found.shift}, {"factor", found.factor}});
}

/// Numbers that a network does not want, of one channel of [rows, channels, …].
bool is_odd_scale(const Moments& m) {
  constexpr double large = 10, little = 0.05, far = 8;
  return m.deviation > large || (m.deviation > 0 && m.deviation < little) ||
         std::abs(m.mean) > far * std::max(1.0, m.deviation);
}

/// What the model is given of pictures should be of about the size of 1: a mean and deviation of another
/// scale (0…1, 0…255) are a mistake that nothing else shows. Other inputs are scaled as they are learnt.
Finding judge_scale(const task::Task& task, const Made& made) {
  Finding finding = passed("");
  for (const auto& input : task.inputs) {
    if (!input->settings().find("mean") || made.batches.empty()) continue;
    std::vector<Tensor> fields;
    for (const data::Field& field : input->fields()) {
      const auto at = std::find(made.names.begin(), made.names.end(), input->prefix() + field.name);
      if (at == made.names.end()) return finding;
      fields.emplace_back(
          first_along(made.batches[0][static_cast<size_t>(at - made.names.begin())], 0, made.valid[0]));
    }
    const Array array = input->graph(fields, false).at(0).to_array();
    if (array.shape().rank() != 4) continue;
    const std::vector<double> all = array.to_doubles();
    const int64_t channels = array.shape()[1].size(),
                  inner = array.shape()[2].size() * array.shape()[3].size();
    for (int64_t channel = 0; channel < channels; ++channel) {
      std::vector<double> own;
      for (size_t i = 0; i < all.size(); ++i)
        if (static_cast<int64_t>(i) / inner % channels == channel) own.push_back(all[i]);
      const Moments m = moments_of(own);
      if (!is_odd_scale(m)) continue;
      finding =
          warned(fmt::format("the model is given numbers of mean {} and deviation {}", short_number(m.mean),
                             short_number(m.deviation)),
                 fmt::format("networks want numbers of about the size of 1: are {0}.mean and {0}.std of the "
                             "same scale as the samples (0…1, not 0…255)? Left out, they are measured",
                             task::input_key(input->section())));
      break;
    }
  }
  return finding;
}

Finding run_preprocessing(Context& context) {
  const task::Task* task = context.task();
  if (!context.samples()) return not_for("no data: a model of C++, or a stream");
  if (task::cuts_corpus(*task)) return not_for("rows are extracts of a text, cut alike everywhere");
  const task::Task again = task::load_task(task->recipe, task->encoding());
  const Made training = made_of(*task, context.samples());
  if (!same_arrays(training, made_of(again, context.samples())))
    return failed(
        "opened again by what the checkpoint will hold, the task makes other arrays of the same samples",
        "this is a defect of the input's encoding() and load()");
  Finding finding = passed(
      fmt::format("{} samples: training and what a checkpoint opens make the same arrays", training.rows));
  if (const Finding scale = judge_scale(*task, training); scale.verdict != Verdict::pass)
    finding = worse(finding, scale);
  if (context.test_samples()) {
    const Made tests = made_of(*task, context.test_samples());
    finding = worse(finding, judge_apart(apart(training, tests)));
    // That is the cause, where it is so.
    if (Finding exchanged = judge_exchanged(training, tests); exchanged.verdict != Verdict::pass) {
      if (finding.verdict == Verdict::fail) exchanged.verdict = Verdict::fail;
      exchanged.numbers = finding.numbers;
      finding = std::move(exchanged);
    }
  }
  return finding;
}

}  // namespace

MILLRACE_CHECK_KIND(preprocessing){
    .name = "preprocessing",
    .doc = "the same samples make the same arrays in training, test and export; both sets look alike",
    .matters =
        "a model that is given numbers in another unit or order than it was trained on is wrong without a "
        "word",
    .place = 170,
    .run = run_preprocessing,
};

}  // namespace millrace::check
