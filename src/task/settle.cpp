#include "task/settle.h"

#include <algorithm>
#include <climits>

#include "base/contains.h"
#include "base/format.h"
#include "base/suggest.h"
#include "data/table/contents.h"
#include "data/table/group.h"
#include "data/table/split.h"
#include "task/output.h"
#include "task/recipe_sections.h"

namespace millrace::task {
namespace {

std::vector<std::string> columns_of(const Section& section) {
  std::vector<std::string> columns = texts_of(section, "column");
  for (std::string& column : texts_of(section, "columns")) columns.push_back(std::move(column));
  return columns;
}

/// Names one column for a section that names none.
void name_column(Section& section, const std::string& column) { section.items["column"] = {column, ""}; }

void require_columns(const data::Dataset& samples, const Section& section, const std::string& key) {
  for (const char* name : {"column", "columns"})
    for (const std::string& column : texts_of(section, name)) {
      if (samples.find_column(column)) continue;
      const auto item = section.items.find(name);
      const std::string where = item == section.items.end() ? "" : item->second.where;
      std::vector<std::string> names;
      for (const data::Column& each : samples.columns()) names.push_back(each.name);
      fail<InputError>("{}{}{} names the column '{}', which {} does not have{} ({})", where,
                       where.empty() ? "" : ": ", key, column, samples.path(), did_you_mean(column, names),
                       fmt::join(names, ", "));
    }
}

/// What an input names is not to be what an output predicts.
void refuse_targets(const Recipe& recipe, const Section& input) {
  for (const std::string& column : columns_of(input))
    for (const Section& output : recipe.outputs) {
      const std::vector<std::string> targets = columns_of(output);
      if (contains(targets, column))
        fail<InputError>(
            "{} names the column '{}', which is the target of {}: the model would be told what it is to "
            "predict; leave it out of the input's columns",
            input_key(input), column, output_key(output));
    }
}

template <typename Kind>
std::vector<const Kind*> by_rank(const Registry<Kind>& kinds) {
  std::vector<const Kind*> sorted = kinds.all();
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Kind* a, const Kind* b) { return a->rank > b->rank; });
  return sorted;
}

// ---- outputs

/// The kind whose targets all these columns can be.
std::string kind_of_targets(const data::Dataset& samples, const std::vector<std::string>& columns,
                            const std::string& key) {
  std::vector<std::string> reasons;
  for (const OutputKind* kind : by_rank(output_kinds())) {
    const std::vector<std::string> keys = [&] {
      std::vector<std::string> names;
      for (const Setting& setting : kind->settings) names.push_back(setting.name);
      return names;
    }();
    std::string why;
    if (columns.size() > 1 && !contains(keys, "columns")) why = "it has one column";
    for (const std::string& column : columns)
      if (why.empty()) why = kind->refuses(samples, column);
    if (why.empty()) return kind->name;
    reasons.push_back(fmt::format("{}: {}", kind->name, why));
  }
  fail<InputError>("{}: no kind of output takes {} of {} ({})", key, fmt::join(columns, ", "), samples.path(),
                   fmt::join(reasons, "; "));
}

/// Others are not to take it. Where an input gives the targets, no column does.
void name_found_column(Section& output, const OutputKind& kind, const data::Dataset& samples,
                       const std::string& column) {
  if (!column.empty() && kind.refuses(samples, column).empty()) name_column(output, column);
}

/// The kind of an output whose targets an input makes: this one, or where its kind is open, any.
std::string kind_of_input_targets(const Recipe& recipe, const std::string& name) {
  for (const Section& input : recipe.inputs)
    if (const InputKind* kind = input_kinds().find(input.kind);
        kind && input.name == name && !kind->targets.empty())
      return kind->targets;
  for (const InputKind* kind : input_kinds().all())
    if (!kind->targets.empty()) return kind->targets;
  fail<InputError>("no kind of input makes targets that an output could predict");
}

/// Do samples have nothing but these columns, and names?
bool has_only(const data::Dataset& samples, const std::vector<std::string>& columns) {
  return std::all_of(samples.columns().begin(), samples.columns().end(), [&](const data::Column& column) {
    return column.name == "__key__" || contains(columns, column.name);
  });
}

