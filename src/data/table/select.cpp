#include "data/table/select.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <numeric>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"
#include "data/table/column_values.h"
#include "data/table/index.h"
#include "data/table/query_truth.h"
#include "data/table/view.h"

namespace millrace::data {
namespace {

/// The condition with its columns found in one index.
class Bound {
 public:
  Bound(const Query& query, const Index& index, const std::map<std::string, std::string>& names,
        const Dataset& dataset)
      : query_(query), cells_(query.nodes().size()), columns_(query.nodes().size()) {
    for (size_t n = 0; n < query.nodes().size(); ++n) {
      for (const Query::Operand& operand : query.nodes()[n].operands) {
        const bool column = operand.what == Query::Operand::What::column;
        columns_[n].push_back(column ? index.small(names.at(operand.text)) : nullptr);
        if (column && !columns_[n].back())
          query.fail_at(operand.at,
                        fmt::format("the samples have no '{}' that can be asked for", operand.text));
        cells_[n].push_back(constant_cell(operand));
      }
      name_classes(n, names, dataset);
    }
    check();
  }

  Truth operator()(int64_t i) {
    return evaluate(query_, query_.nodes().size() - 1,
                    [&](size_t node, size_t operand) { return cell(node, operand, i); });
  }

 private:
  /// Numbers of classes that have names may be asked for by these.
  void name_classes(size_t n, const std::map<std::string, std::string>& names, const Dataset& dataset) {
    const Query::Node& node = query_.nodes()[n];
    if (node.comparison == "like") return;
    std::vector<std::string> classes;
    for (size_t k = 0; k < node.operands.size(); ++k)
      if (columns_[n][k] && columns_[n][k]->column.kind == ColumnKind::integer)
        if (const auto column = dataset.find_column(names.at(node.operands[k].text)))
          classes = dataset.class_names(*column);
    for (size_t k = 0; k < node.operands.size() && !classes.empty(); ++k)
      if (node.operands[k].what == Query::Operand::What::text) {
        const auto at = std::find(classes.begin(), classes.end(), node.operands[k].text);
        if (at == classes.end())
          query_.fail_at(node.operands[k].at,
                         fmt::format("there is no class '{}'{}", node.operands[k].text,
                                     did_you_mean_or_list(node.operands[k].text, classes)));
        cells_[n][k] = static_cast<int64_t>(at - classes.begin());
      }
  }
  /// Numbers are compared with numbers, texts with texts.
  void check() const {
    for (size_t n = 0; n < cells_.size(); ++n) {
      const auto& operands = query_.nodes()[n].operands;
      const auto is_text = [&](size_t k) {
        return columns_[n][k] ? columns_[n][k]->column.kind == ColumnKind::text
                              : std::holds_alternative<std::string_view>(cells_[n][k]);
      };
      for (size_t k = 1; k < operands.size(); ++k) {
        if (is_text(k) == is_text(0)) continue;
        const size_t column = columns_[n][0] ? 0 : 1, other = columns_[n][0] ? k : 0;
        query_.fail_at(operands[other].at,
                       is_text(column)
                           ? fmt::format("'{}' holds texts; write the text in quotes", operands[column].text)
                           : fmt::format("'{}' holds numbers; this is a text", operands[column].text));
      }
    }
  }

  Cell cell(size_t node, size_t k, int64_t i) const {
    const Index::Small* small = columns_[node][k];
    if (!small) return cells_[node][k];
    const auto at = static_cast<size_t>(i);
    if (small->column.kind == ColumnKind::text) {
      if (small->codes[at] == Index::no_text) return {};
      return Index::text(*small, small->codes[at]);
    }
    if (!small->present.empty() && (small->present[at / 8] >> (at % 8) & 1) == 0) return {};
    if (small->column.kind == ColumnKind::real) return std::bit_cast<double>(small->numbers[at]);
    return static_cast<int64_t>(small->numbers[at]);
  }

  const Query& query_;
  std::vector<std::vector<Cell>> cells_;
  std::vector<std::vector<const Index::Small*>> columns_;
};

/// What the names of the condition are called in the data: "label" may be cls.
std::map<std::string, std::string> resolve(const Dataset& dataset, const Query& query) {
  const std::vector<std::string> known = small_names(dataset);
  const auto has = [&](std::string_view name) { return contains(known, name); };
  std::map<std::string, std::string> names;
  for (const Query::Node& node : query.nodes())
    for (const Query::Operand& operand : node.operands) {
      if (operand.what != Query::Operand::What::column) continue;
      std::string name = operand.text;
      if (name == "label" && !has(name))
        for (const char* other : {"cls", "class", "target"})
          if (!has(name) && has(other)) name = other;
      if (!has(name)) {
        if (const auto found = dataset.find_column(name))
          query.fail_at(operand.at,
                        fmt::format("'{}' holds {} values, which cannot be compared; there are: {}", name,
                                    kind_name(dataset.columns()[*found].kind), fmt::join(known, ", ")));
        std::string best = near(name, known);
        // What stands for it, of a label that is misspelt.
        if (best.empty() && is_near(name, "label"))
          for (const char* other : {"cls", "class", "target"})
            if (best.empty() && has(other)) best = other;
        query.fail_at(operand.at, fmt::format("there is no column '{}'{} There are: {}", name,
                                              best.empty() ? "." : fmt::format("; did you mean '{}'?", best),
                                              fmt::join(known, ", ")));
      }
      names[operand.text] = name;
    }
  return names;
}

class Selection final : public View {
 public:
  Selection(std::shared_ptr<const Dataset> whole, std::vector<int64_t> samples)
      : View(std::move(whole)), samples_(std::move(samples)) {}
  int64_t count() const override { return static_cast<int64_t>(samples_.size()); }

