#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include <millrace/dataset.h>

#include "base/format.h"
#include "base/number_from.h"
#include "base/words.h"
#include "cli/data_notes.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "data/feed/streams/reservoir.h"
#include "data/feed/streams/stream_reader.h"
#include "data/formats/open_dataset.h"
#include "data/order/order.h"
#include "data/table/labels.h"
#include "task/recipe.h"

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

/// A value; one that cannot be read (a pickle, damaged content) is missing, and the first reason in each
/// column is kept.
data::Value read_value(const data::Dataset& dataset, int64_t sample, size_t column,
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

void print_head_json(const data::Dataset& dataset, const std::vector<int64_t>& rows, int64_t total) {
  std::map<size_t, std::string> faults;
  nlohmann::ordered_json json;
  json["samples"] = total;
  for (const data::Column& column : dataset.columns())
    json["columns"].push_back({{"name", column.name}, {"kind", data::kind_name(column.kind)}});
  json["head"] = nlohmann::ordered_json::array();
  for (const int64_t i : rows) {
    nlohmann::ordered_json row;
    for (size_t c = 0; c < dataset.columns().size(); ++c)
      row[dataset.columns()[c].name] =
          json_value(read_value(dataset, i, c, faults), dataset.columns()[c].kind);
    json["head"].push_back(row);
  }
  print_faults(faults);
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

struct HeadArguments {
  std::string source, order, rank = "0/1";
  int64_t count = 5, sample = 0, seed = 1;
  bool json = false, stream = false;
  std::string where;
  HeaderOption header;
};

/// "1/4"
std::pair<int64_t, int64_t> rank_of(const std::string& text) {
  const std::vector<std::string> parts = split(text, '/');
  const int64_t rank = number_from(parts.front()).value_or(-1), ranks = number_from(parts.back()).value_or(0);
  if (parts.size() != 2 || rank < 0 || rank >= ranks)
    fail<InputError>("--rank {}: write it as 0/4, 1/4, 2/4 or 3/4 for the four of four", text);
  return {rank, ranks};
}

/// The samples to print: the first ones of the source, or of an epoch of training in an order.
std::vector<int64_t> rows_of(const HeadArguments& a, const std::shared_ptr<const data::Dataset>& dataset) {
  std::vector<int64_t> rows;
  const auto [rank, ranks] = rank_of(a.rank);
  if (a.order.empty()) {
    for (int64_t i = rank; i < dataset->count() && std::ssize(rows) < a.count; i += ranks) rows.push_back(i);
    return rows;
  }
  const data::OrderText text = data::parse_order(a.order);
  data::Population population{dataset->count(), {}, {}, {}};
  if (const auto column = data::find_label(*dataset)) try {
      const auto set = data::numbered(dataset, *column);
      const data::Labels labels(*set);
      for (int64_t i = 0; i < set->count(); ++i) population.labels.push_back(labels[i]);
      population.classes = labels.names();
    } catch (const InputError&) {  // no classes; an order that needs them says so
    }
  if (const std::string column = text.column(); !column.empty())
    population.values = data::numbers_of(*dataset, column);
  const auto order = text.make(population);
  for (int64_t place = rank; place < order->length() && std::ssize(rows) < a.count; place += ranks)
    rows.push_back(order->at(static_cast<uint64_t>(a.seed), 0, place).index);
  return rows;
}

/// The first samples of training on a stream: those in memory are the buffer's and the printed ones.
std::unique_ptr<data::Dataset> head_of_stream(const HeadArguments& a) {
  const auto [rank, ranks] = rank_of(a.rank);
  auto stream = data::open_stream(task::expand(a.source));
  if (!a.where.empty()) stream = data::select(std::move(stream), a.where);
  data::StreamReader reader(std::move(stream), data::stream_buffer(a.order.empty() ? "sequential" : a.order),
                            static_cast<uint64_t>(a.seed));
  std::vector<data::StreamRecord> records;
  for (int64_t place = 0; std::ssize(records) < a.count; ++place) {
    data::StreamReader::Drawn drawn = reader.next();
    if (drawn.pass > 0) break;
    if (place % ranks == rank) records.push_back(std::move(drawn.record));
  }
  if (records.empty()) fail<InputError>("{}: has no samples for rank {}", a.source, a.rank);
  return reader.stream().samples(records);
}

Action declare_data_head(Command& command) {
  auto a = std::make_shared<HeadArguments>();
  command.positional("SOURCE", a->source, "data of any format")
      .option("-n,--count", a->count, "samples to print")
      .option("--sample", a->sample,
              "read all of the source as a stream and print so many of its samples, all equally likely")
      .option("--order", a->order, "print the first samples of training in this data.order")
      .option("--where", a->where, "with --stream: only samples that this is true for")
      .flag("--stream", a->stream, "read the source as data.stream does, no further than needed")
      .option("--rank", a->rank,
              "print those that one of several trainings takes that share an epoch, as 0/4")
      .option("--seed", a->seed, "of --sample and --order (default 1)")
      .flag("--json", a->json, "for programs: one JSON object")
      .footer(
          "  millrace data head train.rec\n"
          "  millrace data head 'train-{000..007}.tfrecord' -n 20\n"
          "  zcat log.jsonl.gz | millrace data head - --sample 20\n"
          "  millrace data head train.tar --order shuffle --rank 1/4\n"
          "  millrace data head pipe:'cat log.jsonl.gz' --stream --where 'n > 3' --rank 1/4\n");
  a->header.declare(command);
  return [a] {
    std::shared_ptr<const data::Dataset> dataset;
    std::vector<int64_t> rows;
    int64_t total = 0;
    if (!a->stream && !a->where.empty())
      fail<InputError>("--where goes with --stream; of all other data, millrace data query finds samples");
    if (a->stream && a->sample > 0) fail<InputError>("--sample reads all of a stream: leave out --stream");
    if (a->stream) {
      dataset = head_of_stream(*a);
      total = dataset->count();
      rows.resize(static_cast<size_t>(total));
      std::iota(rows.begin(), rows.end(), int64_t{0});
    } else if (a->sample > 0) {
      if (!a->order.empty() || a->rank != "0/1")
        fail<InputError>("--sample goes with neither --order nor --rank");
      const auto stream = data::open_stream(task::expand(a->source));
      data::StreamSampled sampled = data::sample_stream(*stream, a->sample, static_cast<uint64_t>(a->seed));
      dataset = std::move(sampled.samples);
      total = sampled.total;
      rows.resize(static_cast<size_t>(dataset->count()));
      std::iota(rows.begin(), rows.end(), int64_t{0});
    } else {
      dataset = data::open_dataset(task::expand(a->source), a->header.options());
      total = dataset->count();
      rows = rows_of(*a, dataset);
    }
    print_notes(*dataset);
    if (a->json) {
      print_head_json(*dataset, rows, total);
      return 0;
    }
    fmt::print("{}: {} samples of {} columns\n", dataset->path(), thousands(total),
               dataset->columns().size());
    std::vector<std::string> titles = {"sample"};
    for (const data::Column& column : dataset->columns())
      titles.push_back("<" + column.name + " (" + data::kind_name(column.kind) + ")");
    Table table(std::move(titles));
    std::map<size_t, std::string> faults;
    for (const int64_t i : rows) {
      std::vector<std::string> row = {std::to_string(i)};
      for (size_t c = 0; c < dataset->columns().size(); ++c)
        row.push_back(data::value_text(read_value(*dataset, i, c, faults), dataset->columns()[c].kind, 40));
      table.row(std::move(row));
    }
    fmt::print("{}", table.str());
    print_faults(faults);
    return 0;
  };
}

}  // namespace

MILLRACE_DATA_VERB(head){"head", "print the first samples of a source", declare_data_head, 20};

}  // namespace millrace::cli