/// By the data alone: the surest kind that finds a column.
std::string found_kind(const Recipe& recipe, Section& output, const data::Dataset& samples) {
  for (const Section& input : recipe.inputs)
    if (const InputKind* kind = input_kinds().find(input.kind); kind && !kind->targets.empty())
      return kind->targets;
  for (const OutputKind* kind : by_rank(output_kinds())) {
    const std::string column = kind->recognise(samples);
    if (column.empty()) continue;
    name_found_column(output, *kind, samples, column);
    return kind->name;
  }
  // A corpus, of which nothing but what an input makes of it can be predicted. In a table that has other
  // columns, too, it is one of these that somebody wants.
  std::string of_an_input;
  if (recipe.inputs.size() == 1 && recipe.inputs[0].kind.empty())
    for (const InputKind* kind : by_rank(input_kinds())) {
      if (kind->targets.empty()) continue;
      const std::vector<std::string> columns = kind->recognise(samples, {});
      if (columns.empty()) continue;
      if (has_only(samples, columns)) return kind->targets;
      if (of_an_input.empty())
        of_an_input = fmt::format(" (or what {} has by itself, {}: input.kind = \"{}\")", columns[0],
                                  kind->targets, kind->name);
    }
  if (const std::string why = samples.lacks(); !why.empty())
    fail<InputError>("{}; or name what else is to be predicted, as {}.column (there are {})", why,
                     output_key(output), data::columns_text(samples));
  fail<InputError>(
      "{}: what is to be predicted? No column is called as targets usually are: name it, as {}.column; there "
      "are {}{}",
      samples.path(), output_key(output), data::columns_text(samples), of_an_input);
}

void settle_output(const Recipe& recipe, Section& output, const data::Dataset& samples) {
  const std::string key = output_key(output);
  const bool of_input = !texts_of(output, "of").empty();
  if (!of_input && columns_of(output).empty() && !output.name.empty() && samples.find_column(output.name))
    name_column(output, output.name);
  std::string kind = output.kind;
  if (!kind.empty() && !of_input && columns_of(output).empty()) {
    const OutputKind& known = output_kinds().at(kind);
    name_found_column(output, known, samples, known.recognise(samples));
  } else if (kind.empty() && of_input) {
    kind = kind_of_input_targets(recipe, texts_of(output, "of")[0]);
  } else if (kind.empty()) {
    require_columns(samples, output, key);
    const std::vector<std::string> columns = columns_of(output);
    kind = columns.empty() ? found_kind(recipe, output, samples) : kind_of_targets(samples, columns, key);
  }
  settle_section(SectionType::output, output, key, kind);
}

// ---- inputs

std::vector<std::string> all_but(const data::Dataset& samples, const std::vector<std::string>& some) {
  std::vector<std::string> others;
  for (const data::Column& column : samples.columns())
    if (!contains(some, column.name)) others.push_back(column.name);
  return others;
}

void add_columns(std::vector<std::string>& to, const std::vector<std::string>& columns) {
  for (const std::string& column : columns)
    if (!contains(to, column)) to.push_back(column);
}

/// The kind of an input that says none, and what it would take.
std::pair<const InputKind*, std::vector<std::string>> kind_of_input(const Section& input,
                                                                    const data::Dataset& samples,
                                                                    const std::vector<std::string>& taken) {
  const std::vector<std::string> own = columns_of(input);
  for (const InputKind* kind : by_rank(input_kinds())) {
    std::vector<std::string> columns = kind->recognise(samples, own.empty() ? taken : all_but(samples, own));
    if (!columns.empty()) return {kind, std::move(columns)};
  }
  fail<InputError>("{}: no kind of input ({}) fits {}; {} has the columns {}{}", input_key(input),
                   fmt::join(input_kinds().names(), ", "),
                   own.empty() ? "its data" : fmt::format("{}", fmt::join(own, ", ")), samples.path(),
                   data::columns_text(samples),
                   taken.empty() ? ""
                                 : fmt::format(" ({} of them taken by outputs, weights or other inputs: {})",
                                               taken.size(), fmt::join(taken, ", ")));
}

