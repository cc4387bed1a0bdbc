#include "data/feed/picture_feed.h"

#include "data/codecs/pictures/extent.h"

namespace millrace::data {

PictureFeed::PictureFeed(std::unique_ptr<Loader> loader, std::vector<int64_t> classes)
    : loader_(std::move(loader)), classes_(std::move(classes)) {
  const Dim batch = Dim::named("batch");
  const Extent& e = loader_->extent();
  fields_ = {{"pictures", {u8, {batch, e.channels, e.height, e.width}}}, {"labels", {i64, {batch}}}};
  if (loader_->mixed()) {
    fields_.push_back({"mixed_labels", {i64, {batch}}});
    fields_.push_back({"mix", {f32, {batch}}});
  }
  if (loader_->weighted()) fields_.push_back({"weights", {f32, {batch}}});
}

const FeedBatch& PictureFeed::next() {
  const Batch& batch = loader_->next();
  batch_.arrays = {std::as_bytes(std::span(batch.pictures)), std::as_bytes(std::span(batch.labels))};
  if (loader_->mixed()) {
    batch_.arrays.push_back(std::as_bytes(std::span(batch.mixed_labels)));
    batch_.arrays.push_back(std::as_bytes(std::span(batch.mix)));
  }
  if (loader_->weighted()) batch_.arrays.push_back(std::as_bytes(std::span(batch.weights)));
  targets_.assign(batch.labels.size(), -1);
  for (int64_t i = 0; i < batch.valid; ++i) {
    const auto at = static_cast<size_t>(i);
    // In the source's order another index stands in for a picture that cannot be read.
    if (!classes_.empty() && batch.indices[at] != batch.start.position + i) continue;
    const int64_t label = batch.labels[at];
    targets_[at] = classes_.empty() ? label : classes_[static_cast<size_t>(label)];
  }
  batch_.targets = targets_;
  batch_.valid = batch.valid;
  batch_.start = batch.start;
  return batch_;
}

}  // namespace millrace::data
