// Weights of classes in the loss, as recipes write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/settings.h>

namespace millrace::task {

/// A setting of outputs: "balanced", numbers in the order of the classes, or "NAME=NUMBER" for some of them.
Setting class_weights_setting(const std::string& name, const std::string& doc);

/// InputError, naming `key`, for a list that is none of these, whatever the classes are.
void check_class_weights(const std::vector<std::string>& list, const std::string& key);

/// One weight for each class; empty where the list is. `balanced`: what "balanced" means for each class;
/// empty where the data did not say. Classes that a list by name leaves out weigh 1. InputError, naming
/// `key`.
std::vector<double> class_weights(const std::vector<std::string>& list, const std::string& key,
                                  const std::vector<std::string>& classes, std::span<const double> balanced);

}  // namespace millrace::task