/// A column that was named before the kind was known is one of the kind's columns, where it takes several.
void use_columns(Section& input, const std::string& kind) {
  const auto column = input.items.find("column");
  const Settings known(section_settings(SectionType::input, kind));
  if (column == input.items.end() || known.find("column") || !known.find("columns")) return;
  input.items.emplace("columns", column->second);
  input.items.erase(column);
}

}  // namespace

void settle_outputs(Recipe& recipe, const data::Dataset& samples) {
  if (const std::string& weight = recipe.data.sample_weight; !weight.empty()) {
    const data::ColumnKind kind = samples.columns()[samples.column(weight)].kind;
    if (!data::is_numeric(kind))
      fail<InputError>("data.sample_weight = \"{}\": the column holds {}s, weights are numbers", weight,
                       data::kind_name(kind));
  }
  for (Section& output : recipe.outputs) settle_output(recipe, output, samples);
}

std::vector<std::string> taken_columns(const Recipe& recipe) {
  std::vector<std::string> taken;
  for (const Section& output : recipe.outputs) add_columns(taken, columns_of(output));
  if (!recipe.data.sample_weight.empty()) add_columns(taken, {recipe.data.sample_weight});
  if (!recipe.baseline.human.empty()) add_columns(taken, {recipe.baseline.human});
  if (const std::string group = group_column(recipe); !group.empty()) add_columns(taken, {group});
  if (!recipe.data.group.empty()) add_columns(taken, {recipe.data.group});
  return taken;
}

std::string group_column(const Recipe& recipe) {
  const data::SplitBy by = data::SplitBy::parse(recipe.data.test_by);
  return by.how == data::SplitBy::How::group ? by.column : "";
}

std::string group_of(const Recipe& recipe, const data::Dataset& rows) {
  if (const std::string& group = recipe.data.group; !group.empty()) {
    (void)rows.column(group);
    return group;
  }
  const auto of_groups = [](const Section& output) {
    const OutputKind* const kind = output_kinds().find(output.kind);
    return kind && kind->groups;
  };
  Recipe settled = recipe;
  for (Section& output : settled.outputs)
    if (output.kind.empty()) try {
        settle_output(settled, output, rows);
      } catch (const InputError&) {
        // Said where it is settled for good.
      }
  const auto found = std::find_if(settled.outputs.begin(), settled.outputs.end(), of_groups);
  if (found == settled.outputs.end()) return {};
  const std::string column = data::query_column(rows);
  if (column.empty())
    fail<InputError>(
        "{}.kind = \"{}\" puts the rows of a query in order: which column of {} says what query a row is of? "
        "Set data.group to it; there are {}",
        output_key(*found), found->kind, rows.path(), data::columns_text(rows));
  return column;
}

void check_groups(const Recipe& recipe) {
  const std::string& group = recipe.data.group;
  // The kind that is of rows that belong together, for messages.
  const auto grouping = [](const auto& kinds) -> std::string {
    const auto all = kinds.all();
    const auto found = std::find_if(all.begin(), all.end(), [](const auto* kind) { return kind->groups; });
    return found == all.end() ? std::string() : std::string((*found)->name);
  };
  const std::string input_of_groups = grouping(input_kinds()), output_of_groups = grouping(output_kinds());
  const auto check = [&](bool groups, const std::string& key, const std::string& kind,
                         const std::string& other) {
    if (groups && group.empty())
      fail<InputError>(
          "{}.kind = \"{}\" is of rows that belong together: say which column tells that, as data.group = "
          "\"query\"",
          key, kind);
    if (!groups && !group.empty())
      fail<InputError>(
          "data.group = \"{0}\" makes a sample of several rows, and {1}.kind = \"{2}\" is of single ones: "
          "set {1}.kind = \"{3}\", or leave data.group out",
          group, key, kind, other);
  };
  for (const Section& input : recipe.inputs)
    check(input_kinds().at(input.kind).groups, input_key(input), input.kind, input_of_groups);
  for (const Section& output : recipe.outputs)
    check(output_kinds().at(output.kind).groups, output_key(output), output.kind, output_of_groups);
}

