// What inputs change of samples, and which classes a change may exchange.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "task/task.h"

namespace millrace::check {

/// What the settings of an input say by a name of which `part` is a part: "augment", "spec_augment".
std::vector<std::string> said_by(const task::Input& input, std::string_view part);
/// Has one of the texts one of the words in it?
bool any_has(const std::vector<std::string>& texts, std::initializer_list<const char*> words);
/// Classes that a mirror image may be another of: left and right, letters and digits.
std::string mirrored_classes(const task::Task& task);

}  // namespace millrace::check
