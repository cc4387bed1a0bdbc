#include "task/input.h"

#include "base/format.h"
#include "task/open.h"

namespace millrace::task {

const InputKind& Input::kind() const { return input_kinds().at(section_.kind); }

std::shared_ptr<const data::Dataset> Input::open(const Recipe& recipe,
                                                 const std::vector<std::string>& paths) const {
  if (paths.size() != 1) fail<InternalError>("{} sources where one is opened", paths.size());
  // Read as they are written: a value that is none of the column's then loses its row, not the file.
  const data::OpenOptions options = open_options(recipe, columns());
  return with_names(data::open_dataset(paths[0], options), paths[0], options, columns());
}

std::shared_ptr<const data::Dataset> Input::sample(const std::string& argument) const {
  fail<InputError>("{}: an input of kind {} takes files, not samples as they stand", argument, section_.kind);
}

}  // namespace millrace::task
