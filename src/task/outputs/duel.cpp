// Who wins a duel: the first name or the second.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/format.h"
#include "data/feed/array_part.h"
#include "task/input.h"
#include "task/json_text.h"
#include "task/judge_labels.h"
#include "task/output.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

class DuelOutput final : public Output {
 public:
  explicit DuelOutput(Section section) : Output(std::move(section)) { loss_ = chosen_loss(section_); }

  std::string encoding() const override { return "{}"; }
  double ignorance() const override { return std::log(2.0); }
  int64_t width() const override { return 2; }

  /// It is the first that has won.
  std::shared_ptr<const data::Part> part(const Reading& /*reading*/) const override {
    return std::make_shared<data::ArrayPart>(
        std::vector<data::Field>{{"target", {i64, {Dim::named("batch")}}}},
        [](const data::Dataset& /*from*/, int64_t /*first*/, int64_t count,
           std::span<std::byte* const> rows) { std::fill_n(reinterpret_cast<int64_t*>(rows[0]), count, 0); },
        data::ArrayPartOptions{{data::pad_of<int64_t>(-1)}});
  }

  Tensor predictions(const Tensor& logits) const override { return softmax(cast(logits, f32), -1); }
  std::string predictions_name() const override { return "probabilities"; }
  eval::Link link() const override { return eval::Link::softmax; }

  void judge(std::span<const float> logits, std::span<const std::byte> targets, int64_t /*length*/,
             const std::vector<char>& rows, double bytes, eval::Measurement& into) const override {
    judge_labels(logits, targets, 1, width(), rows, bytes, into);
  }

  Prediction predict(std::span<const float> logits, int64_t /*top*/) const override {
    std::vector<double> probabilities;
    eval::softmax(logits, probabilities);
    return {fmt::format("wins with {:.1f} %", 100 * probabilities[0]),
            {{"probability", json_number(probabilities[0])}, {"logits", json_numbers(logits)}}};
  }
  std::string target_text(std::span<const std::byte> /*target*/) const override {
    return "the first has won";
  }
};

std::unique_ptr<Output> duel_output_of(const Section& section,
                                       std::span<const std::unique_ptr<Input>> inputs) {
  if (inputs.size() != 1 || inputs[0]->gives() != "duel")
    fail<InputError>(
        "{}.kind = \"duel\" says who of two names wins: its only input is of that kind, too: "
        "input.kind = \"duel\"",
        output_key(section));
  return std::make_unique<DuelOutput>(section);
}

}  // namespace

MILLRACE_OUTPUT(duel){
    .name = "duel",
    .doc = "who wins: the first or the second name of an input of kind duel",
    .settings = {},
    .metrics = {"accuracy", "log-loss"},
    .loss = "cross-entropy",
    .refuses = [](const data::Dataset& /*samples*/, const std::string& column) -> std::string {
      return fmt::format("duels are won by names of the input, not told by the column '{}'", column);
    },
    .recognise = [](const data::Dataset& /*samples*/) -> std::string { return {}; },
    .rank = -1,
    .check =
        [](const Section& section, const Recipe& /*recipe*/) {
          if (const std::string& column = section.settings.text("column"); !column.empty())
            fail<InputError>("{0}.column = \"{1}\": who has won stands in the input's columns; leave it out",
                             output_key(section), column);
        },
    .learn = [](const Section& section, const Reading& /*reading*/,
                std::span<const std::unique_ptr<Input>> inputs) { return duel_output_of(section, inputs); },
    .load = [](const Section& section, const std::string& /*encoding*/,
               std::span<const std::unique_ptr<Input>> inputs) { return duel_output_of(section, inputs); },
};

}  // namespace millrace::task
