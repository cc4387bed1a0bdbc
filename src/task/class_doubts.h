// What is odd about a column of classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::task {

/// Lines for the user: that all samples to train on are of one class, that nearly each has one of its own,
/// that whole numbers look like amounts, that classes have no sample. `counts`: of the samples to train on;
/// empty: not known. `key`: of the output.
std::vector<std::string> class_doubts(const std::string& column, const std::vector<std::string>& names,
                                      const std::vector<int64_t>& counts, const std::string& key);

/// Are there so many different values that they are hardly classes: more than a hundred, or more than half of
/// the samples?
bool too_many_classes(int64_t different, int64_t samples);

/// Are so many different whole numbers amounts rather than numbers of classes: more than 20, of which those
/// from 0 or 1 on are not there or leave out half?
bool look_like_amounts(int64_t different, int64_t least, int64_t most);

/// InputError where there is but one class, so that there is nothing to tell it from. `listed`: the key that
/// lists classes.
void require_two_classes(const std::vector<std::string>& names, const std::string& path,
                         const std::string& column, const std::string& listed);

}  // namespace millrace::task
