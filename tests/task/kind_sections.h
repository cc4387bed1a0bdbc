// Sections of recipes for tests of kinds.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/feed/part.h"
#include "eval/metric.h"
#include "support/refusal.h"
#include "support/rows_dataset.h"
#include "task/input.h"
#include "task/output.h"

namespace millrace::testing {

using Items = std::map<std::string, SettingValue>;

inline task::Section section_of(const std::string& key, const std::string& kind, const Items& items,
                                std::vector<Setting> declared) {
  task::Section section;
  for (const auto& [name, value] : items) section.items[name] = {value, ""};
  section.settle(key, kind, std::move(declared));
  return section;
}

inline task::Section output_section(const std::string& kind, const Items& items = {}) {
  std::vector<Setting> declared = task::common_output_settings();
  const auto& own = task::output_kinds().at(kind).settings;
  declared.insert(declared.end(), own.begin(), own.end());
  return section_of("output", kind, items, std::move(declared));
}

inline task::Section input_section(const std::string& kind, const Items& items = {}) {
  return section_of("input", kind, items, task::input_kinds().at(kind).settings);
}

inline std::shared_ptr<const data::Dataset> rows_of(std::vector<data::Column> columns,
                                                    std::vector<std::vector<data::Value>> rows,
                                                    std::vector<std::string> class_names = {}) {
  return std::make_shared<RowsDataset>("rows", std::move(columns), std::move(rows), std::move(class_names));
}

/// An output learnt from these samples.
inline std::unique_ptr<task::Output> learnt_output(const std::string& kind, const Items& items,
                                                   std::shared_ptr<const data::Dataset> samples) {
  const task::Recipe recipe;
  return task::output_kinds().at(kind).learn(output_section(kind, items), {recipe, std::move(samples)}, {});
}

/// All targets of a part with one field of elements T.
template <typename T>
std::vector<T> targets_of(const task::Output& output, std::shared_ptr<const data::Dataset> samples) {
  const task::Recipe recipe;
  const auto part = output.part({recipe, samples});
  const size_t bytes = data::row_bytes(part->fields()[0].type, 0);
  std::vector<T> all(static_cast<size_t>(samples->count()) * bytes / sizeof(T));
  std::vector<std::byte> stored(part->stored_bytes());
  for (int64_t i = 0; i < samples->count(); ++i) {
    if (const std::string why = part->read(*samples, i, nullptr, nullptr, stored.data()); !why.empty())
      throw InputError(why);
    std::byte* row = reinterpret_cast<std::byte*>(all.data()) + static_cast<size_t>(i) * bytes;
    part->put(stored.data(), {{}, 0, {}}, nullptr, {&row, 1});
  }
  return all;
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// The metrics of some rows, by name.
template <typename T>
std::map<std::string, double> judged(const task::Output& output, const std::vector<float>& logits,
                                     const std::vector<T>& targets, const std::vector<char>& rows,
                                     const std::vector<std::string>& metrics, int64_t length = 0) {
  eval::Measurement measurement(metrics, output.kind().name);
  output.judge(logits, bytes_of(targets), length, rows, 0, measurement);
  std::map<std::string, double> values;
  for (const eval::Measured& each : measurement.finalize()) values[each.name] = each.value;
  return values;
}

}  // namespace millrace::testing