  /// By runs of the whole: samples that are near each other there are read together, with what lies between.
  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    constexpr int64_t near = 16, longest = 1024;
    std::vector<int64_t> samples(static_cast<size_t>(count));
    for (int64_t k = 0; k < count; ++k) samples[static_cast<size_t>(k)] = at(first + k);
    std::vector<size_t> order(samples.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (!std::is_sorted(samples.begin(), samples.end()))
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return samples[a] < samples[b]; });
    if (samples.empty()) return whole().read_run(0, 0, columns, values);
    std::vector<ColumnValues> read;
    std::vector<std::pair<size_t, size_t>> places;
    for (size_t k = 0; k < order.size();) {
      const int64_t begin = samples[order[k]];
      int64_t end = begin;
      const bool none_yet = k == 0;
      places.clear();
      for (; k < order.size(); ++k) {
        const int64_t sample = samples[order[k]];
        if (sample - end > near || sample - begin >= longest) break;
        end = sample + 1;
        places.emplace_back(sample - begin, order[k]);
      }
      if (!whole().read_run(begin, end - begin, columns, read)) return false;
      if (none_yet) {
        values.resize(columns.size());
        for (size_t c = 0; c < columns.size(); ++c) start_values(values[c], read[c].kind, samples.size());
      }
      for (size_t c = 0; c < columns.size(); ++c) put_values(read[c], places, values[c]);
    }
    return true;
  }

 private:
  int64_t at(int64_t index) const override { return samples_.at(static_cast<size_t>(index)); }
  std::vector<int64_t> samples_;
};

class Slice final : public View {
 public:
  Slice(std::shared_ptr<const Dataset> whole, int64_t first, int64_t count)
      : View(std::move(whole)), first_(first), count_(count) {}
  int64_t count() const override { return count_; }
  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    return whole().read_run(first_ + first, count, columns, values);
  }

 private:
  int64_t at(int64_t index) const override { return first_ + index; }
  int64_t first_, count_;
};

}  // namespace

std::vector<int64_t> matching(const Dataset& dataset, const Query& query) {
  const auto names = resolve(dataset, query);
  std::set<std::string> wanted;
  for (const auto& [written, name] : names) wanted.insert(name);
  std::vector<int64_t> samples;
  int64_t first = 0;
  for (const auto& index : indices_for(dataset, wanted)) {
    Bound bound(query, *index, names, dataset);
    for (int64_t i = 0; i < index->count(); ++i)
      if (bound(i) == Truth::yes) samples.push_back(first + i);
    first += index->count();
  }
  return samples;
}

std::vector<int64_t> chosen(const Dataset& dataset, const Query& query) {
  std::vector<int64_t> samples = matching(dataset, query);
  if (!samples.empty()) return samples;
  for (const Column& column : dataset.columns())
    if (query.text() == has_a_value(column.name))
      fail<InputError>("{}: the column '{}' has no value in any sample; choose another one", dataset.path(),
                       column.name);
  fail<InputError>("{}: no sample matches the condition {}", dataset.path(), query.text());
}

void require_set(const std::shared_ptr<const Dataset>& dataset) {
  if (!dataset) fail<InputError>("the data set is none: its pointer is null");
}

std::shared_ptr<const Dataset> select(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> samples) {
  require_set(dataset);
  for (const int64_t sample : samples)
    if (sample < 0 || sample >= dataset->count())
      fail<InputError>("{}: there is no sample {}, only {}", dataset->path(), sample, dataset->count());
  return std::make_shared<Selection>(std::move(dataset), std::move(samples));
}

std::shared_ptr<const Dataset> where(std::shared_ptr<const Dataset> dataset, std::string_view condition) {
  require_set(dataset);
  std::vector<int64_t> samples = chosen(*dataset, Query::parse(condition));
  return select(std::move(dataset), std::move(samples));
}

std::shared_ptr<const Dataset> slice(std::shared_ptr<const Dataset> dataset, int64_t first, int64_t count) {
  require_set(dataset);
  if (first < 0 || count < 0 || first > dataset->count() - count)
    fail<InputError>("{}: there are no {} samples from {} on, only {}", dataset->path(), count, first,
                     dataset->count());
  return std::make_shared<Slice>(std::move(dataset), first, count);
}

std::shared_ptr<const Dataset> sample_of(std::shared_ptr<const Dataset> dataset, int64_t count) {
  const int64_t all = dataset->count();
  if (count >= all) return dataset;
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(i * all / count);
  return select(std::move(dataset), std::move(samples));
}

}  // namespace millrace::data
