#include "model_formats/sized_text.h"

#include <doctest/doctest.h>
#include <string>

#include <millrace/error.h>

#include "base/format.h"

using namespace millrace;

namespace {

using Text = std::string (*)(int64_t batch, int64_t length);

/// Examples of sizes that are no multiples of each other.
std::optional<std::string> learnt_from(Text text) {
  std::vector<std::pair<Bindings, std::string>> examples;
  for (const auto& [batch, length] : {std::pair{3, 11}, {5, 7}, {7, 13}, {37, 29}})
    examples.emplace_back(Bindings{{"batch", batch}, {"length", length}}, text(batch, length));
  return learn_text(examples);
}

}  // namespace

TEST_CASE("a text for any sizes is learnt from some") {
  const Text text = [](int64_t batch, int64_t length) {
    return fmt::format("%12 = f32[{}, {}, 007] slice {} of {} {} {} -{} 0.25\n", batch, length, length + 1,
                       2 * batch * length, batch * length * length, 3 * batch * batch - 1, length);
  };
  const std::optional<std::string> learnt = learnt_from(text);
  REQUIRE(learnt);
  for (const int64_t batch : {1, 2, 100})
    for (const int64_t length : {1, 17, 512})
      CHECK(text_at(*learnt, {{"batch", batch}, {"length", length}}) == text(batch, length));
}

TEST_CASE("what is no such text is not taken for one") {
  CHECK_FALSE(learnt_from(
      [](int64_t batch, int64_t) { return batch > 10 ? std::string("many") : std::string("few"); }));
  CHECK_FALSE(learnt_from([](int64_t batch, int64_t) { return fmt::format("{}", batch / 2); }));
  CHECK_FALSE(
      learnt_from([](int64_t batch, int64_t) { return fmt::format("{}", std::min<int64_t>(batch, 16)); }));
  CHECK_FALSE(learnt_from(
      [](int64_t batch, int64_t) { return fmt::format("{}", 1.0 / static_cast<double>(batch)); }));
  CHECK_FALSE(learnt_from([](int64_t batch, int64_t length) { return fmt::format("{}", batch + length); }));
  CHECK_FALSE(learnt_from([](int64_t batch, int64_t) { return fmt::format("\x02{}", batch); }));
  CHECK_FALSE(learnt_from([](int64_t batch, int64_t) { return fmt::format("{:02}", batch); }));
  // Constants are numbered as they come.
  CHECK_FALSE(learnt_from(
      [](int64_t batch, int64_t) { return fmt::format("{}", batch == 37 ? 13 : 10 + (batch - 3) / 2); }));
}

TEST_CASE("formulas that make no sense, and values that are no sizes, are refused") {
  const Bindings one = {{"batch", 5}};
  CHECK(text_at("a\x02"
                "3 1 2\x02"
                "b",
                one) == "a76b");
  for (const char* wrong : {"a\x02",
                            "\x02"
                            "3 1\x02",
                            "\x02"
                            "3 1 1 1\x02",
                            "\x02"
                            "3 1 x\x02",
                            "\x02"
                            "3 1 3\x02",
                            "\x02"
                            "3 1 -1\x02",
                            "\x02\x02",
                            "\x02"
                            "-1 4 1\x02",
                            "\x02"
                            "4611686018427387904 0 1\x02",
                            "\x02"
                            "99999999999999999999 0 1\x02"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS((void)text_at(wrong, one), InputError);
  }
  CHECK_THROWS_AS((void)text_at("\x02"
                                "1 0 2\x02",
                                {{"batch", int64_t{1} << 40}}),
                  InputError);
}
