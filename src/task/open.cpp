#include "task/open.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/format.h"
#include "base/suggest.h"
#include "data/io/location.h"
#include "data/table/elements.h"
#include "data/table/group.h"
#include "data/table/join.h"
#include "data/table/labels.h"
#include "data/table/part_of.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "data/table/split.h"
#include "task/input.h"
#include "task/recipe_sections.h"
#include "task/settle.h"

namespace millrace::task {
namespace {

using Set = std::shared_ptr<const data::Dataset>;
using NamedSets = std::vector<std::pair<std::string, Set>>;

/// Which samples of data.train are asked for.
enum class Wanted { training, tests };

bool has_columns(const data::Dataset& set, const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return set.find_column(name).has_value(); });
}

/// Is that one of the texts in its first row?
bool holds(const data::Dataset& set, const std::string& text) {
  for (size_t c = 0; c < set.columns().size(); ++c)
    if (const data::Value value = set.read(0, c); std::get_if<std::string>(&value))
      if (std::get<std::string>(value) == text) return true;
  return false;
}

/// A data set of the program, which only it can give.
Set given_set(const Recipe& recipe, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [given, set] : recipe.data.sets) {
    if (given == name && set) return set;
    if (set) names.push_back(given);
  }
  fail<InputError>(
      "set:{} is a data set of the program that the recipe is from, which must give it (in recipe.data.sets, "
      "or again as the sets of Run::resume and Run::open), and it is not given{}",
      name, did_you_mean_or_list(name, names));
}

/// What a text of [data] names: a data set of the program as it is, or one that is opened.
Set open_named(const Recipe& recipe, const std::string& text, const KnownColumns& known) {
  Set set;
  if (const auto name = set_name(text)) {
    set = given_set(recipe, *name);
  } else {
    const data::OpenOptions options = open_options(recipe, known.texts);
    set = with_names(open_set(text, options), expand(text), options, known.texts);
  }
  require_samples(*set);
  return data::spread_arrays(std::move(set), known.all);
}

/// What data.test_share keeps of a source, or what that leaves: of the samples that data.where leaves. At
/// random it goes by their numbers in the source, so that none changes sides with the condition.
std::vector<int64_t> shared_out(const Recipe::Data& data, const Set& source, std::vector<int64_t> samples,
                                Wanted wanted, const ClassesOf& classes) {
  const data::SplitBy by = data::SplitBy::parse(data.test_by);
  if (by.how == data::SplitBy::How::random) {
    const int64_t all = std::ssize(samples);
    std::erase_if(samples, [&](int64_t i) {
      return data::kept_for_test(i, data.test_share) != (wanted == Wanted::tests);
    });
    if (samples.empty())
      fail<InputError>("{}: of {} samples none are left to {} on; give data.test, or another data.test_share",
                       source->path(), all, wanted == Wanted::tests ? "test" : "train");
    return samples;
  }
  const Set among = data::select(source, samples);
  const data::SplitRule rule{
      {{"to train on", 1 - data.test_share}, {"to test on", data.test_share}}, by, 1, "data.where ="};
  try {
    std::vector<int64_t> labels;
    if (by.how == data::SplitBy::How::stratified) labels = classes(among);
    auto parts = data::split_samples(*among, rule, labels);
    for (int64_t& i : parts[wanted == Wanted::tests]) i = samples[static_cast<size_t>(i)];
    return parts[wanted == Wanted::tests];
  } catch (const InputError& error) {
    fail<InputError>("data.test_by = \"{}\": {}", data.test_by, error.what());
  }
}

