// What people said of the same samples, in a column of the data.
#include <algorithm>

#include "base/format.h"
#include "baseline/context.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "data/table/view.h"

namespace millrace::baseline {
namespace {

/// Two columns under each other's names: people's answers stand where the targets are read.
class Renamed final : public data::View {
 public:
  Renamed(std::shared_ptr<const data::Dataset> whole, const std::string& one, const std::string& other)
      : View(std::move(whole)) {
    std::swap(columns_[column(one)].name, columns_[column(other)].name);
  }
  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<data::ColumnValues>& values) const override {
    return whole().read_run(first, count, columns, values);
  }
};

/// The targets as that column has them, of the samples that have a value there.
PartRows answers_of(const task::Task& task, const std::string& column,
                    const std::shared_ptr<const data::Dataset>& from, std::vector<char>& known) {
  const task::Output& output = *task.outputs[0];
  const std::vector<int64_t> answered = data::matching(*from, data::Query::parse(data::has_a_value(column)));
  if (answered.empty())
    fail<InputError>("{}: baseline.human = \"{}\": no sample has a value there", from->path(), column);
  known.assign(static_cast<size_t>(from->count()), 0);
  const auto some =
      data::select(std::make_shared<Renamed>(from, output.settings().text("column"), column), answered);
  std::vector<int64_t> all(answered.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  PartRows rows;
  try {
    rows = read_rows(*output.part({task.recipe, some}), *some, all);
  } catch (const InputError& error) {
    fail<InputError>("baseline.human = \"{}\": {}", column, error.what());
  }
  // Rows of the whole set.
  PartRows whole;
  for (const Array& each : rows.arrays) {
    Type type = each.type();
    type.shape[0] = from->count();
    whole.arrays.emplace_back(type);
    const size_t bytes = static_cast<size_t>(each.bytes()) / std::max<size_t>(1, answered.size());
    for (size_t i = 0; i < answered.size(); ++i)
      std::copy_n(
          static_cast<const std::byte*>(std::as_const(each).data()) + i * bytes, bytes,
          static_cast<std::byte*>(whole.arrays.back().data()) + static_cast<size_t>(answered[i]) * bytes);
  }
  for (size_t i = 0; i < answered.size(); ++i) known[static_cast<size_t>(answered[i])] = rows.good[i];
  return whole;
}

std::vector<int64_t> classes_told(const PartRows& rows, const std::vector<char>& known) {
  const Array& array = rows.arrays[0];
  std::vector<int64_t> told(known.size(), -1);
  for (size_t i = 0; i < told.size(); ++i)
    if (known[i]) told[i] = array.as<int64_t>()[i];
  return told;
}

Result run_human(Context& context) {
  const std::string& column = context.recipe().baseline.human;
  if (column.empty()) return not_for("the recipe names no column of people's answers (baseline.human)");
  const task::Task& task = context.task();
  const task::Output& output = *task.outputs[0];
  if (task.outputs.size() > 1 || output.from() || !output.settings().find("column"))
    return not_for("people's answers are read for a recipe of one output with one column");
  std::vector<char> known, known_in_training;
  const PartRows answers = answers_of(task, column, context.samples(true), known);
  std::vector<float> logits;
  if (has_classes(output)) {
    std::vector<int64_t> before;
    if (context.samples(false)->find_column(column))
      before = classes_told(answers_of(task, column, context.samples(false), known_in_training),
                            known_in_training);
    logits = context.logits_of_answers(0, before, classes_told(answers, known));
  } else {
    const Array& array = answers.arrays[0];
    const bool labels = output.link() == eval::Link::sigmoid;
    constexpr float sure = 4;
    for (const float value : array.as<float>()) logits.push_back(labels ? sure * (2 * value - 1) : value);
  }
  Result result{.metrics = context.judged({logits}, known)};
  const int64_t count = std::count(known.begin(), known.end(), 1), all = std::ssize(known);
  if (count < all) result.note = fmt::format("of {} of {} samples: others have no answer", count, all);
  return result;
}

}  // namespace

MILLRACE_BASELINE(human){
    .name = "human",
    .doc = "what people said of the same samples: the column baseline.human",
    .place = 30,
    .run = run_human,
};

}  // namespace millrace::baseline
