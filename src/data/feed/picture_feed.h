// A loader of pictures as a feed.
#pragma once

#include <memory>

#include "data/feed/feed.h"
#include "data/feed/loader.h"
#include "data/feed/loader_work.h"

namespace millrace::data {

/// Fields: pictures u8 [batch, C, H, W], labels i64 [batch]; mixed_labels and mix where samples are mixed, weights where they are
/// weighted.
class PictureFeed : public Feed {
 public:
  /// `classes`: from the source's labels to the model's, for FeedBatch::targets; empty: they are the same.
  explicit PictureFeed(std::unique_ptr<Loader> loader, std::vector<int64_t> classes = {});

  std::span<const Field> fields() const override { return fields_; }
  const FeedBatch& next() override;
  Cursor cursor() const override { return loader_->cursor(); }
  void seek(const Cursor& cursor) override { loader_->seek(cursor); }
  int64_t batch_size() const override { return loader_->batch_size(); }
  int64_t batches_per_epoch() const override { return loader_->batches_per_epoch(); }
  int64_t count() const override { return loader_->count(); }
  const std::string& path() const override { return loader_->path(); }
  const char* unit() const override { return "pictures"; }
  const std::vector<std::string>& classes() const override { return loader_->classes(); }
  std::vector<std::string> notes() const override {
    return streamed() ? std::vector<std::string>() : loader_->samples().notes();
  }
  bool cached() const override { return loader_->cached(); }
  int64_t memory() const override { return loader_->memory(); }
  LoaderWork work() const override { return loader_->work(); }
  std::vector<BadSample> bad_samples() const override { return loader_->bad_samples(); }
  Tried tried() const override { return loader_->tried(); }

  bool ready(double seconds) override { return loader_->ready(seconds); }
  bool streamed() const override { return loader_->streamed(); }

  const Loader& loader() const { return *loader_; }
  Loader& loader() { return *loader_; }

 private:
  std::unique_ptr<Loader> loader_;
  std::vector<int64_t> classes_, targets_;
  std::vector<Field> fields_;
  FeedBatch batch_;
};

}  // namespace millrace::data
