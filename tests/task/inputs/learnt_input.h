// Inputs learnt from little data sets, and what they make of rows.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "data/feed/part.h"
#include "task/input.h"

namespace millrace::testing {

/// A settled section of a kind of input.
inline task::Section settled_input(const std::string& kind,
                                   const std::vector<std::pair<std::string, SettingValue>>& settings = {}) {
  task::Section section;
  section.kind = kind;
  section.settings = Settings(task::input_kinds().at(kind).settings);
  for (const auto& [key, value] : settings) section.settings.set(key, value);
  return section;
}

inline task::Reading reading_of(const task::Recipe& recipe, std::shared_ptr<const data::Dataset> samples,
                                std::vector<std::string> taken = {}) {
  return {.recipe = recipe, .samples = std::move(samples), .taken = std::move(taken)};
}

/// All rows of a part as a batch. `epoch`: of the keys of what is random.
inline std::vector<Array> rows_of(const data::Part& part, const data::Dataset& samples, int64_t epoch = 0) {
  std::vector<Array> arrays;
  for (const data::Field& field : part.fields())
    arrays.emplace_back(Type{field.type.dtype, field.type.shape.specialise({{"batch", samples.count()}})});
  const auto scratch = part.scratch();
  std::vector<std::byte> stored(part.stored_bytes());
  for (int64_t i = 0; i < samples.count(); ++i) {
    const data::Row row{{7, epoch, i, i}};
    const std::string why = part.read(samples, i, &row.key, scratch.get(), stored.data());
    if (!why.empty()) throw std::runtime_error(samples.name(i) + ": " + why);
    std::vector<std::byte*> places;
    for (size_t k = 0; k < arrays.size(); ++k)
      places.push_back(static_cast<std::byte*>(arrays[k].data()) +
                       static_cast<size_t>(i) * data::row_bytes(part.fields()[k].type, 0));
    part.put(stored.data(), row, scratch.get(), places);
  }
  return arrays;
}

/// What the input's graph makes of a batch.
inline std::vector<Array> graph_of(const task::Input& input, const std::vector<Array>& arrays,
                                   bool training) {
  const std::vector<Tensor> fields(arrays.begin(), arrays.end());
  std::vector<Array> results;
  for (const Tensor& tensor : input.graph(fields, training)) results.push_back(tensor.to_array());
  return results;
}

template <typename T>
std::vector<T> values_of(const Array& array) {
  return {array.as<T>().begin(), array.as<T>().end()};
}

}  // namespace millrace::testing
