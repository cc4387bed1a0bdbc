#include "task/input.h"

#include "base/format.h"

namespace millrace::task {

const InputKind& Input::kind() const { return input_kinds().at(section_.kind); }

std::shared_ptr<const data::Dataset> Input::sample(const std::string& argument) const {
  fail<InputError>("{}: an input of kind {} takes files, not samples as they stand", argument, section_.kind);
}

}  // namespace millrace::task
