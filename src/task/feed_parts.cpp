#include "task/feed_parts.h"

#include <algorithm>

#include "base/format.h"

namespace millrace::task {

TaskParts parts_of(const Task& task, const Reading& reading, Purpose purpose, bool targets) {
  for (const auto& input : task.inputs)
    if (input->cuts() && task.inputs.size() > 1)
      fail<InputError>(
          "{}: its rows are extracts of a corpus, not samples that other inputs belong to: make it "
          "the only input, or give each text a row of its own",
          input_key(input->section()));
  TaskParts parts;
  for (const auto& input : task.inputs) {
    parts.inputs.push_back(input->part(reading, purpose));
    parts.named.push_back({input->prefix(), parts.inputs.back(), false});
  }
  for (const auto& output : task.outputs) {
    parts.outputs.push_back(targets ? output->part(reading) : nullptr);
    if (!parts.outputs.back()) continue;
    if (cuts_corpus(task))
      fail<InputError>(
          "{}: a column says something of a whole text, but rows are extracts of a corpus: give "
          "each text a row of its own",
          output_key(output->section()));
    parts.named.push_back({output->prefix(), parts.outputs.back(), true});
  }
  return parts;
}

bool cuts_corpus(const Task& task) {
  return std::any_of(task.inputs.begin(), task.inputs.end(), [](const auto& input) { return input->cuts(); });
}

PlannedRows planned_rows(const Task& task, const TaskParts& parts, const Reading& reading, Purpose purpose,
                         int64_t batch) {
  PlannedRows planned;
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    auto rows = task.inputs[i]->rows(*parts.inputs[i], reading, purpose, batch);
    if (!rows) continue;
    if (planned.input)
      fail<InputError>(
          "{} and {} both decide which samples stand in a batch, by the lengths of their texts: pad "
          "one of them to a single length",
          input_key(planned.input->section()), input_key(task.inputs[i]->section()));
    planned = {task.inputs[i].get(), parts.inputs[i], std::move(rows)};
  }
  return planned;
}

std::vector<std::string> count_notes(const Task& task, const std::string& path, const std::string& samples) {
  // Of a corpus that is cut its input says how much it is.
  std::string first = fmt::format("{}: {}", path, cuts_corpus(task) ? "" : samples);
  std::vector<std::string> more;
  const auto add = [&](const std::string& key, const std::vector<std::string>& notes) {
    for (size_t i = 0; i < notes.size(); ++i) {
      const std::string note = key.empty() ? notes[i] : fmt::format("{}: {}", key, notes[i]);
      if (i == 0 && note.starts_with(samples + ", "))
        first += note.substr(samples.size());
      else if (i == 0)
        first += (first.ends_with(": ") ? "" : "; ") + note;
      else
        more.push_back(fmt::format("{}: {}", path, note));
    }
  };
  for (const auto& input : task.inputs)
    add(input->name().empty() ? "" : input_key(input->section()), input->notes());
  for (const auto& output : task.outputs)
    add(output->name().empty() ? "" : output_key(output->section()), output->notes());
  more.insert(more.begin(), std::move(first));
  return more;
}

}  // namespace millrace::task
