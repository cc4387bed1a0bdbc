#include "task/draft_target.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/contains.h"
#include "base/format.h"
#include "base/words.h"
#include "data/table/column_values.h"
#include "data/table/dates.h"
#include "data/table/labels.h"
#include "data/table/read_columns.h"
#include "task/output.h"
#include "task/settle.h"

namespace millrace::task {
namespace {

constexpr const char* key_column_name = "__key__";

bool is_one_of(const std::string& name, std::initializer_list<const char*> words) {
  return contains(words, lower_case(name));
}

/// A column that is called as targets are; "" for none. First those that recipes without a column take, last
/// what may also be a place.
std::string named_target(const data::Dataset& samples) {
  const auto words = [](const std::string& name) {
    return is_one_of(name, {"price", "outcome", "score", "rating", "quality", "category", "survived",
                            "species", "diagnosis", "income", "value"});
  };
  const auto usual = [](const std::string& name) { return data::names_class(lower_case(name)); };
  const auto letter = [](const std::string& name) { return is_one_of(name, {"y"}); };
  for (const auto named : {+usual, +words, +letter})
    for (const data::Column& column : samples.columns())
      if (named(column.name)) return column.name;
  return {};
}

/// Rows of numbers and texts, of which any column but the keys could be the target; of the other columns
/// there is at least one.
bool is_plain_table(const data::Dataset& samples) {
  int64_t columns = 0;
  for (const data::Column& column : samples.columns()) {
    if (!data::is_tabular(column.kind)) return false;
    columns += column.name != key_column_name;
  }
  return columns > 1 && samples.columns().back().name != key_column_name;
}

/// Can nothing be learnt of this column, or nothing that anybody asks for: values that do not differ, dates,
/// texts that nearly all differ, numbers of the rows?
bool is_no_target(const data::Dataset& samples, size_t column) {
  constexpr int64_t least_rows = 20;  // of which values that all differ say something
  const int64_t count = std::min<int64_t>(samples.count(), 2000);
  const auto values = std::move(data::read_columns(samples, 0, count, {&column, 1})[0]);
  std::set<std::string> different;
  int64_t there = 0, dates = 0, steps = 0;
  std::optional<int64_t> last;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values.has(i)) continue;
    ++there;
    if (values.kind == data::ColumnKind::text) {
      const std::string_view text = values.contents[i];
      different.emplace(text);
      dates += data::is_date(text);
      continue;
    }
    different.insert(data::category_text(values, i));
    if (values.kind != data::ColumnKind::integer) continue;
    steps += last && values.integers[i] == *last + 1;
    last = values.integers[i];
  }
  const auto kinds = std::ssize(different);
  if (kinds < 2 || 2 * dates > there) return true;
  if (there < least_rows) return false;
  return steps == there - 1 || (values.kind == data::ColumnKind::text && 2 * kinds > there);
}

/// The last column that could be a target, else the last one.
std::string last_target(const data::Dataset& samples) {
  const std::vector<data::Column>& columns = samples.columns();
  for (size_t i = columns.size(); i-- > 0;)
    if (columns[i].name != key_column_name && !is_no_target(samples, i)) return columns[i].name;
  return columns.back().name;
}

/// Of what is said of pictures, sounds or the like the only column that could be a target; "" for none.
std::string only_other_target(const data::Dataset& samples) {
  bool contents = false;
  std::string found;
  for (size_t c = 0; c < samples.columns().size(); ++c) {
    const auto& [name, kind] = samples.columns()[c];
    const bool plain = data::is_tabular(kind);
    contents |= !plain;
    if (!plain || name == key_column_name || is_no_target(samples, c)) continue;
    if (!found.empty()) return {};
    found = name;
  }
  return contents ? found : "";
}

/// A target that the first kind which is able to makes of a column, and why; "" where none is.
std::string derive_target(Section& output, const data::Dataset& samples) {
  for (const OutputKind* kind : output_kinds().all()) {
    Section made;
    made.kind = kind->name;
    const std::string why = kind->derive ? kind->derive(made, samples) : "";
    if (why.empty()) continue;
    output = std::move(made);
    return why;
  }
  return {};
}

}  // namespace

std::string recognise_target(Recipe& recipe, const data::Dataset& samples) {
  Section& output = recipe.outputs[0];
  std::string column = named_target(samples), why;
  // What is called no target, but is all that could be a class, is as well a feature.
  if (column.empty() && is_plain_table(samples)) {
    column = last_target(samples);
    why = fmt::format("the last column{}: name another if that is not what you want",
                      column == samples.columns().back().name ? "" : " that says something");
  }
  if (column.empty()) {
    column = only_other_target(samples);
    if (!column.empty())
      why = "the only column that could be a target: name another if that is not what you want";
  }
  if (!column.empty()) output.set("column", column);
  try {
    settle_outputs(recipe, samples);
    if (output.kind == "class" && !output.settings.text("column").empty())  // says why folders are no classes
      (void)samples.class_names(samples.column(output.settings.text("column")));
    return why;
  } catch (const InputError&) {
    if (why = derive_target(output, samples); why.empty()) throw;
  }
  settle_outputs(recipe, samples);
  return why;
}

}  // namespace millrace::task
