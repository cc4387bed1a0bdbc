#include "task/task.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/utf8.h"
#include "data/feed/part.h"
#include "task/recipe_check.h"
#include "task/settle.h"

namespace millrace::task {
namespace {

using TaskJson = nlohmann::json;

template <typename Parts>
TaskJson encodings(const Parts& parts) {
  TaskJson list = TaskJson::array();
  for (const auto& part : parts) list.push_back(stored_text(part->encoding()));
  return list;
}

std::vector<std::string> encodings_of(const TaskJson& json, const char* what, size_t count) {
  std::vector<std::string> texts;
  for (const TaskJson& text : json.at(what)) texts.push_back(text_of_stored(text.get<std::string>()));
  if (texts.size() != count)
    fail<InputError>("what the checkpoint knows of the data is of {} {}, the recipe has {}", texts.size(),
                     what, count);
  return texts;
}

void require_kind(const Section& section, const std::string& key) {
  if (section.kind.empty())
    fail<InputError>("the recipe of the run does not say the kind of {}: it is damaged", key);
}

}  // namespace

const char* Task::unit() const { return inputs.at(0)->kind().unit; }

int64_t Task::length() const {
  int64_t longest = 0;
  for (const auto& input : inputs) longest = std::max(longest, input->length());
  return longest;
}

std::vector<data::Field> Task::fields() const {
  std::vector<data::Field> all;
  for (const auto& input : inputs)
    for (data::Field& field : input->fields()) {
      field.name = input->prefix() + field.name;
      all.push_back(std::move(field));
    }
  return all;
}

std::string Task::encoding() const {
  return TaskJson{{"inputs", encodings(inputs)}, {"outputs", encodings(outputs)}}.dump();
}

std::vector<std::string> Task::metrics() const {
  if (!recipe.eval.metrics.empty()) return recipe.eval.metrics;
  std::vector<std::string> names;
  for (const auto& output : outputs)
    for (const std::string& metric : output->kind().metrics)
      names.push_back(outputs.size() > 1 ? output->prefix() + metric : metric);
  return names;
}

void Task::require_predictions(const std::string& name) const {
  for (const auto& output : outputs)
    if (const std::string why = output->predicts_nothing(); !why.empty())
      fail<InputError>("{}: {}", name, why);
}

Task learn_task(const Reading& reading) {
  Task task;
  Recipe& recipe = task.recipe = reading.recipe;
  settle_outputs(recipe, *reading.samples);
  recipe.data.group = group_of(recipe, *reading.samples);
  if (reading.streamed && !recipe.data.group.empty())
    fail<InputError>(
        "data.group = \"{}\": what belongs together may lie anywhere in a stream: leave data.stream out",
        recipe.data.group);
  std::vector<std::string> taken = reading.taken;
  for (std::string& column : taken_columns(recipe)) taken.push_back(std::move(column));
  const auto of_inputs = settle_inputs(recipe, *reading.samples, taken);
  settle_rows(recipe, reading.streamed);
  check_groups(recipe);
  const auto with = [&](std::vector<std::string> columns) {
    return Reading{recipe,        reading.samples,  std::move(columns),
                   reading.share, reading.streamed, reading.progress};
  };
  for (size_t i = 0; i < recipe.inputs.size(); ++i) {
    const Section section = recipe.inputs[i];
    task.inputs.push_back(input_kinds().at(section.kind).learn(section, with(of_inputs[i])));
    recipe.inputs[i] = task.inputs[i]->section();
  }
  for (Section& each : recipe.outputs) {
    const Section section = each;
    task.outputs.push_back(output_kinds().at(section.kind).learn(section, with(taken), task.inputs));
    each = task.outputs.back()->section();
  }
  settle_model(recipe, task.inputs);
  check_kinds(recipe, "the recipe");
  return task;
}

Task load_task(Recipe recipe, const std::string& encoding) {
  Task task;
  task.recipe = std::move(recipe);
  const auto &inputs = task.recipe.inputs, &outputs = task.recipe.outputs;
  for (const Section& input : inputs) require_kind(input, input_key(input));
  for (const Section& output : outputs) require_kind(output, output_key(output));
  std::vector<std::string> of_inputs, of_outputs;
  try {
    const TaskJson json = TaskJson::parse(encoding);
    of_inputs = encodings_of(json, "inputs", inputs.size());
    of_outputs = encodings_of(json, "outputs", outputs.size());
  } catch (const TaskJson::exception& error) {
    fail<InputError>("what the checkpoint knows of the data is damaged: {}", error.what());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    task.inputs.push_back(input_kinds().at(inputs[i].kind).load(inputs[i], of_inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i)
    task.outputs.push_back(output_kinds().at(outputs[i].kind).load(outputs[i], of_outputs[i], task.inputs));
  settle_model(task.recipe, task.inputs);
  return task;
}

}  // namespace millrace::task