std::vector<std::vector<std::string>> settle_inputs(Recipe& recipe, const data::Dataset& samples,
                                                    const std::vector<std::string>& taken) {
  const bool several = recipe.inputs.size() > 1;
  std::vector<std::vector<std::string>> others(recipe.inputs.size(), taken);
  const auto take = [&](size_t by, const std::vector<std::string>& columns) {
    for (size_t i = 0; i < others.size(); ++i)
      if (i != by) add_columns(others[i], columns);
  };
  std::vector<size_t> open;  // whose columns the recipe does not name
  for (size_t i = 0; i < recipe.inputs.size(); ++i) {
    Section& input = recipe.inputs[i];
    if (several && columns_of(input).empty() && samples.find_column(input.name) &&
        (input.kind.empty() || input.settings.find("column")))
      name_column(input, input.name);
    const std::vector<std::string> own = columns_of(input);
    require_columns(samples, input, input_key(input));
    refuse_targets(recipe, input);
    if (own.empty())
      open.push_back(i);
    else
      take(i, own);
  }
  // Those that are surest of what is theirs choose first: of a table is what others leave.
  const auto rank = [&](size_t i) {
    const std::string& kind = recipe.inputs[i].kind;
    return kind.empty() ? INT_MAX : input_kinds().at(kind).rank;
  };
  std::stable_sort(open.begin(), open.end(), [&](size_t a, size_t b) { return rank(a) > rank(b); });
  for (const size_t i : open) {
    Section& input = recipe.inputs[i];
    if (!input.kind.empty()) {
      take(i, input_kinds().at(input.kind).recognise(samples, others[i]));
      continue;
    }
    auto [kind, columns] = kind_of_input(input, samples, others[i]);
    input.kind = kind->name;
    take(i, columns);
  }
  for (size_t i = 0; i < recipe.inputs.size(); ++i) {
    Section& input = recipe.inputs[i];
    std::string kind = input.kind;
    if (kind.empty()) {
      kind = kind_of_input(input, samples, others[i]).first->name;
      use_columns(input, kind);
    }
    settle_section(SectionType::input, input, input_key(input), kind);
  }
  return others;
}

void settle_rows(Recipe& recipe, bool streamed) {
  std::vector<Section*> deciding;
  const auto longest = [](const Section& input) {
    const InputKind& kind = input_kinds().at(input.kind);
    return kind.longest ? kind.longest(input) : 0;
  };
  for (Section& input : recipe.inputs)
    if (longest(input) > 0) deciding.push_back(&input);
  std::stable_sort(deciding.begin(), deciding.end(),
                   [&](const Section* a, const Section* b) { return longest(*a) > longest(*b); });
  const auto asked = std::find_if(deciding.begin(), deciding.end(), [&](const Section* input) {
    Section padded = *input;
    input_kinds().at(input->kind).pad(padded);
    return longest(padded) > 0;
  });
  if (!streamed && !deciding.empty()) deciding.erase(asked == deciding.end() ? deciding.begin() : asked);
  for (Section* input : deciding) input_kinds().at(input->kind).pad(*input);
}

void settle_model(Recipe& recipe, std::span<const std::unique_ptr<Input>> inputs) {
  Recipe::Model& model = recipe.model;
  const bool several = inputs.size() > 1;
  std::string kind = model.kind;
  if (kind.empty() && model.layers.empty()) kind = several ? "combine" : inputs[0]->architectures().at(0);
  settle_section(SectionType::model, model, "model", kind);
  if (!several) return;
  for (const auto& input : inputs) {
    Section& branch = model.branches[input->name()];
    branch.name = input->name();
    const bool layers = branch.items.contains("layers");
    const std::string network = branch.kind.empty() && !layers ? input->architectures().at(0) : branch.kind;
    settle_section(SectionType::branch, branch, "model." + branch.name, network);
  }
}

}  // namespace millrace::task
