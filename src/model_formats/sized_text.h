// Texts whose numbers depend on sizes: a graph's, for sizes that nobody compiled it for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/type.h>

namespace millrace {

/// Learns from the texts for some sizes what the text is for any. They may differ in whole numbers alone, and
/// each of these must be c · (a product of sizes, each up to twice) + d for all the examples, of which there
/// are more than it takes to find c and d; nullopt where that is not so. The result is the text with such
/// numbers written as formulas, which text_at() reads.
std::optional<std::string> learn_text(const std::vector<std::pair<Bindings, std::string>>& examples);

/// The text for these sizes; their names are those of the examples. InputError where a formula makes no
/// sense, or its value is negative or too large.
std::string text_at(std::string_view learnt, const Bindings& sizes);

}  // namespace millrace
