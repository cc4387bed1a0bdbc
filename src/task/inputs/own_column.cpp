#include "task/inputs/own_column.h"

#include <algorithm>
#include <vector>

#include "base/contains.h"
#include "base/format.h"
#include "data/table/contents.h"
#include "task/input.h"
#include "task/inputs/suiting.h"

namespace millrace::task {
namespace {

/// Whether a sample has contents in two of these columns. A few from all over the data are looked at.
bool beside_each_other(const data::Dataset& samples, const std::vector<std::string>& columns) {
  constexpr int64_t looks = 32;
  const int64_t count = std::min(samples.count(), looks);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = i * samples.count() / count;
    const auto has = [&](const std::string& name) { return samples.has(index, samples.column(name)); };
    if (std::count_if(columns.begin(), columns.end(), has) > 1) return true;
  }
  return false;
}

}  // namespace

std::string own_column(const Section& section, const Reading& reading, data::ColumnKind kind) {
  if (const std::string& said = section.settings.text("column"); !said.empty()) return said;
  const data::Dataset& samples = *reading.samples;
  const std::vector<std::string> all = free_columns(samples, kind, {}),
                                 free = free_columns(samples, kind, reading.taken);
  const char* const what = data::kind_plural(kind);
  if (free.empty() && !all.empty())
    fail<InputError>(
        "{}: which column holds the {}? {} of {} {} taken by other inputs or outputs: set {}.column",
        samples.path(), what, fmt::join(all, ", "), what, all.size() == 1 ? "is" : "are", input_key(section));
  if (free.size() == all.size() && (all.size() < 2 || !beside_each_other(samples, all))) return {};
  if (free.size() > 1)
    fail<InputError>("{}: which column holds the {}? Set {}.column to one of {}", samples.path(), what,
                     input_key(section), fmt::join(free, ", "));
  return free[0];
}

std::string same_column(const data::Dataset& samples, data::ColumnKind kind, const std::string& trained) {
  const std::vector<std::string> all = free_columns(samples, kind, {});
  if (all.size() < 2) return {};
  if (contains(all, trained)) return trained;
  if (!beside_each_other(samples, all)) return {};
  fail<InputError>("{}: which column holds the {}, {}? {}: name it so, or leave the others out",
                   samples.path(), data::kind_plural(kind), fmt::join(all, " or "),
                   trained.empty() ? "Training does not tell"
                                   : fmt::format("They were in a column '{}' in training", trained));
}

std::string only_column(const data::Dataset& samples, data::ColumnKind kind) {
  const std::vector<std::string> all = free_columns(samples, kind, {});
  return all.size() == 1 ? all[0] : std::string();
}

}  // namespace millrace::task
