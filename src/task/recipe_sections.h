// The sections of a recipe that choose a kind: which kinds there are, and what each can be told.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/settings.h>

#include "task/loss.h"
#include "task/recipe.h"

namespace millrace::task {

/// `branch`: [model.NAME], the network of one of several inputs.
enum class SectionType { input, output, model, branch, optimizer, schedule, loss };

std::vector<std::string> section_kinds(SectionType type);
/// What that kind of it declares; "" is the model, or branch, of layers. InternalError when there is no such
/// kind.
std::vector<Setting> section_settings(SectionType type, const std::string& kind);
/// All that kinds of it declare, each once, in the order of the kinds.
std::vector<std::string> section_keys(SectionType type);
/// The kinds that declare it.
std::vector<std::string> kinds_with(SectionType type, const std::string& key);

/// Section::settle() by a kind of that type. InputError for an unknown kind (`where`: its place) and for keys
/// of others: "input.mels means nothing to input.kind = 'picture' (only to sound)".
void settle_section(SectionType type, Section& section, const std::string& prefix, const std::string& kind,
                    const std::string& where = "");

/// The texts that a section names by a key, settled or not: "column" or "columns".
std::vector<std::string> texts_of(const Section& section, const std::string& key);

/// The settings of an output's loss, as far as its items say; null where neither they nor the kind of output
/// name one.
struct SectionLoss {
  std::string kind;
  Settings settings;
};
/// InputError, with the place, for an unknown loss or what it cannot be told.
std::optional<SectionLoss> loss_of(const Section& output);

/// The loss of an output of a kind that is known. InputError for one that does not apply.
ChosenLoss chosen_loss(const Section& output);
/// With weights of classes (none: all alike). InputError, naming `key`, for a loss that knows none.
ChosenLoss chosen_loss(const Section& output, std::span<const double> weights, const std::string& key);

/// Of all kinds of such a section: is this a setting of named numbers?
bool named_numbers(SectionType type, const std::string& key);

/// What a dotted key of a section means: "inputs.photo.resize" → input, "inputs.photo", "resize". Nothing for
/// others.
struct SectionKey {
  SectionType type = SectionType::input;
  std::string section, key;
};
std::optional<SectionKey> section_key(std::string_view name);

}  // namespace millrace::task
