#include "train/unlabelled.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/format.h"
#include "data/feed/array_feed.h"
#include "data/feed/loader_work.h"
#include "data/formats/file_list.h"
#include "data/io/expand_paths.h"
#include "data/table/select.h"
#include "train/arrays.h"
#include "train/texts.h"

namespace millrace::train {
namespace {

/// Hands on logits in the order of the samples, whatever the order they come in.
class InOrder {
 public:
  InOrder(const OnSample& on, int64_t count) : on_(on), failed_(static_cast<size_t>(count), false) {}

  void failed(int64_t sample, const std::string& why) {
    if (failed_[static_cast<size_t>(sample)]) return;
    failed_[static_cast<size_t>(sample)] = true;
    on_.failed(sample, why);
  }
  void add(int64_t sample, std::span<const float> logits) {
    waiting_.emplace(sample, std::vector<float>(logits.begin(), logits.end()));
    while (next_ < static_cast<int64_t>(failed_.size())) {
      if (failed_[static_cast<size_t>(next_)]) {
        ++next_;
        continue;
      }
      const auto first = waiting_.begin();
      if (first == waiting_.end() || first->first != next_) return;
      on_.predicted(next_++, first->second);
      waiting_.erase(first);
    }
  }

 private:
  const OnSample& on_;
  std::vector<bool> failed_;
  std::map<int64_t, std::vector<float>> waiting_;
  int64_t next_ = 0;
};

/// `first`: the number of the feed's first sample.
void run(Predictor& predictor, data::Feed& feed, int64_t first, InOrder& out) {
  const int64_t batches = feed.batches_per_epoch();
  for (int64_t b = 0; b < batches; ++b) {
    const data::FeedBatch& batch = feed.next();
    const Array logits = predictor.logits(feed, batch);
    const auto classes = static_cast<size_t>(logits.shape().back().size());
    const std::span<const float> all = logits.as<float>();
    for (size_t row = 0; row < static_cast<size_t>(batch.valid); ++row)
      out.add(first + batch.targets[row], all.subspan(row * classes, classes));
  }
}

}  // namespace

bool is_sound_file(const std::string& path) {
  std::string end = std::filesystem::path(path).extension().string();
  for (char& c : end) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return end == ".wav" || end == ".flac";
}

std::shared_ptr<const data::Dataset> open_unlabelled(const Session& session,
                                                     const std::vector<std::string>& paths) {
  if (session.recipe.data.samples == "sounds" && std::all_of(paths.begin(), paths.end(), is_sound_file)) {
    std::vector<std::string> files;
    for (const std::string& path : paths)
      for (std::string& file : data::expand_paths(path)) files.push_back(std::move(file));
    return data::file_list(std::move(files), paths[0], {"audio", data::ColumnKind::audio});
  }
  if (paths.size() != 1) fail<InternalError>("{} sources where one is opened", paths.size());
  if (has_arrays(session.recipe)) return open_rows(session.recipe, session.encoding, paths[0]);
  return open_texts(session.recipe, paths[0]);
}

void predict_samples(Predictor& predictor, const Session& session,
                     const std::shared_ptr<const data::Dataset>& samples, const OnSample& on) {
  const Recipe& recipe = session.recipe;
  const int64_t count = samples->count();
  InOrder out(on, count);
  if (!has_arrays(recipe)) {
    const auto feed = unlabelled_texts(recipe, *samples);
    run(predictor, *feed, 0, out);
    return;
  }
  int64_t row_bytes = 0;
  for (const optim::TensorSpec& spec : specs_of(session.inputs, 1, 0)) row_bytes += Array(spec.type).bytes();
  // Whole batches, so that each is the one of evaluation.
  const int64_t most =
      std::min<int64_t>(recipe.data.cache_mb << 20, 256 << 20) / std::max<int64_t>(row_bytes, 1);
  const int64_t part = std::max<int64_t>(1, most / recipe.eval.batch) * recipe.eval.batch;
  for (int64_t first = 0; first < count; first += part) {
    const auto rows = data::slice(samples, first, std::min(part, count - first));
    const auto arrays = unlabelled_arrays(recipe, session.encoding, rows);
    for (const data::BadSample& bad : arrays->bad) out.failed(first + bad.index, bad.why);
    if (arrays->labels.empty()) continue;
    run(predictor, *data::array_feed(arrays, {recipe.eval.batch, 0, "sequential", false}), first, out);
  }
}

Array next_token_logits(Predictor& predictor, const Session& session, std::span<const int32_t> ids) {
  const Recipe& recipe = session.recipe;
  if (recipe.data.tokenizer.empty() || !session.classes.empty() || !recipe.data.spans.empty())
    fail<InputError>("the model does not predict the next token");
  if (ids.empty()) fail<InputError>("an empty text: there is nothing to go on from");
  const PreparedTail row = prepared_tail(session, ids);
  const Array all = predictor.logits(row.inputs);
  const int64_t tokens = all.shape().back().size();
  Array last(f32, {tokens});
  std::copy_n(all.as<float>().begin() + (row.tokens - 1) * tokens, tokens, last.as<float>().begin());
  return last;
}

}  // namespace millrace::train
