// The columns of training and test set as numbers, for checks of data.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check/context.h"

namespace millrace::check {

/// A column of integers, numbers or texts.
struct Column {
  std::string name;
  bool numeric = false, integer = false;
  bool input = false, target = false;  // is it taken by an input; is it what is predicted
  /// Of each sample: a number for what stands there, 0 where it is missing; equal numbers, equal values.
  std::vector<uint64_t> codes = {};
  std::vector<double> numbers = {};  // of numeric ones, NaN where missing
};

/// Which samples of so many are looked at, as first ones and counts of runs from all over the data, which is
/// what is quick to read.
std::vector<std::pair<int64_t, int64_t>> looked_at(int64_t of, int64_t most);

/// The samples, or where these are groups of rows (data.group) all their rows.
std::shared_ptr<const data::Dataset> rows_of_samples(const Context& context,
                                                     const std::shared_ptr<const data::Dataset>& samples);

/// What is known of some thousand samples, spread over all: `most`, or Context::most_samples().
struct Columns {
  std::vector<Column> columns;
  int64_t samples = 0;  // looked at
};
Columns read_table(const Context& context, const data::Dataset& from, int64_t most = 0);

/// What an output with one target for a sample is to be, of the same samples: classes, or numbers.
struct Targets {
  const task::Output* output = nullptr;
  std::string column;
  std::vector<int64_t> classes;  // -1 where unknown
  std::vector<double> numbers;
  std::vector<std::string> names;  // of the classes
  bool known() const { return !classes.empty() || !numbers.empty(); }
};
/// Of each such output.
std::vector<Targets> read_all_targets(const Context& context,
                                      const std::shared_ptr<const data::Dataset>& from, int64_t most = 0);
/// Of the first one.
Targets read_targets(const Context& context, const std::shared_ptr<const data::Dataset>& from,
                     int64_t most = 0);
/// Of this one.
Targets read_targets_of(const task::Output& output, const Context& context,
                        const std::shared_ptr<const data::Dataset>& from, int64_t most = 0);

/// A column of the set by its name; null.
const Column* find_column(const Columns& columns, const std::string& name);

/// Whether a name ("patientId", "event_time") is made of one of these words, and of others only such as may
/// stand beside it.
bool named_like(const std::string& name, std::initializer_list<const char*> list,
                std::initializer_list<const char*> beside);

/// Mean and standard deviation of those that are there.
struct Moments {
  double mean = 0, deviation = 0, least = 0, most = 0;
  int64_t count = 0;
};
Moments moments_of(const std::vector<double>& numbers);

}  // namespace millrace::check
