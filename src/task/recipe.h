// The keys that recipes have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <millrace/recipe.h>

namespace millrace::task {

/// Where the value of a key of [data], [train] or [eval] lives.
using RecipeSlot = std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*,
                                std::map<std::string, std::string>*, std::map<std::string, double>*>;

/// One key that every recipe may have; those of kinds are declared by the kinds.
struct RecipeKey {
  std::string name;  // "train.epochs"; "data.weights.NAME": any name, a table of the user's own
  std::string doc;
  RecipeSlot (*slot)(Recipe&);
  /// Bounds of numbers.
  double low = 0, high = 1e18;
  /// The words a text may be; empty: any.
  std::vector<std::string> choices = {};
  /// Of a text that is more than one word: InputError, worded to follow the key. May be null.
  void (*check)(const std::string& text) = nullptr;
  /// Texts that name data or weights.
  bool path = false;
  /// A run that goes on may be told another value: what is trained up to there does not depend on it.
  bool resumable = false;
  /// Of a whole number: the word that stands for 0. May be null.
  const char* word = nullptr;
};
/// In the order in which recipes are written.
std::span<const RecipeKey> recipe_keys();
/// Null when there is none.
const RecipeKey* find_key(std::string_view name);

/// All keys of all sections and kinds with defaults and meanings, as help text.
std::string recipe_help();

/// Replaces ${NAME} by the environment's value; MILLRACE_DATA has a default, ../shared/data. InputError when
/// a variable is not set.
std::string expand(std::string_view text);

/// The name of a data set of the program (Recipe::Data::sets) that a text of [data] stands for, "people" of
/// "set:people"; nothing of a path.
std::optional<std::string> set_name(std::string_view text);

/// Relative paths of a recipe with a data.base, as they are from the current folder: those that exist below
/// the base begin with it.
void anchor_paths(Recipe& recipe);

/// "input" or "inputs.NAME", "output" or "outputs.NAME": how a section is called in messages.
std::string input_key(const Section& input);
std::string output_key(const Section& output);

}  // namespace millrace::task
