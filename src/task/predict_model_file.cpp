#include "task/predict_model_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"
#include "data/codecs/arrays/npy.h"
#include "data/tools/journal.h"
#include "task/bad_predictions.h"
#include "task/behind.h"
#include "task/prediction_records.h"
#include "task/prediction_writer.h"

namespace millrace::task {
namespace {

namespace fs = std::filesystem;

bool is_json_lines(const std::string& path) { return path.ends_with(".jsonl") || path.ends_with(".ndjson"); }

/// A file's samples: what a journal's record holds.
using FileRows = std::vector<RowRecord>;

/// JSON as it is.
class LineWriter final : public PredictionWriter {
 public:
  explicit LineWriter(const std::string& path) : file_(path) {}
  void add(const std::string&, int64_t, std::span<const data::Value> values) override {
    if (!values.empty()) file_.write(std::get<std::string>(values[0]) + "\n");
  }
  void finish() override { file_.commit(); }

 private:
  AtomicFile file_;
};

/// Arrays behind each other; a value is one as .npy.
class StackWriter final : public PredictionWriter {
 public:
  StackWriter(std::string path, bool half) : path_(std::move(path)), half_(half) {}
  void add(const std::string& name, int64_t, std::span<const data::Value> values) override {
    if (values.empty()) return;
    const auto& bytes = std::get<std::string>(values[0]);
    Array array = data::parse_npy({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    if (half_ && array.dtype().is_float()) array = array.converted(f16);
    const Shape& shape = array.shape();
    if (!arrays_.empty()) {
      const Shape& first = arrays_[0].shape();
      if (!std::equal(shape.begin() + 1, shape.end(), first.begin() + 1, first.end()))
        fail<InputError>("{}: results of {} and, of {}, {} do not fit into one array; .jsonl holds them",
                         path_, arrays_[0].type().str(), name, array.type().str());
    }
    rows_ += shape[0].size();
    arrays_.push_back(std::move(array));
  }
  void finish() override {
    if (arrays_.empty()) fail<InputError>("{}: nothing could be predicted, so there is no array", path_);
    Shape shape = arrays_[0].shape();
    shape[0] = rows_;
    Array all(arrays_[0].dtype(), shape);
    auto* to = static_cast<char*>(all.data());
    for (const Array& each : arrays_) {
      std::memcpy(to, each.data(), static_cast<size_t>(each.bytes()));
      to += each.bytes();
    }
    write_file(path_, data::encode_npy(all));
  }

 private:
  std::string path_;
  bool half_;
  std::vector<Array> arrays_;
  int64_t rows_ = 0;
};

class ModelFilePrediction {
 public:
  ModelFilePrediction(const Session& session, const ModelSamples& samples,
                      const std::vector<std::string>& arguments, const PredictModelFileOptions& options)
      : session_(session),
        samples_(samples),
        options_(options),
        rows_(session.outputs(), options.rows),
        files_(ModelSamples::files_of(arguments)) {
    if (options.half && !is_array_file(options.out))
      fail<InputError>("--f16 is for .npy; {} holds numbers as they are", options.out);
    const std::vector<SessionValue>& outputs = session.outputs();
    if (is_array_file(options.out)) {
      if (outputs.size() != 1)
        fail<InputError>("{}: an .npy file holds one array, but the model has {} outputs; .jsonl holds all",
                         options.out, outputs.size());
      if (outputs[0].type.shape.rank() == 0)
        fail<InputError>("{}: '{}' is one number, which does not stack; .csv and .jsonl hold it", options.out,
                         outputs[0].name);
    }
    if (files_.empty()) fail<InputError>("there are no samples to predict");
    require_free();
  }

  PredictFileResult run() {
    const auto writer = make_writer();
    bool replaced = false;
    int64_t next = 0;
    data::Journal journal(
        options_.out + ".partial", identity(),
        [&](std::string_view record) {
          RecordReader from(record);
          put(*writer, read_rows(from));
          ++next;
        },
        replaced);
    result_.resumed = result_.samples;
    if (replaced && options_.watch.note)
      options_.watch.note(
          fmt::format("{}.partial is of other samples, options or another model: begun anew", options_.out));
    Behind<FileRows> behind([&](const FileRows& file) {
      RecordWriter to;
      write_rows(to, file);
      journal.add(to.take());
      put(*writer, file);
    });
    FileRows file;
    const auto bad = [&](const std::string& name, const std::string& why) {
      file.push_back({0, why, {}, name});
    };
    samples_.each(files_, next,
                  {[&](const ModelSample& sample) {
                     try {
                       add_rows(file, sample.name, session_.run(sample.inputs));
                     } catch (const Error& e) {
                       bad(sample.name, e.what());
                     }
                   },
                   [&](const std::string& name, const std::string& why) { bad(name, why); },
                   [&] {
                     behind.add(std::exchange(file, {}));
                     ++next;
                     if (options_.watch.progress) options_.watch.progress(next, std::ssize(files_));
                     return !(options_.watch.stop && options_.watch.stop());
                   }});
    behind.wait();
    result_.done = result_.samples;
    result_.bad = bad_.count();
    result_.first_bad = bad_.first();
    if (next == std::ssize(files_)) finish(*writer, journal);
    return result_;
  }

 private:
  void require_free() const {
    std::error_code ignored;
    for (const std::string& file : files_)
      if (fs::equivalent(file, options_.out, ignored))
        fail<InputError>("{}: is one of the samples, and would be lost", options_.out);
    if (!options_.force && fs::is_regular_file(options_.out, ignored))
      fail<InputError>("{}: is there already; --force replaces it", options_.out);
  }

  std::unique_ptr<PredictionWriter> make_writer() const {
    if (is_json_lines(options_.out)) return std::make_unique<LineWriter>(options_.out);
    if (is_array_file(options_.out)) return std::make_unique<StackWriter>(options_.out, options_.half);
    return prediction_writer(options_.out, rows_.columns(), 0, 0, false);
  }

  /// What the records in the journal depend on.
  std::string identity() const {
    nlohmann::json json = {{"model", options_.identity},
                           {"top", options_.rows.top},
                           {"threshold", options_.rows.threshold},
                           {"all", options_.rows.all},
                           {"labels", nlohmann::json::array()},
                           {"files", nlohmann::json::array()},
                           {"records", record_version}};
    for (const std::string& label : options_.rows.labels) json["labels"].push_back(stored_text(label));
    for (const std::string& file : files_) {
      std::error_code error;
      const auto size = fs::file_size(file, error);
      json["files"].push_back({stored_text(file), error ? 0 : size});
    }
    return json.dump();
  }

  void add_rows(FileRows& file, const std::string& sample, const std::vector<Array>& results) const {
    if (is_array_file(options_.out)) {
      const std::vector<uint8_t> bytes = data::encode_npy(results[0]);
      file.push_back({0, "", {std::string(bytes.begin(), bytes.end())}, sample});
      return;
    }
    const int64_t rows = rows_.rows_of(results);
    for (int64_t row = 0; row < std::max<int64_t>(rows, 1); ++row) {
      RowRecord record{0, "", {}, ModelRows::name_of(sample, row, rows)};
      if (is_json_lines(options_.out))
        record.values = {rows_.json(record.name, results, row, rows)};
      else
        record.values = rows_.values(results, row, rows);
      file.push_back(std::move(record));
    }
  }

  void put(PredictionWriter& writer, const FileRows& file) {
    for (const RowRecord& row : file) {
      const int64_t sample = result_.samples++;
      writer.add(row.name, sample, row.values);
      if (!row.why.empty()) bad_.add(sample, row.name, row.name, row.why);
    }
  }

  void finish(PredictionWriter& writer, data::Journal& journal) {
    writer.finish();
    result_.whole = true;
    result_.bad_file = bad_.write(options_.out, options_.force);
    journal.remove();
  }

  const Session& session_;
  const ModelSamples& samples_;
  const PredictModelFileOptions& options_;
  ModelRows rows_;
  std::vector<std::string> files_;
  PredictFileResult result_;
  BadPredictions bad_;
};

}  // namespace

PredictFileResult predict_model_file(const Session& session, const ModelSamples& samples,
                                     const std::vector<std::string>& arguments,
                                     const PredictModelFileOptions& options) {
  return ModelFilePrediction(session, samples, arguments, options).run();
}

}  // namespace millrace::task
