// Where the next one is predicted, nothing may depend on what comes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/rows.h"

namespace millrace::check {
namespace {

/// The array with the elements of place `at` of each row taken from elsewhere, other than they were where
/// there is another value.
Array other_at(const Array& array, int64_t at) {
  Array result = array.clone();
  const int64_t rows = array.shape()[0].size(), places = array.shape()[1].size();
  const int64_t bytes = array.bytes() / rows / places;
  const auto* in = static_cast<const std::byte*>(array.data());
  auto* out = static_cast<std::byte*>(result.data());
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t own = r * places + at;
    for (int64_t step = 1; step < rows * places; ++step) {
      const int64_t other = (own + step) % (rows * places);
      if (std::memcmp(in + own * bytes, in + other * bytes, static_cast<size_t>(bytes)) == 0) continue;
      std::memcpy(out + own * bytes, in + other * bytes, static_cast<size_t>(bytes));
      break;
    }
  }
  return result;
}

/// The first place before `at` whose outputs differ, and by how much of their size; -1.
std::pair<int64_t, double> first_changed(const Array& before, const Array& now, int64_t at) {
  const auto sizes = before.shape().sizes();
  const int64_t width = before.count() / sizes[0] / sizes[1];
  const double size = std::max(rms(before), 1e-6);
  const auto x = before.as<float>(), y = now.as<float>();
  for (int64_t place = 0; place < at; ++place)
    for (int64_t r = 0; r < sizes[0]; ++r)
      for (int64_t i = 0; i < width; ++i) {
        const auto k = static_cast<size_t>((r * sizes[1] + place) * width + i);
        if (const double off = std::abs(x[k] - y[k]) / size; off > 1e-4) return {place, off};
      }
  return {-1, 0};
}

/// Targets that are what the model is given at the same place.
bool targets_are_given(Context& context) {
  const Subject& s = context.subject();
  const std::vector<Array>& batch = context.batch();
  for (const size_t target : s.targets)
    for (const size_t given : s.given)
      if (batch[target].identical(batch[given])) return true;
  return false;
}

Finding run_causal_leakage(Context& context) {
  (void)context.batch();
  if (!context.subject().causal) return not_for("nothing is predicted from what came before");
  if (targets_are_given(context))
    return failed("the target at each place is the token at that place",
                  "shift the targets by one: at place i the model is to give what stands at i + 1");
  widen_weights(context);
  const std::vector<Array> given = context.given(context.batch());
  const std::vector<Array> before = context.outputs(given);
  const auto& shape = before[0].shape();
  if (shape.rank() < 3 || given[0].shape().rank() < 2 || shape[1].size() != given[0].shape()[1].size())
    return not_for("outputs have no places");
  const int64_t places = shape[1].size();
  int64_t tried = 0;
  for (const int64_t at : {places - 1, places / 2, int64_t{1}}) {
    if (at < 1) continue;
    ++tried;
    std::vector<Array> changed = given;
    changed[0] = other_at(given[0], at);
    const auto [place, off] = first_changed(before[0], context.outputs(changed)[0], at);
    if (place < 0) continue;
    return with_numbers(
        failed(fmt::format("another token at place {} changes the outputs at place {}, by up to {} of their "
                           "size",
                           at, place, short_number(off)),
               "give attention its causal mask, convolutions padding on the left alone, and take no mean or "
               "norm over places"),
        {{"place", at}, {"change", off}});
  }
  return passed(fmt::format("{} of {} places changed: nothing before them moved", tried, places));
}

}  // namespace

MILLRACE_CHECK_KIND(causal_leakage){
    .name = "causal-leakage",
    .doc = "where the next one is predicted: a later token is changed, no output before it may move",
    .matters =
        "a model that sees what it is to predict has a loss near 0 and writes nonsense when it must go on "
        "alone",
    .place = 270,
    .run = run_causal_leakage,
};

}  // namespace millrace::check