/// One source of data.train, or what is kept of it.
Set open_source(const Recipe& recipe, const std::string& text, bool whole, Wanted wanted,
                const KnownColumns& known, const ClassesOf& classes) {
  const Recipe::Data& data = recipe.data;
  Set set = open_named(recipe, text, known);
  // data.test_where stands for itself: "split = 'train'" and "split = 'test'".
  if (data.test.empty() && !data.test_where.empty()) {
    set = data::where(set, wanted == Wanted::tests ? data.test_where : "not (" + data.test_where + ")");
    if (!data.where.empty() && wanted == Wanted::training) set = data::where(set, data.where);
    return in_groups(recipe, std::move(set));
  }
  const bool share = data.test.empty() && data.test_share > 0 && !whole;
  const bool groups = !group_of(recipe, *set).empty();
  if (groups || !share) {
    if (!data.where.empty()) set = data::where(set, data.where);
    set = in_groups(recipe, std::move(set));
  }
  if (!share) return set;
  std::vector<int64_t> samples(static_cast<size_t>(set->count()));
  std::iota(samples.begin(), samples.end(), 0);
  if (!groups && !data.where.empty()) samples = data::chosen(*set, data::Query::parse(data.where));
  samples = shared_out(data, set, std::move(samples), wanted, classes);
  return data::select(std::move(set), std::move(samples));
}

/// What data.sample takes of one source of so many samples in `all`.
Set part_of_set(const Recipe& recipe, Set set, int64_t all, const ClassesOf& strata) {
  const auto size = data::PartSize::parse(recipe.data.sample);
  const double share = static_cast<double>(size.of(all)) / static_cast<double>(std::max<int64_t>(all, 1));
  const data::PartSize own{share, 0};
  const data::SplitBy by = data::SplitBy::parse(recipe.data.test_by);
  const std::string group = by.how == data::SplitBy::How::group ? by.column : "";
  const std::vector<int64_t> kinds = strata && group.empty() ? strata(set) : std::vector<int64_t>();
  auto chosen =
      data::part_of(*set, own.of(set->count()), static_cast<uint64_t>(recipe.train.seed), kinds, group);
  return std::ssize(chosen) == set->count() ? set : data::select(std::move(set), std::move(chosen));
}

/// Numbers of classes mean the same in all sets only where no set has names of its own for them; else classes
/// are put together by their names.
void number_classes(NamedSets& sets) {
  bool all = true, differ = false;
  std::string name;
  for (const auto& [source, set] : sets) {
    const auto label = data::find_label(*set);
    all = all && label;
    if (!label) continue;
    const data::Column& column = set->columns()[*label];
    differ = differ || !set->class_names(*label).empty() || (!name.empty() && column.name != name);
    name = column.name;
  }
  if (!all || !differ) return;
  for (auto& [source, set] : sets) set = data::numbered(set, *data::find_label(*set));
}

Set joined(NamedSets sets) {
  number_classes(sets);
  return data::join(std::move(sets));
}

}  // namespace

Set open_set(const std::string& text, const data::OpenOptions& options) {
  const std::string path = expand(text);
  try {
    return data::open_dataset(path, options);
  } catch (const Error& error) {
    constexpr std::string_view variable = "${MILLRACE_DATA}";
    std::error_code ignored;
    if (text.find(variable) == std::string::npos || std::filesystem::exists(expand(variable), ignored)) throw;
    fail<InputError>(
        "{}; the folder {} (${{MILLRACE_DATA}}) does not exist: set MILLRACE_DATA to the folder that "
        "holds the data sets, which docs/data.md lists",
        error.what(), expand(variable));
  }
}

data::OpenOptions open_options(const Recipe& recipe, const std::vector<std::string>& texts) {
  data::OpenOptions options;
  if (!recipe.data.header.empty()) options.header = recipe.data.header == "yes";
  options.texts = texts;
  for (const Section& input : recipe.inputs)
    for (const InputKind* kind : input_kinds().all())
      if (!kind->as_written.empty() && (input.kind.empty() || input.kind == kind->name))
        for (std::string& column : texts_of(input, kind->as_written))
          options.texts.push_back(std::move(column));
  options.missing = recipe.data.missing;
  return options;
}

