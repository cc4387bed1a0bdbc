// Opening what a user names to be predicted, as the recipe has its data opened.
#include "base/format.h"
#include "data/table/elements.h"
#include "task/input.h"
#include "task/open.h"

namespace millrace::task {

std::shared_ptr<const data::Dataset> Input::open(const Recipe& recipe,
                                                 const std::vector<std::string>& paths) const {
  if (paths.size() != 1) fail<InternalError>("{} sources where one is opened", paths.size());
  // Read as they are written: a value that is none of the column's then loses its row, not the file.
  const data::OpenOptions options = open_options(recipe, columns());
  auto rows = with_names(data::open_dataset(paths[0], options), paths[0], options, columns());
  return in_groups(recipe, data::spread_arrays(std::move(rows), columns()));
}

}  // namespace millrace::task
