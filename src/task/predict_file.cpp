#include "task/predict_file.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <millrace/feed.h>
#include <millrace/session.h>

#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"
#include "data/formats/overwrite.h"
#include "data/table/place.h"
#include "data/tools/journal.h"
#include "task/bad_predictions.h"
#include "task/behind.h"
#include "task/in_order.h"
#include "task/pass_feed.h"
#include "task/predict.h"
#include "task/prediction_records.h"
#include "task/prediction_writer.h"
#include "task/session_model.h"

namespace millrace::task {
namespace {

/// A batch: what a journal's record holds.
struct BatchRecord {
  size_t set = 0;
  data::Cursor next;  // of the feed, behind it
  std::vector<RowRecord> rows;
};

std::string record_of(const BatchRecord& batch) {
  RecordWriter to;
  to.number(static_cast<uint64_t>(batch.set));
  to.number(batch.next.seed);
  to.number(batch.next.epoch);
  to.number(batch.next.position);
  to.number(static_cast<uint64_t>(batch.next.state.size()));
  for (const int64_t each : batch.next.state) to.number(each);
  write_rows(to, batch.rows);
  return to.take();
}

BatchRecord batch_of(std::string_view record) {
  RecordReader from(record);
  BatchRecord batch;
  batch.set = from.number<uint64_t>();
  batch.next.seed = from.number<uint64_t>();
  batch.next.epoch = from.number<int64_t>();
  batch.next.position = from.number<int64_t>();
  for (uint64_t left = from.number<uint64_t>(); left-- > 0;)
    batch.next.state.push_back(from.number<int64_t>());
  batch.rows = read_rows(from);
  return batch;
}

/// Rows in the order of the samples, whatever the order that they come in: into the file, and bad ones into
/// their list.
class Ordered {
 public:
  Ordered(const std::vector<OpenedArguments>& sets, PredictionWriter& writer, PredictFileResult& result)
      : sets_(sets),
        writer_(writer),
        result_(result),
        order_(result.samples, [this](int64_t number, const SetRow& row) { put(number, row); }) {
    int64_t before = 0;
    for (const OpenedArguments& set : sets) {
      before_.push_back(before);
      before += set.samples->count();
    }
  }

  /// `rows` may name samples again, those that stand in for bad ones.
  void add(BatchRecord batch) {
    const OpenedArguments& set = sets_.at(batch.set);
    for (RowRecord& row : batch.rows) {
      const int64_t sample = row.sample;
      if (sample < set.samples->count() && order_.add(before_[batch.set] + sample, {&set, std::move(row)}))
        ++result_.done;
    }
  }
  const BadPredictions& bad() const { return bad_; }

 private:
  using SetRow = std::pair<const OpenedArguments*, RowRecord>;

  void put(int64_t number, const SetRow& own) {
    const auto& [set, row] = own;
    const std::string name = set->sample ? set->argument : set->samples->name(row.sample);
    writer_.add(name, number, row.why.empty() ? row.values : std::vector<data::Value>());
    if (row.why.empty()) return;
    bad_.add(number, name, set->sample ? name : data::place_of(*set->samples, row.sample), row.why);
  }

  const std::vector<OpenedArguments>& sets_;
  PredictionWriter& writer_;
  PredictFileResult& result_;
  InOrder<SetRow> order_;
  std::vector<int64_t> before_;  // each set: samples of those before it
  BadPredictions bad_;
};

class FilePrediction {
 public:
  FilePrediction(Task& task, const std::vector<std::string>& arguments, const PredictFileOptions& options)
      : task_(task), options_(options), sets_(open_arguments(task, arguments)) {
    for (const auto& output : task.outputs) told_.push_back(told_of(*output, options.tell));
    if (options.tell.rows && told_.size() > 1)
      fail<InputError>("{}: an array is of one output, and the model has {}: write .csv, .jsonl or .parquet",
                       options.out, told_.size());
    for (const OpenedArguments& set : sets_) {
      result_.samples += set.samples->count();
      data::require_free(*set.samples, std::vector<std::filesystem::path>{options.out}, options.force);
    }
    if (result_.samples == 0) fail<InputError>("there are no samples to predict");
    grouped_ = !options.tell.rows && std::any_of(sets_.begin(), sets_.end(), [](const OpenedArguments& set) {
      return set.samples->count() > 0 && set.samples->rows(0).table;
    });
  }

  PredictFileResult run() {
    for (const OpenedArguments& set : sets_)
      for (const auto& input : task_.inputs)
        for (const std::string& line : input->unknown(*set.samples))
          if (options_.watch.note) options_.watch.note(line);
    std::vector<data::Column> columns;
    if (grouped_) columns.push_back({"rows", data::ColumnKind::text});
    for (const auto& told : told_)
      for (const data::Column& column : told->columns()) columns.push_back(column);
    const auto writer = prediction_writer(options_.out, columns, result_.samples,
                                          options_.tell.rows ? told_[0]->width() : 0, options_.half);
    Ordered ordered(sets_, *writer, result_);
    bool replaced = false;
    data::Journal journal(
        options_.out + ".partial", identity(),
        [&](std::string_view record) {
          BatchRecord batch = batch_of(record);
          set_ = batch.set;
          next_ = batch.next;  // maybe the end of the set
          ordered.add(std::move(batch));
        },
        replaced);
    result_.resumed = result_.done;
    if (replaced && options_.watch.note)
      options_.watch.note(
          fmt::format("{}.partial is of other samples, options or weights: begun anew", options_.out));
    {
      Behind<BatchRecord> behind([&](BatchRecord batch) {
        journal.add(record_of(batch));
        ordered.add(std::move(batch));
        done_.store(result_.done);
      });
      done_.store(result_.done);
      for (; set_ < sets_.size() && !stopped_; ++set_, next_.reset()) predict_set(behind);
      behind.wait();
    }
    result_.bad = ordered.bad().count();
    result_.first_bad = ordered.bad().first();
    if (stopped_) return result_;
    finish(*writer, ordered, journal);
    return result_;
  }

