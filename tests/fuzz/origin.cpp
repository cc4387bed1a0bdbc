// Lines of a run's folder as a resumed run, diff and lineage read them: origins, metrics, calibrations.
#include "train/origin.h"

#include <cstdlib>

#include "data/feed/part.h"
#include "eval/metric.h"
#include "fuzz/fuzz.h"
#include "task/calibrated.h"
#include "task/output.h"
#include "track/metrics_log.h"

using namespace millrace;

namespace {

/// An output of three classes.
class Three final : public task::Output {
 public:
  Three() : Output({}) {}
  std::string encoding() const override { return "{}"; }
  double ignorance() const override { return 0; }
  int64_t width() const override { return 3; }
  std::shared_ptr<const data::Part> part(const task::Reading&) const override { return nullptr; }
  Tensor loss(const Tensor& logits, const Tensor&, bool) const override { return logits; }
  Tensor predictions(const Tensor& logits) const override { return logits; }
  std::string predictions_name() const override { return ""; }
  eval::Link link() const override { return eval::Link::softmax; }
  void judge(std::span<const float>, std::span<const std::byte>, int64_t, const std::vector<char>&, double,
             eval::Measurement&) const override {}
  task::Prediction predict(std::span<const float>, int64_t) const override { return {}; }
  std::string target_text(std::span<const std::byte>) const override { return ""; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(fuzz::text(data, size));
  fuzz::refuse_or_take([&] { (void)train::parse_origins(text, "origin.jsonl"); });
  const std::string kept = track::lines_until(text, 5);
  if (kept.size() > text.size() || track::lines_until(kept, 5) != kept) std::abort();
  (void)track::numbers_of(text, "hours");
  fuzz::refuse_or_take([&] {
    Three output;
    output.calibrate(task::calibration_of(text, output));
    (void)task::calibration_text(output.calibration());
    const std::string written = task::calibration_json(output.calibration());
    if (task::calibration_json(task::calibration_of(written, output)) != written) std::abort();
    const Array logits = Array::of(f32, {2, 3}, std::vector<double>{1, -2, .5, 30, 0, -1e9});
    (void)task::calibrated(output, Tensor(logits)).to_array();
    (void)task::decisions(output, Tensor(logits));
  });
  return 0;
}
