#include "task/input.h"

#include "base/format.h"
#include "data/feed/row_plan.h"

namespace millrace::task {

const InputKind& Input::kind() const { return input_kinds().at(section_.kind); }

std::unique_ptr<data::RowPlan> Input::rows(const data::Part& /*part*/, const Reading& /*reading*/,
                                           Purpose /*purpose*/, int64_t /*batch*/) const {
  return nullptr;
}

std::shared_ptr<const data::Dataset> Input::sample(const std::string& argument) const {
  fail<InputError>("{}: an input of kind {} takes files, not samples as they stand", argument, section_.kind);
}

}  // namespace millrace::task
