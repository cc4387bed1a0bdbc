// The data that a recipe names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/formats/open_dataset.h"
#include "task/reading.h"
#include "task/recipe.h"

namespace millrace::task {

/// The data set that a recipe's text names, its ${VARIABLES} expanded. InputError says what to set when the
/// folder of all data is missing.
std::shared_ptr<const data::Dataset> open_set(const std::string& text, const data::OpenOptions& options = {});

/// How a recipe has its data sets opened, `texts` being columns of texts whatever they look like, beside
/// those that its inputs want as they are written.
data::OpenOptions open_options(const Recipe& recipe, const std::vector<std::string>& texts = {});
/// The same data set, or where it lacks columns that are known that of the same path and options with its
/// first line as names: of a few rows of CSV it cannot be told from the content whether that is what they
/// are.
std::shared_ptr<const data::Dataset> with_names(std::shared_ptr<const data::Dataset> set,
                                                const std::string& path, data::OpenOptions options,
                                                const std::vector<std::string>& columns);

/// The samples that a recipe has of rows: each by itself, or those that belong together (data.group) as one.
std::shared_ptr<const data::Dataset> in_groups(const Recipe& recipe,
                                               std::shared_ptr<const data::Dataset> rows);

/// InputError where there are none.
void require_samples(const data::Dataset& set);

/// Columns that a model takes: those that were texts in training are texts, and all are there where a format
/// leaves out what is zero.
struct KnownColumns {
  std::vector<std::string> texts = {}, all = {};
};

/// What a recipe trains on, where it has random access: one source, or the sources of data.train by name, one
/// after the other. data.where, data.test_where and data.test_share (of samples, not of a corpus; of each
/// source by itself, among those that data.where leaves) have been applied. `parts`: samples of each source,
/// in the order of their names; empty for one. `of`: how many data.sample chose these among.
struct TrainingSource {
  std::shared_ptr<const data::Dataset> samples;
  std::vector<int64_t> parts;
  int64_t of = 0;
};
/// The class of each sample of a data set, which data.test_by = "stratified" asks for.
using ClassesOf = std::function<std::vector<int64_t>(const std::shared_ptr<const data::Dataset>&)>;
/// `most` > 0: a sample of about so many. `whole`: a corpus, which its input cuts for testing, and for
/// data.sample. `strata`: what kind each sample is of, which data.sample keeps the shares of.
TrainingSource open_training_source(const Recipe& recipe, bool whole, int64_t most = 0,
                                    const ClassesOf& classes = nullptr, const ClassesOf& strata = nullptr);
/// What it is tested on: data.test, or what data.test_where or data.test_share keep of data.train; `path` not
/// empty: that instead (labelled samples given to `millrace eval`). Null where the recipe has no test set.
std::shared_ptr<const data::Dataset> open_test_source(const Recipe& recipe, bool whole,
                                                      const std::string& path, const KnownColumns& known = {},
                                                      const ClassesOf& classes = nullptr);
/// All samples of what data.train names, whatever data.where, data.test_where and data.test_share choose
/// among them: those that are left out may have the only ones of a class, and the test set, too. Null where
/// nothing is chosen, and of what can be read but once.
std::shared_ptr<const data::Dataset> open_unselected(const Reading& reading);
/// data.weights of the sources in the order of their names; without any, `parts`.
std::vector<double> shares_of(const Recipe& recipe, const std::vector<int64_t>& parts);
bool has_tests(const Recipe& recipe);

}  // namespace millrace::task