Set with_names(Set set, const std::string& path, data::OpenOptions options,
               const std::vector<std::string>& columns) {
  const bool reads_csv = set->format() == "csv" || set->format() == "folder";  // a table in it
  if (options.header || !reads_csv || has_columns(*set, columns)) return set;
  options.header = true;
  Set named;
  try {
    named = data::open_dataset(path, options);
  } catch (const InputError&) {
    // There is nothing behind the first line: is that because it has the names?
    if (std::any_of(columns.begin(), columns.end(), [&](const auto& name) { return holds(*set, name); }))
      throw;
  }
  return named && has_columns(*named, columns) ? named : set;
}

void require_samples(const data::Dataset& set) {
  if (set.count() == 0) fail<InputError>("{}: there are no samples", set.path());
}

Set in_groups(const Recipe& recipe, Set rows) {
  const std::string group = group_of(recipe, *rows);
  return group.empty() ? rows : data::grouped(std::move(rows), group);
}

TrainingSource open_training_source(const Recipe& recipe, bool whole, int64_t most, const ClassesOf& classes,
                                    const ClassesOf& strata) {
  const bool several = !recipe.data.sources.empty();
  TrainingSource all;
  NamedSets sets;
  const auto open = [&](const std::string& name, const std::string& text) {
    sets.emplace_back(name, open_source(recipe, text, whole, Wanted::training, {}, classes));
    all.of += sets.back().second->count();
  };
  if (!several) open("", recipe.data.train);
  for (const auto& [name, text] : recipe.data.sources) open(name, text);
  for (auto& [name, set] : sets) {
    if (!recipe.data.sample.empty() && !whole) set = part_of_set(recipe, std::move(set), all.of, strata);
    if (most > 0) set = data::sample_of(std::move(set), most);
    if (several) all.parts.push_back(set->count());
  }
  all.samples = several ? joined(std::move(sets)) : sets[0].second;
  return all;
}

Set open_test_source(const Recipe& recipe, bool whole, const std::string& path, const KnownColumns& known,
                     const ClassesOf& classes) {
  const Recipe::Data& data = recipe.data;
  if (!path.empty() || !data.test.empty())
    return in_groups(recipe, open_named(recipe, path.empty() ? data.test : path, known));
  if (!has_tests(recipe)) return nullptr;
  if (data.sources.empty()) return open_source(recipe, data.train, whole, Wanted::tests, known, classes);
  NamedSets sets;
  for (const auto& [name, text] : data.sources)
    sets.emplace_back(name, open_source(recipe, text, whole, Wanted::tests, known, classes));
  return joined(std::move(sets));
}

Set open_unselected(const Reading& reading) {
  Recipe recipe = reading.recipe;
  Recipe::Data& data = recipe.data;
  const bool kept = data.test.empty() && (data.test_share > 0 || !data.test_where.empty());
  if ((!kept && data.where.empty() && data.sample.empty()) || reading.share != Reading::Share::all ||
      reading.streamed)
    return nullptr;
  const auto once = [](const std::string& text) { return data::is_piped(expand(text)); };
  if (once(data.train) || std::any_of(data.sources.begin(), data.sources.end(),
                                      [&](const auto& source) { return once(source.second); }))
    return nullptr;
  data.where = data.test_where = data.sample = "";
  data.test_share = 0;
  return open_training_source(recipe, true).samples;
}

std::vector<double> shares_of(const Recipe& recipe, const std::vector<int64_t>& parts) {
  std::vector<double> shares;
  for (const auto& [name, weight] : recipe.data.weights) shares.push_back(weight);
  return shares.empty() ? std::vector<double>(parts.begin(), parts.end()) : shares;
}

bool has_tests(const Recipe& recipe) {
  return !recipe.data.test.empty() || !recipe.data.test_where.empty() || recipe.data.test_share > 0;
}

}  // namespace millrace::task
