#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>

#include <millrace/error.h>

#include "cli/data_notes.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "data/dataset.h"
#include "train/recipe.h"

namespace millrace::cli {
namespace {

nlohmann::ordered_json json_value(const data::Value& value, data::ColumnKind kind) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* array = std::get_if<Array>(&value)) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (int64_t i = 0; i < array->count(); ++i)
      if (array->dtype().is_int())
        list.push_back(array->int_at(i));
      else
        list.push_back(array->at(i));
    return list;
  }
  if (std::holds_alternative<std::monostate>(value)) return nullptr;
  return data::value_text(value, kind);
}

/// A value; one that cannot be read (a pickle, damaged content) is missing, and the first reason in each column is kept.
data::Value read(const data::Dataset& dataset, int64_t sample, size_t column,
                 std::map<size_t, std::string>& faults) {
  try {
    return dataset.read(sample, column);
  } catch (const InputError& error) {
    faults.try_emplace(column, error.what());
    return {};
  }
}

void print_faults(const std::map<size_t, std::string>& faults) {
  for (const auto& [column, why] : faults) fmt::print(stderr, "note: {}\n", why);
}

void print_json(const data::Dataset& dataset, int64_t samples) {
  std::map<size_t, std::string> faults;
  nlohmann::ordered_json json;
  json["samples"] = dataset.count();
  for (const data::Column& column : dataset.columns())
    json["columns"].push_back({{"name", column.name}, {"kind", data::kind_name(column.kind)}});
  json["head"] = nlohmann::ordered_json::array();
  for (int64_t i = 0; i < samples; ++i) {
    nlohmann::ordered_json row;
    for (size_t c = 0; c < dataset.columns().size(); ++c)
      row[dataset.columns()[c].name] = json_value(read(dataset, i, c, faults), dataset.columns()[c].kind);
    json["head"].push_back(row);
  }
  print_faults(faults);
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

Action declare_data_head(Command& command) {
  struct Arguments {
    std::string source;
    int64_t count = 5;
    bool json = false;
    HeaderOption header;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("SOURCE", a->source, "data of any format")
      .option("-n,--count", a->count, "samples to print")
      .flag("--json", a->json, "for programs: one JSON object")
      .footer(
          "  millrace data head train.rec\n"
          "  millrace data head 'train-{000..007}.tfrecord' -n 20\n");
  a->header.declare(command);
  return [a] {
    const auto dataset = data::open_dataset(train::expand(a->source), a->header.options());
    print_notes(*dataset);
    const int64_t samples = std::clamp<int64_t>(a->count, 0, dataset->count());
    if (a->json) {
      print_json(*dataset, samples);
      return 0;
    }
    fmt::print("{}: {} samples of {} columns\n", dataset->path(), thousands(dataset->count()),
               dataset->columns().size());
    std::vector<std::string> titles = {"sample"};
    for (const data::Column& column : dataset->columns())
      titles.push_back("<" + column.name + " (" + data::kind_name(column.kind) + ")");
    Table table(std::move(titles));
    std::map<size_t, std::string> faults;
    for (int64_t i = 0; i < samples; ++i) {
      std::vector<std::string> row = {std::to_string(i)};
      for (size_t c = 0; c < dataset->columns().size(); ++c)
        row.push_back(data::value_text(read(*dataset, i, c, faults), dataset->columns()[c].kind, 40));
      table.row(std::move(row));
    }
    fmt::print("{}", table.str());
    print_faults(faults);
    return 0;
  };
}

}  // namespace millrace::cli
