#include "support/datasets.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include <millrace/error.h>

#include "base/digest.h"
#include "base/format.h"
#include "data/formats/formats.h"

namespace millrace::testing {

using namespace data;

void write_rows(DatasetWriter& writer, const Rows& rows) {
  for (const auto& row : rows) writer.add(row);
  writer.finish();
}

void write_rows(const std::string& format, const std::string& path, const std::vector<Column>& columns,
                const Rows& rows) {
  write_rows(*formats().at(format).create(path, columns), rows);
}

Rows read_rows(const Dataset& dataset) {
  Rows rows;
  for (int64_t i = 0; i < dataset.count(); ++i) {
    rows.emplace_back();
    for (size_t c = 0; c < dataset.columns().size(); ++c) rows.back().push_back(dataset.read(i, c));
  }
  return rows;
}

bool same(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (const auto* bytes = std::get_if<Bytes>(&a)) return bytes->text() == std::get<Bytes>(b).text();
  if (const auto* array = std::get_if<Array>(&a)) return array->identical(std::get<Array>(b));
  if (const auto* pixels = std::get_if<Pixels>(&a)) {
    const auto& other = std::get<Pixels>(b);
    return pixels->height == other.height && pixels->width == other.width &&
           pixels->channels == other.channels && pixels->bytes.text() == other.bytes.text();
  }
  if (const auto* real = std::get_if<double>(&a)) return *real == std::get<double>(b);
  if (const auto* integer = std::get_if<int64_t>(&a)) return *integer == std::get<int64_t>(b);
  if (const auto* text = std::get_if<std::string>(&a)) return *text == std::get<std::string>(b);
  return true;
}

std::string difference(const Rows& a, const Rows& b) {
  if (a.size() != b.size()) return fmt::format("{} rows and {}", a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size())
      return fmt::format("row {}: {} values and {}", i, a[i].size(), b[i].size());
    for (size_t c = 0; c < a[i].size(); ++c)
      if (!same(a[i][c], b[i][c]))
        return fmt::format("row {}, column {}: {} and {}", i, c, value_text(a[i][c], ColumnKind::bytes),
                           value_text(b[i][c], ColumnKind::bytes));
  }
  return "";
}

Value bytes_value(const std::string& content) {
  return Bytes(std::vector<uint8_t>(content.begin(), content.end()));
}

std::string read_all(const std::function<std::unique_ptr<Dataset>()>& open) {
  std::string problem;
  const auto attempt = [&](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      if (problem.empty()) problem = error.what();
    }
  };
  attempt([&] {
    const auto dataset = open();
    for (int64_t i = 0; i < std::min<int64_t>(dataset->count(), 1000); ++i) {
      attempt([&] { dataset->verify(i); });
      for (size_t c = 0; c < dataset->columns().size(); ++c) attempt([&] { (void)dataset->read(i, c); });
    }
  });
  return problem;
}

std::vector<Truth> cifar20(const std::string& real_data) {
  std::ifstream file(real_data + "/formats/cifar20.json");
  std::vector<Truth> list;
  for (const auto& entry : nlohmann::json::parse(file))
    list.push_back({entry["label"], entry["score"], entry["sha256"]});
  return list;
}

std::string sha256(const Value& bytes) { return *hex_digest("sha256", std::get<Bytes>(bytes).view()); }

}  // namespace millrace::testing
