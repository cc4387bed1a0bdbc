#include "baseline/context.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/format.h"
#include "data/feed/aligned_bytes.h"
#include "task/open.h"

namespace millrace::baseline {

Result not_for(std::string why) { return {.note = std::move(why)}; }

bool has_classes(const task::Output& output) {
  return output.link() == eval::Link::softmax && !output.at_places();
}

PartRows read_rows(const data::Part& part, const data::Dataset& from, std::span<const int64_t> samples) {
  const auto count = static_cast<int64_t>(samples.size());
  PartRows rows;
  std::vector<size_t> bytes;
  for (const data::Field& field : part.fields()) {
    Type type = field.type;
    type.shape = type.shape.specialise({{"batch", count}});
    if (!type.shape.is_static()) fail<InputError>("rows of '{}' differ in length", field.name);
    bytes.push_back(data::row_bytes(field.type, 0));
    rows.arrays.emplace_back(type);
  }
  rows.good.assign(samples.size(), 1);
  const auto scratch = part.scratch();
  const data::AlignedBytes stored(part.stored_bytes() + 1);
  std::vector<std::byte*> places(rows.arrays.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    for (size_t k = 0; k < places.size(); ++k)
      places[k] = static_cast<std::byte*>(rows.arrays[k].data()) + i * bytes[k];
    const data::Row row{{0, 0, static_cast<int64_t>(i), samples[i]}, 0, {}};
    const data::SampleKey* const key = nullptr;
    const bool good =
        part.stored_bytes() == 0 || part.read(from, samples[i], key, scratch.get(), stored.data()).empty();
    rows.good[i] = good;
    if (good)
      part.put(stored.data(), row, scratch.get(), places);
    else
      part.pad(row, places);
  }
  for (size_t k = 0; k < places.size(); ++k) places[k] = static_cast<std::byte*>(rows.arrays[k].data());
  part.finish(count, 0, places);
  return rows;
}

Context::Context(const task::Recipe& recipe, const Options& options) : recipe_(recipe), options_(options) {
  if (recipe_.data.stream)
    fail<InputError>(
        "baselines are measured on samples that can be read again, and data.stream gives each once: name "
        "files as data.train");
  if (!task::has_tests(recipe_))
    fail<InputError>(
        "the recipe has nothing to test on, which is what baselines are compared by: set data.test or "
        "data.test_share");
  constexpr int64_t usual_batch = 256;
  if (recipe_.train.batch == 0) recipe_.train.batch = usual_batch;
  std::vector<std::string> notes;
  const task::ReadProgress reading = [&](const std::string& what, int64_t done, int64_t of) {
    progress("reading " + what, done, of);
  };
  opened_ = task::open_training(recipe_, "", 0, reading, notes);
  tests_ = task::open_tests(opened_.task, "", 0, opened_.training.feed->memory(), reading, notes);
}

PartRows Context::all_rows(const data::Part& part, bool tests) {
  const auto& from = samples(tests);
  std::vector<int64_t> all(static_cast<size_t>(from->count()));
  std::iota(all.begin(), all.end(), int64_t{0});
  return read_rows(part, *from, all);
}

const PartRows& Context::targets(size_t output, bool tests) {
  const auto found = targets_.find({output, tests});
  if (found != targets_.end()) return found->second;
  const auto part = task().outputs[output]->part({task().recipe, samples(tests)});
  return targets_.emplace(std::pair(output, tests), all_rows(*part, tests)).first->second;
}

std::pair<double, double> Context::unit_of(size_t output, int64_t column) const {
  const task::Output& of = *task().outputs[output];
  const auto at = [&](double logit) {
    return of.predictions(Tensor(Array::full(f32, {1, of.width()}, logit))).to_array().at(column);
  };
  const double first = at(0);
  return {first, at(1) - first};
}

std::vector<eval::Measurement> Context::measurements() const {
  std::vector<eval::Measurement> made;
  for (const auto& output : task().outputs) {
    std::vector<std::string> names;
    for (const std::string& metric : task().metrics()) {
      const std::string prefix = output->prefix();
      if (!metric.starts_with(prefix)) continue;
      if (const std::string own = metric.substr(prefix.size()); own.find('.') == std::string::npos)
        names.push_back(own);
    }
    made.emplace_back(names, output->section().kind);
  }
  return made;
}

std::vector<eval::Measured> Context::finish(std::vector<eval::Measurement>& of_outputs) const {
  std::vector<eval::Measured> all;
  for (size_t k = 0; k < of_outputs.size(); ++k)
    for (eval::Measured& measured : of_outputs[k].finalize()) {
      measured.name = task().outputs[k]->prefix() + measured.name;
      all.push_back(std::move(measured));
    }
  return all;
}

std::vector<eval::Measured> Context::judged(const std::vector<std::vector<float>>& logits,
                                            const std::vector<char>& known) {
  std::vector<eval::Measurement> made = measurements();
  for (size_t k = 0; k < made.size(); ++k) {
    const auto exact = task().outputs[k]->judged_part({task().recipe, samples(true)});
    const PartRows rows = exact ? all_rows(*exact, true) : targets(k, true);
    std::vector<char> counted = rows.good;
    for (size_t i = 0; i < known.size(); ++i) counted[i] = counted[i] && known[i];
    const Array& target = rows.arrays[0];
    task().outputs[k]->judge(
        logits[k], {static_cast<const std::byte*>(target.data()), static_cast<size_t>(target.bytes())}, 0,
        counted, 0, made[k]);
  }
  return finish(made);
}

std::vector<eval::Measured> Context::judged_constant(const std::vector<std::vector<float>>& logits) {
  if (std::none_of(task().outputs.begin(), task().outputs.end(),
                   [](const auto& each) { return each->from(); })) {
    std::vector<std::vector<float>> of_rows(logits.size());
    for (size_t k = 0; k < logits.size(); ++k)
      for (int64_t i = 0; i < samples(true)->count(); ++i)
        of_rows[k].insert(of_rows[k].end(), logits[k].begin(), logits[k].end());
    return judged(of_rows);
  }
  // Targets that an input makes: the only output, at each place of a row.
  std::vector<eval::Measurement> made = measurements();
  const task::Output& output = *task().outputs[0];
  data::Feed& feed = *tests_.feed;
  const size_t field = feed.field(output.target_field());
  const auto input = std::find_if(task().inputs.begin(), task().inputs.end(),
                                  [&](const auto& each) { return each.get() == output.from(); });
  const auto number = static_cast<size_t>(input - task().inputs.begin());
  const double bytes = tests_.inputs[number] ? (*input)->bytes_per_target(*tests_.inputs[number]) : 0;
  const int64_t batches = feed.batches_per_epoch();
  std::vector<float> row_logits;
  for (int64_t i = 0; i < batches; ++i) {
    progress("constant", i, batches);
    const data::FeedBatch& batch = feed.next();
    const std::span<const std::byte> all = batch.arrays[field];
    const size_t row_bytes = all.size() / static_cast<size_t>(feed.batch_size());
    const int64_t places = static_cast<int64_t>(row_bytes) / feed.fields()[field].type.dtype.bytes();
    row_logits.clear();
    for (int64_t p = 0; p < (output.at_places() ? places : 1); ++p)
      row_logits.insert(row_logits.end(), logits[0].begin(), logits[0].end());
    for (int64_t row = 0; row < batch.valid; ++row)
      output.judge(row_logits, all.subspan(static_cast<size_t>(row) * row_bytes, row_bytes),
                   output.at_places() ? places : 0, {1}, bytes, made[0]);
  }
  return finish(made);
}

std::vector<double> Context::shares(size_t output) {
  const task::Output& of = *task().outputs[output];
  std::vector<double> counts(static_cast<size_t>(of.width()));
  const auto count = [&](std::span<const int64_t> labels) {
    for (const int64_t label : labels)
      if (label >= 0 && label < of.width()) ++counts[static_cast<size_t>(label)];
  };
  if (of.from()) {
    constexpr int64_t enough = 500;
    data::Feed& feed = *opened_.training.feed;
    const size_t field = feed.field(of.target_field());
    const int64_t batches = std::min(enough, feed.batches_per_epoch());
    for (int64_t i = 0; i < batches; ++i) {
      progress("counting", i, batches);
      const Array array = feed.array(feed.next(), field);
      count(array.as<int64_t>());
    }
  } else {
    const Array& array = targets(output, false).arrays[0];
    count(array.as<int64_t>());
  }
  const double all = std::max(1.0, std::accumulate(counts.begin(), counts.end(), 0.0));
  for (double& each : counts) each /= all;
  return counts;
}

std::vector<float> Context::logits_of_answers(size_t output, const std::vector<int64_t>& train_told,
                                              const std::vector<int64_t>& test_told) {
  const auto width = static_cast<size_t>(task().outputs[output]->width());
  const std::vector<double> prior = shares(output);
  const PartRows& rows = targets(output, false);
  const Array& array = rows.arrays[0];
  const std::span<const int64_t> labels = array.as<int64_t>();
  // Of each answer how often each class is right; where nobody knows, as often as the classes occur.
  std::vector<std::vector<double>> right(width, prior);
  std::vector<double> count(width, 1);
  for (size_t i = 0; i < train_told.size(); ++i)
    if (train_told[i] >= 0 && rows.good[i] && labels[i] >= 0) {
      ++right[static_cast<size_t>(train_told[i])][static_cast<size_t>(labels[i])];
      ++count[static_cast<size_t>(train_told[i])];
    }
  constexpr double least = 1e-6, ahead = 1e-3;
  const auto logits_for = [&](int64_t told) {
    std::vector<float> logits(width);
    for (size_t c = 0; c < width; ++c)
      logits[c] = static_cast<float>(std::log(std::max(
          least,
          told < 0 ? prior[c] : right[static_cast<size_t>(told)][c] / count[static_cast<size_t>(told)])));
    if (told >= 0)  // what was answered stays the answer
      logits[static_cast<size_t>(told)] =
          std::max(logits[static_cast<size_t>(told)],
                   *std::max_element(logits.begin(), logits.end()) + static_cast<float>(ahead));
    return logits;
  };
  std::map<int64_t, std::vector<float>> known;
  std::vector<float> all;
  for (const int64_t told : test_told) {
    auto at = known.find(told);
    if (at == known.end()) at = known.emplace(told, logits_for(told)).first;
    all.insert(all.end(), at->second.begin(), at->second.end());
  }
  return all;
}

}  // namespace millrace::baseline
