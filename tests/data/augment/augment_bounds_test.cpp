// All augmentations at the ends of what they can be told, on the smallest pictures and on strips.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <set>

#include <millrace/error.h>

#include "data/augment/augment.h"

using namespace millrace;
using namespace millrace::data;

namespace {

/// A value of the setting's type: the usual one, or as far down or up as it goes.
std::vector<std::string> ends_of(const Setting& setting) {
  std::vector<std::string> values;
  const auto numbers = [&](const auto& usual, bool pair) {
    for (const double value : {static_cast<double>(usual), setting.low, setting.high})
      if (std::abs(value) < 1e6)
        values.push_back(pair ? fmt::format("{0}..{0}", value) : fmt::format("{}", value));
  };
  if (const auto* integer = std::get_if<int64_t>(&setting.usual)) numbers(*integer, false);
  if (const auto* number = std::get_if<double>(&setting.usual)) numbers(*number, false);
  if (const auto* range = std::get_if<std::vector<double>>(&setting.usual)) numbers(range->at(0), true);
  return values;
}

/// Its text with each setting at each end, the others as they usually are.
std::set<std::string> texts_of(const AugmentationKind& kind) {
  std::set<std::string> texts;
  for (size_t at = 0; at <= kind.settings.size(); ++at) {
    const std::vector<std::string> ends =
        at < kind.settings.size() ? ends_of(kind.settings[at]) : std::vector<std::string>{""};
    for (const std::string& end : ends) {
      std::string text = kind.name;
      for (size_t i = 0; i < kind.settings.size(); ++i) {
        const Setting& setting = kind.settings[i];
        const bool word = setting.name[0] >= 'A' && setting.name[0] <= 'Z';
        const std::vector<std::string> own = ends_of(setting);
        if (word && !own.empty()) text += " " + (i == at ? end : own[0]);
        if (!word && i == at && !end.empty()) text += fmt::format(" {}={}", setting.name, end);
        if (!word && i == at && std::holds_alternative<bool>(setting.usual)) text += " " + setting.name;
      }
      texts.insert(text);
    }
  }
  return texts;
}

}  // namespace

TEST_CASE(
    "augmentations at the ends of their settings change pictures of any size, and no byte beside them") {
  constexpr size_t beside = 200;
  constexpr uint8_t mark = 0xa5;
  int applied = 0;
  for (const AugmentationKind* kind : augmentations().all()) {
    if (kind->name.starts_with("test-")) continue;
    bool any = false;
    for (const std::string& text : texts_of(*kind)) {
      std::unique_ptr<Augmenter> augmenter;
      try {
        augmenter = std::make_unique<Augmenter>(std::vector<std::string>{text});
        // What takes a part of the encoded picture when it is first, changes pixels when it is second.
        if (augmenter->frames())
          augmenter = std::make_unique<Augmenter>(std::vector<std::string>{"flip", text});
      } catch (const InputError&) {
        continue;
      }
      for (const Extent& extent : {Extent{1, 1, 1}, Extent{3, 1, 9}, Extent{3, 9, 1}, Extent{1, 2, 2},
                                   Extent{3, 4, 21}, Extent{1, 21, 4}, Extent{3, 11, 13}}) {
        CAPTURE(text);
        CAPTURE(extent.height);
        CAPTURE(extent.width);
        try {
          augmenter->check(extent);
        } catch (const InputError&) {
          continue;
        }
        const Extent result = augmenter->result(extent);
        if (result.bytes() > 1 << 20) continue;
        std::vector<uint8_t> in(extent.bytes()), scratch;
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 71 % 253);
        const std::vector<uint8_t> before = in;
        for (int position = 0; position < 12; ++position) {
          std::vector<uint8_t> out(result.bytes() + 2 * beside, mark);
          augmenter->apply(extent, in.data(), out.data() + beside, {3, 1, position, position}, scratch);
          const auto is_mark = [&](uint8_t byte) { return byte == mark; };
          const bool kept = std::all_of(out.begin(), out.begin() + beside, is_mark) &&
                            std::all_of(out.end() - beside, out.end(), is_mark);
          REQUIRE(kept);
          REQUIRE(in == before);
          // And the same again, whatever the memory held.
          std::vector<uint8_t> again(out.size(), 7);
          augmenter->apply(extent, in.data(), again.data() + beside, {3, 1, position, position}, scratch);
          const bool same = std::equal(out.begin() + beside, out.end() - beside, again.begin() + beside);
          REQUIRE(same);
          ++applied;
          any = true;
        }
      }
    }
    CHECK_MESSAGE(any, kind->name);
  }
  CHECK(applied > 3000);
}
