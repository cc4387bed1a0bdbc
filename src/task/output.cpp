#include "task/output.h"

#include <millrace/feed.h>

#include "base/format.h"
#include "eval/metric.h"
#include "task/input.h"

namespace millrace::task {

const OutputKind& Output::kind() const { return output_kinds().at(section_.kind); }

std::string Output::target_field() const {
  return from() ? from()->prefix() + "targets" : prefix() + "target";
}

std::string Output::judged_field(const data::Feed& feed) const {
  const std::string own = prefix() + "judged";
  return feed.has_field(own) ? own : target_field();
}

std::vector<Setting> common_output_settings() {
  return {{"column", "column of the targets; empty: found by its name or its values", std::string()},
          {"of", "name of the input whose tokens are predicted; empty: the only one", std::string()},
          {"weight", "of this output in the sum of all losses", 1.0, 0, 1e6},
          {"loss", "kind of loss (or a table of it: kind and its keys); empty: the usual one of the output",
           std::string()}};
}

std::vector<const OutputKind*> possible_kinds(const Section& output) {
  if (output.kind.empty()) return output_kinds().all();
  return {&output_kinds().at(output.kind)};
}

const eval::MetricKind* progress_metric_of(const OutputKind& kind) {
  for (const std::string& name : kind.metrics)
    if (const eval::MetricKind* metric = eval::find_metric(name); metric && metric->of_rows) return metric;
  return nullptr;
}

const eval::MetricKind& Output::progress_metric() const {
  const eval::MetricKind* const metric = progress_metric_of(kind());
  MILLRACE_CHECK(metric, "no metric of output {} is a mean over rows", section_.kind);
  return *metric;
}

Tensor Output::progress(const Tensor& logits, const Tensor& targets) const {
  return progress_metric().of_rows(in_unit(logits), in_unit(targets));
}

}  // namespace millrace::task