 private:
  /// What the records in the journal depend on.
  std::string identity() const {
    nlohmann::json json = {
        {"model", options_.identity}, {"top", options_.tell.top},   {"threshold", options_.tell.threshold},
        {"all", options_.tell.all},   {"rows", options_.tell.rows}, {"batch", task_.recipe.eval.batch},
        {"records", record_version}};
    if (grouped_) json["grouped"] = true;
    for (const OpenedArguments& set : sets_)
      json["data"].push_back(
          {stored_text(set.argument), stored_text(set.samples->path()), set.samples->count()});
    return json.dump();
  }

  void predict_set(Behind<BatchRecord>& behind) {
    const OpenedArguments& set = sets_[set_];
    TaskFeed opened = open_pass(task_, set.samples);
    data::Feed& feed = *opened.feed;
    const int64_t rows = feed.batches_per_epoch() * feed.batch_size();
    if (next_) feed.seek(*next_);
    std::vector<size_t> fields;
    for (const data::Field& field : task_.fields()) fields.push_back(feed.field(field.name));
    int64_t known_bad = 0;
    while (feed.cursor().epoch == 0 && feed.cursor().position < rows) {
      if (options_.watch.stop && options_.watch.stop()) {
        stopped_ = true;
        return;
      }
      const data::FeedBatch& batch = feed.next();
      std::vector<Array> arrays;
      for (const size_t field : fields) arrays.push_back(feed.array(batch, field));
      BatchRecord record = told(set, batch, run_model(arrays));
      record.next = feed.cursor();
      if (feed.tried().known_bad > known_bad || feed.cursor().position >= rows) {
        for (const data::BadSample& bad : feed.bad_samples()) record.rows.push_back({bad.index, bad.why, {}});
        known_bad = feed.tried().known_bad;
      }
      behind.add(std::move(record));
      if (options_.watch.progress) options_.watch.progress(done_.load(), result_.samples);
    }
  }

  std::vector<Array> run_model(std::span<const Array> arrays) {
    if (!session_) {
      InferenceParts parts;
      parts.told = [this](const Output& output, const Tensor& logits) {
        std::vector<optim::NamedTensor> named;
        for (size_t k = 0; k < told_.size(); ++k)
          if (task_.outputs[k].get() == &output)
            for (Tensor& tensor : told_[k]->graph(logits))
              named.emplace_back(fmt::format("{} {}", k, named.size()), std::move(tensor));
        return named;
      };
      session_.emplace(session_model(task_, parts));
    }
    session_->prepare(session_->sizes(arrays));
    return session_->run(arrays);
  }

  BatchRecord told(const OpenedArguments& set, const data::FeedBatch& batch, std::vector<Array> results) {
    BatchRecord record;
    record.set = set_;
    // Which results are whose.
    std::vector<std::span<const Array>> of;
    for (size_t k = 0, at = 0; k < told_.size(); ++k) {
      const std::string begin = fmt::format("{} ", k);
      size_t count = 0;
      while (at + count < results.size() && session_->outputs()[at + count].name.starts_with(begin)) ++count;
      of.emplace_back(std::span<const Array>(results).subspan(at, count));
      at += count;
    }
    for (int64_t row = 0; row < batch.valid; ++row) {
      RowRecord& own = record.rows.emplace_back();
      own.sample = batch.samples[static_cast<size_t>(row)];
      const data::SampleRows group = set.samples->rows(own.sample);
      if (grouped_)
        own.values.emplace_back(nlohmann::json(std::vector(group.rows.begin(), group.rows.end())).dump());
      for (size_t k = 0; k < told_.size(); ++k)
        told_[k]->values(of[k], row, group.table ? std::ssize(group.rows) : 0, own.values);
    }
    return record;
  }

  void finish(PredictionWriter& writer, const Ordered& ordered, data::Journal& journal) {
    writer.finish();
    result_.whole = true;
    result_.bad_file = ordered.bad().write(options_.out, options_.force);
    journal.remove();
  }

  Task& task_;
  const PredictFileOptions& options_;
  std::vector<OpenedArguments> sets_;
  std::vector<std::unique_ptr<Told>> told_;
  bool grouped_ = false;  // samples are made of several rows, which are listed
  std::optional<Session> session_;
  PredictFileResult result_;
  std::atomic<int64_t> done_ = 0;
  size_t set_ = 0;                    // the next batch's
  std::optional<data::Cursor> next_;  // where it begins; nullopt: at the beginning
  bool stopped_ = false;
};

}  // namespace

PredictFileResult predict_file(Task& task, const std::vector<std::string>& arguments,
                               const PredictFileOptions& options) {
  return FilePrediction(task, arguments, options).run();
}

}  // namespace millrace::task
