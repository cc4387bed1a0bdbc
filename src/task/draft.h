// A first recipe, made by looking at the data.
#pragma once

#include <string>

namespace millrace::task {

/// A commented recipe for what `path` names: its kinds, a model and batch that suit, a test set that lies
/// beside it or is a share of it. It can be trained as it is. `test`: what to test on; "": what lies beside.
/// InputError when the data cannot be opened, or nothing in it can be a model's input or output.
std::string draft_recipe(const std::string& path, const std::string& test = "");

}  // namespace millrace::task
