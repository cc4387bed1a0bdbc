// Rows of a table that belong together: the documents of a query.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/format.h"
#include "data/feed/group_part.h"
#include "data/feed/sequences/plan.h"
#include "data/table/group.h"
#include "task/inputs/table_input.h"
#include "task/json_text.h"

namespace millrace::task {
namespace {

/// Lengths that rows are padded to: each has a step of its own compiled.
constexpr int64_t most_query_buckets = 4;

class QueriesInput final : public TableInput {
 public:
  QueriesInput(Section section, data::TableEncoder encoder, int64_t longest)
      : TableInput(std::move(section), std::move(encoder)), longest_(longest) {}

  std::string encoding() const override {
    return nlohmann::json{{"longest", longest_}, {"columns", TableInput::encoding()}}.dump();
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> lines = TableInput::notes();
    if (!sizes_.empty()) lines[0] = fmt::format("{} rows, {}; {}", rows_, sizes_, lines[0]);
    return lines;
  }
  std::vector<std::string> unreadable(const data::Dataset& samples) const override {
    return TableInput::unreadable(*data::rows_of(samples));
  }
  std::vector<std::string> unknown(const data::Dataset& samples) const override {
    return TableInput::unknown(*data::rows_of(samples));
  }
  int64_t length() const override { return longest_; }
  bool any_length() const override { return true; }
  bool plans() const override { return true; }
  std::vector<data::Field> fields() const override {
    const data::GroupPart part(row_fields(), 0, nullptr);
    return {part.fields().begin(), part.fields().end()};
  }
  std::vector<std::string> architectures() const override { return {"table", "boosting"}; }
  /// Categories of the exported model are ids: its rows are not those of a table.
  std::vector<ExportedTexts> exported_texts() const override { return {}; }

  std::shared_ptr<const data::Part> part(const Reading& reading, Purpose purpose) const override {
    const std::vector<int64_t> sizes = data::group_sizes(*reading.samples);
    const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
    rows_ = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    sizes_ = fmt::format("{} to {} of each", *least, *most);
    data::ArrayPartOptions options = part_options(reading, purpose);
    // What stands behind the last row of a query is missing; its score counts nowhere.
    for (const data::Field& field : row_fields())
      options.pads.push_back(field.type.dtype == f64 ? data::pad_of<double>(NAN) : data::pad_of<int64_t>(0));
    return std::make_shared<data::GroupPart>(row_fields(), *most, reader(reading, purpose),
                                             std::move(options));
  }
  std::unique_ptr<data::RowPlan> rows(const data::Part& /*part*/, const Reading& reading, Purpose purpose,
                                      int64_t batch) const override {
    const bool training = purpose == Purpose::training;
    if (training && !reading.recipe.data.weights.empty())
      fail<InputError>("data.weights: queries of similar size come together, they cannot be mixed by shares");
    auto lengths = std::make_shared<data::Lengths>();
    const std::vector<int64_t> sizes = data::group_sizes(*reading.samples);
    lengths->path = reading.samples->path();
    lengths->unit = "queries";
    lengths->items = "rows";
    lengths->begins = {0};
    for (const int64_t size : sizes) lengths->begins.push_back(lengths->begins.back() + size);
    lengths->indices.resize(sizes.size());
    std::iota(lengths->indices.begin(), lengths->indices.end(), int64_t{0});
    data::PlanOptions plan;
    plan.length = *std::max_element(sizes.begin(), sizes.end());
    plan.batch = batch;
    plan.order = training ? reading.recipe.data.order : "sequential";
    plan.whole_batches = training;
    plan.buckets = data::best_buckets(sizes, plan.length, most_query_buckets);
    return data::bucket_plan(std::move(lengths), plan);
  }

  std::string text(std::span<const Array> row) const override {
    // The first row of the query: of all there would be too much to read.
    std::vector<Array> first;
    for (const Array& array : row) {
      Array own(array.dtype(), Shape{array.shape().back()});
      std::memcpy(own.data(), array.data(), static_cast<size_t>(own.bytes()));
      first.push_back(std::move(own));
    }
    return "its first row: " + TableInput::text(first);
  }

 private:
  int64_t longest_;
  mutable int64_t rows_ = 0;
  mutable std::string sizes_;  // of what the part made last is made of
};

void require_groups(const Section& section, const Reading& reading) {
  if (reading.samples->count() > 0 && reading.samples->rows(0).table) return;
  fail<InputError>(
      "{}.kind = \"queries\": its samples are rows that belong together; say which column tells that, as "
      "data.group = \"query\"",
      input_key(section));
}

std::unique_ptr<Input> learn_queries(const Section& section, const Reading& reading) {
  require_groups(section, reading);
  Reading rows = reading;
  rows.samples = data::rows_of(*reading.samples);
  const std::vector<int64_t> sizes = data::group_sizes(*reading.samples);
  return std::make_unique<QueriesInput>(section, learn_table(section, rows),
                                        *std::max_element(sizes.begin(), sizes.end()));
}

std::unique_ptr<Input> load_queries(const Section& section, const std::string& encoding) {
  return read_encoding(encoding, input_key(section), [&](const nlohmann::json& json) {
    return std::make_unique<QueriesInput>(section,
                                          data::TableEncoder::parse(json.at("columns").get<std::string>()),
                                          json.at("longest").get<int64_t>());
  });
}

}  // namespace

MILLRACE_INPUT(queries){
    .name = "queries",
    .doc = "rows of a table that belong together (data.group), as the documents of a query",
    .unit = "queries",
    .groups = true,
    .settings = table_settings(),
    .as_written = "categories",
    .left_out = "leave_out",
    .recognise = [](const data::Dataset& samples,
                    const std::vector<std::string>& taken) -> std::vector<std::string> {
      if (samples.count() == 0 || !samples.rows(0).table) return {};
      return table_columns(samples, taken);
    },
    .rank = 40,
    .check = check_table,
    .learn = learn_queries,
    .load = load_queries,
    .draft =
        [](const data::Dataset& samples, const std::vector<std::string>& columns) {
          return draft_table(*data::rows_of(samples), columns);
        },
};

}  // namespace millrace::task
