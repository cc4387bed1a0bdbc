// The same seed must give the same bits, twice.
#include <algorithm>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/states.h"

namespace millrace::check {
namespace {

/// The names of arrays that differ between two makings of a subject's model.
std::vector<std::string> drawn_otherwise(Context& context) {
  std::vector<std::string> names;
  if (!context.subject().make) return names;
  const auto other = context.subject().make();
  const auto one = context.model()->parameters(), two = other->parameters();
  for (size_t i = 0; i < std::min(one.size(), two.size()); ++i)
    if (!optim::value_of(one[i]).identical(optim::value_of(two[i]))) names.push_back(one[i].name);
  if (one.size() != two.size()) names.emplace_back("the number of parameters");
  return names;
}

/// Does the feed give the same arrays at the same place again? The first array that differs, or "".
std::string fed_otherwise(const task::TaskFeed& training) {
  data::Feed& feed = *training.feed;
  if (feed.streamed()) return {};
  const data::Cursor here = feed.cursor();
  std::vector<Array> first;
  const auto take = [&] {
    const data::FeedBatch& batch = feed.next();
    std::vector<Array> arrays;
    for (size_t i = 0; i < feed.fields().size(); ++i) arrays.push_back(feed.array(batch, i));
    return arrays;
  };
  first = take();
  feed.seek(here);
  const std::vector<Array> again = take();
  feed.seek(here);
  for (size_t i = 0; i < first.size(); ++i)
    if (!first[i].identical(again[i])) return feed.fields()[i].name;
  return {};
}

Finding run_reproducible(Context& context) {
  constexpr size_t steps = 4;
  constexpr const char* advice =
      "draw from nn::Initialiser and next_random_key() alone, which go by the seed; no clock, no address, no "
      "counter outside of the model may enter";
  context.reset();
  if (const auto names = drawn_otherwise(context); !names.empty())
    return failed(fmt::format("made twice, the model differs in {}", names.front()), advice);
  if (context.task())
    if (const std::string name = fed_otherwise(*context.training()); !name.empty())
      return failed(fmt::format("the same batch, made twice, differs in '{}'", name),
                    "what changes samples at random must go by seed, epoch and position alone");
  const Subject& s = context.subject();
  const Recorded again = record(*context.model(), s.inputs, s.loss);
  if (!(again.graph == context.recorded().graph))
    return failed("the loss, recorded twice, is not the same computation", advice);
  States runs[2];
  for (States& run : runs) {
    (void)context.step();
    for (size_t i = 0; i < steps; ++i) context.train(context.batch(i), s.lr);
    run = states_of(context);
  }
  if (const std::string name = first_difference(runs[0], runs[1]); !name.empty())
    return failed(fmt::format("{} steps, done twice, differ in {}", steps, name), advice);
  return passed(fmt::format("{} steps, done twice, gave the same bits of {} arrays", steps, runs[0].size()));
}

}  // namespace

MILLRACE_CHECK_KIND(reproducible){
    .name = "reproducible",
    .doc = "the model made twice, batches made twice, steps done twice: the same bits",
    .matters = "where the same seed gives other numbers, no two runs can be compared, and a gain may be luck",
    .place = 320,
    .run = run_reproducible,
};

}  // namespace millrace::check
