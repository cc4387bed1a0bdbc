#include "data/table/join.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/format.h"
#include "data/table/column_values.h"

namespace millrace::data {
namespace {

bool by_name(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text) {
    return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (number(a) && number(b) && std::stol(a) != std::stol(b)) return std::stol(a) < std::stol(b);
  return a < b;
}

class Joined final : public Dataset {
 public:
  using Sets = std::vector<std::pair<std::string, std::shared_ptr<const Dataset>>>;

  explicit Joined(Sets sets) : Dataset(names_of(sets)), sets_(std::move(sets)) {
    std::vector<std::string> notes;
    const bool classes = std::all_of(
        sets_.begin(), sets_.end(), [](const auto& each) { return each.second->class_column().has_value(); });
    for (const auto& [name, set] : sets_) {
      first_.push_back(count_);
      count_ += set->count();
      for (const std::string& note : set->notes()) notes.push_back(note);
      add_columns(*set, classes);
    }
    set_origin(sets_[0].second->format(), std::move(notes));
    if (classes) join_classes();
  }

  int64_t count() const override { return count_; }
  Value read(int64_t index, size_t column) const override {
    const auto [set, at] = place(index);
    const auto own = own_.at(set).at(column);
    if (!own) return {};
    Value value = sets_[set].second->read(at, *own);
    if (column == class_column_ && !labels_.empty())
      value = labels_[set].at(static_cast<size_t>(std::get<int64_t>(value)));
    return as_kind(std::move(value), columns_[column].kind);
  }
  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& values) const override {
    std::vector<Part> parts;
    for (int64_t done = 0; done < count;) {
      const auto [set, at] = place(first + done);
      const int64_t rows = std::min(count - done, sets_[set].second->count() - at);
      parts.push_back(Part{set, static_cast<size_t>(done), static_cast<size_t>(rows), {}, {}});
      if (!read_part(parts.back(), at, columns)) return false;
      done += rows;
    }
    values.resize(columns.size());
    for (size_t k = 0; k < columns.size(); ++k) {
      start_values(values[k], columns_.at(columns[k]).kind, static_cast<size_t>(count));
      for (const Part& part : parts) put_part(part, k, values[k]);
    }
    return true;
  }
  bool has(int64_t index, size_t column) const override {
    const auto [set, at] = place(index);
    const auto own = own_.at(set).at(column);
    return own && sets_[set].second->has(at, *own);
  }
  bool decimal_comma(size_t column) const override {
    for (size_t set = 0; set < sets_.size(); ++set)
      if (const auto own = own_[set].at(column)) return sets_[set].second->decimal_comma(*own);
    return false;
  }
  SampleRows rows(int64_t index) const override {
    const auto [set, at] = place(index);
    return sets_[set].second->rows(at);
  }
  std::vector<std::string> class_names(size_t column) const override {
    if (column == class_column_) return classes_;
    const auto own = own_[0].at(column);
    return own ? sets_[0].second->class_names(*own) : std::vector<std::string>();
  }
  std::optional<size_t> class_column() const override { return class_column_; }
  std::string name(int64_t index) const override {
    const auto [set, at] = place(index);
    return fmt::format("{}: {}", sets_[set].first, sets_[set].second->name(at));
  }
  void will_read(int64_t index) const override {
    const auto [set, at] = place(index);
    sets_[set].second->will_read(at);
  }
  void verify(int64_t index) const override {
    const auto [set, at] = place(index);
    sets_[set].second->verify(at);
  }

 private:
  static std::string names_of(const Sets& sets) {
    std::string path;
    for (const auto& [name, set] : sets) path += (path.empty() ? "" : ", ") + name;
    return path;
  }

  /// Its columns among those of all: by name, where numbers of one may be whole and texts of another look
  /// like numbers; those of classes are one whatever they are called.
  void add_columns(const Dataset& set, bool classes) {
    std::vector<std::optional<size_t>> own(columns_.size());
    for (size_t c = 0; c < set.columns().size(); ++c) {
      const bool is_class = classes && c == set.class_column();
      if (is_class && class_column_) {
        own[*class_column_] = c;
        continue;
      }
      if (is_class) class_column_ = columns_.size();
      const Column& column = set.columns()[c];
      const auto same = [&](const Column& other) {
        const bool is_classes = class_column_ && &other == &columns_[*class_column_];
        return other.name == column.name && !is_classes &&
               (other.kind == column.kind || (is_tabular(other.kind) && is_tabular(column.kind)));
      };
      const auto found = is_class ? columns_.end() : std::find_if(columns_.begin(), columns_.end(), same);
      if (found != columns_.end()) {
        found->kind = kind_of_both(found->kind, column.kind);
        own[static_cast<size_t>(found - columns_.begin())] = c;
        continue;
      }
      columns_.push_back(column);
      for (auto& earlier : own_) earlier.emplace_back();
      own.emplace_back(c);
    }
    own_.push_back(std::move(own));
  }

  void join_classes() {
    const auto names = [&](size_t set) {
      const Dataset& of = *sets_[set].second;
      return of.class_names(*of.class_column());
    };
    classes_ = names(0);
    bool same = true;
    for (size_t set = 1; set < sets_.size(); ++set) same &= names(set) == classes_;
    if (same) return;
    std::set<std::string, bool (*)(const std::string&, const std::string&)> all(&by_name);
    for (size_t set = 0; set < sets_.size(); ++set)
      for (std::string& name : names(set)) all.insert(std::move(name));
    classes_.assign(all.begin(), all.end());
    for (size_t set = 0; set < sets_.size(); ++set) {
      auto& own = labels_.emplace_back();
      for (const std::string& name : names(set))
        own.push_back(std::lower_bound(classes_.begin(), classes_.end(), name, by_name) - classes_.begin());
    }
  }

  /// Rows of one set.
  struct Part {
    size_t set = 0, begin = 0, rows = 0;
    std::vector<std::optional<size_t>> own;  // of each column that is asked for: its place in `values`
    std::vector<ColumnValues> values;
  };

  bool read_part(Part& part, int64_t at, std::span<const size_t> columns) const {
    const Dataset& set = *sets_[part.set].second;
    std::vector<size_t> there;
    for (const size_t column : columns) {
      const auto own = own_[part.set].at(column);
      part.own.push_back(own ? std::optional(there.size()) : std::nullopt);
      if (!own) continue;
      const ColumnKind kind = set.columns()[*own].kind, all = columns_[column].kind;
      if (kind != all && !(is_numeric(kind) && is_numeric(all))) return false;
      there.push_back(*own);
    }
    if (!set.read_run(at, static_cast<int64_t>(part.rows), there, part.values)) return false;
    for (size_t k = 0; k < columns.size(); ++k) {
      if (!part.own[k] || columns_[columns[k]].kind != ColumnKind::real) continue;
      ColumnValues& values = part.values[*part.own[k]];
      if (values.kind == ColumnKind::integer)
        values.reals.assign(values.integers.begin(), values.integers.end());
      values.kind = ColumnKind::real;
    }
    for (size_t k = 0; k < columns.size() && !labels_.empty(); ++k)
      if (columns[k] == class_column_)
        for (int64_t& label : part.values[*part.own[k]].integers)
          label = labels_[part.set].at(static_cast<size_t>(label));
    return true;
  }

  static void put_part(const Part& part, size_t column, ColumnValues& to) {
    if (!part.own[column]) {
      if (to.present.empty()) to.present.assign(to.size(), 1);
      std::fill_n(to.present.begin() + static_cast<std::ptrdiff_t>(part.begin), part.rows, uint8_t{0});
      return;
    }
    std::vector<std::pair<size_t, size_t>> places;
    for (size_t i = 0; i < part.rows; ++i) places.emplace_back(i, part.begin + i);
    put_values(part.values[*part.own[column]], places, to);
  }

  std::pair<size_t, int64_t> place(int64_t index) const {
    const auto set =
        static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), index) - first_.begin()) - 1;
    return {set, index - first_[set]};
  }

  Sets sets_;
  std::vector<int64_t> first_;
  std::vector<std::vector<std::optional<size_t>>> own_;  // of each set and column of all: its own column
  std::optional<size_t> class_column_;
  std::vector<std::string> classes_;
  std::vector<std::vector<int64_t>> labels_;  // of each set, where classes differ
  int64_t count_ = 0;
};

}  // namespace

std::shared_ptr<const Dataset> join(
    std::vector<std::pair<std::string, std::shared_ptr<const Dataset>>> sets) {
  if (sets.empty()) fail<InternalError>("no data sets to join");
  return std::make_shared<Joined>(std::move(sets));
}

}  // namespace millrace::data
