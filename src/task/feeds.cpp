#include "task/feeds.h"

#include <algorithm>
#include <bit>

#include "base/contains.h"
#include "base/format.h"
#include "base/size_text.h"
#include "data/feed/sample_feed.h"
#include "data/order/order.h"
#include "data/table/elements.h"
#include "data/table/labels.h"
#include "data/table/select.h"
#include "data/table/split.h"
#include "optim/kinds.h"
#include "task/feed_parts.h"
#include "task/fitting.h"
#include "task/pass_feed.h"
#include "task/settle.h"

namespace millrace::task {
namespace {

constexpr int64_t fit_batch = 4096;  // samples that are read at a time

/// What a feed of samples is opened with.
struct FeedRequest {
  Purpose purpose = Purpose::training;
  int64_t batch = 1;
  int64_t cache_bytes = 0, memory = 0;
  std::vector<int64_t> parts;  // of a mixture
  bool weights = false;        // with data.sample_weight
  std::vector<std::string> notes;
};

int64_t memory_of(const Recipe& recipe) {
  return recipe.data.memory.empty() ? 0
                                    : static_cast<int64_t>(parse_bytes("data.memory", recipe.data.memory));
}

std::unique_ptr<data::RowPlan> rows_in_order(const Task& task, const Reading& reading,
                                             const FeedRequest& request) {
  data::OrderedSamples ordered;
  if (request.purpose != Purpose::training) return data::sample_rows(*reading.samples, ordered);
  ordered.order = task.recipe.data.order;
  ordered.classes = reading.classes;
  ordered.labels = reading.labels;
  ordered.parts = request.parts;
  if (!request.parts.empty()) ordered.shares = shares_of(task.recipe, request.parts);
  return data::sample_rows(*reading.samples, ordered);
}

/// The rows that an input plans, a line each.
std::vector<std::string> row_lines(const Input& input, const data::Part& part, const data::RowPlan& rows,
                                   const data::Cursor& at, int64_t count) {
  std::vector<data::RowPick> picks(static_cast<size_t>(count));
  rows.take(at, picks);
  std::vector<std::string> lines;
  for (const data::RowPick& pick : picks) lines.push_back(input.row_text(part, pick));
  return lines;
}

/// With the classes of the first output that has some, where the order of a training looks at them.
Reading with_classes(const Task& task, Reading reading, bool training) {
  if (!training || !data::parse_order(task.recipe.data.order).kind->by_class) return reading;
  for (const auto& output : task.outputs) {
    reading.classes = output->classes();
    if (reading.classes.empty()) continue;
    reading.labels = output->labels(reading);
    break;
  }
  return reading;
}

TaskFeed feed_of(const Task& task, const Reading& opened, FeedRequest request) {
  const bool training = request.purpose == Purpose::training;
  const Reading reading = with_classes(task, opened, training);
  TaskParts parts = parts_of(task, reading, request.purpose, request.purpose != Purpose::prediction);
  // A feed to train on has the weights of samples, whatever its purpose, and is no measure of anything.
  for (const auto& output : task.outputs)
    if (request.purpose == Purpose::evaluation && !request.weights)
      if (auto judged = output->judged_part(reading)) parts.named.push_back({output->prefix(), judged, true});
  data::FeedOptions options;
  options.batch = request.batch;
  options.seed = static_cast<uint64_t>(task.recipe.train.seed);
  options.drop_last = training;
  options.cache_bytes = request.cache_bytes;
  options.memory = request.memory;
  options.unit = task.unit();
  options.notes = std::move(request.notes);
  if (reading.progress)
    options.progress = [progress = reading.progress, path = reading.samples->path()](
                           int64_t done, int64_t total) { progress(path, done, total); };

  TaskFeed made;
  PlannedRows planned = planned_rows(task, parts, reading, request.purpose, request.batch);
  const std::string& weight = task.recipe.data.sample_weight;
  if (request.weights && !weight.empty()) {
    if (cuts_corpus(task))
      fail<InputError>("data.sample_weight = \"{}\": rows are extracts of a corpus, which have no weights",
                       weight);
    options.weights = data::numbers_of(*reading.samples, weight);
    const auto none = std::count(options.weights.begin(), options.weights.end(), 0.0);
    const int64_t count = std::ssize(options.weights);
    if (none == count)
      fail<InputError>("{}: data.sample_weight = \"{}\": all weights are 0, so that nothing would be learnt",
                       reading.samples->path(), weight);
    if (none > 0)
      options.notes.push_back(fmt::format(
          "{}: {} of {} {} weigh 0 in the loss: they take places in batches and teach nothing (data.where = "
          "\"{} > 0\" leaves them out)",
          reading.samples->path(), none, count, task.unit(), weight));
  }
  std::unique_ptr<data::RowPlan> rows;
  if (planned.input) {
    rows = std::move(planned.rows);
    options.describe = [input = planned.input, part = planned.part](const data::RowPlan& plan,
                                                                    const data::Cursor& at, int64_t count) {
      return row_lines(*input, *part, plan, at, count);
    };
  } else {
    rows = rows_in_order(task, reading, request);
    options.weighted = training && data::parse_order(task.recipe.data.order).kind->weighs;
  }
  made.feed = data::sample_feed(reading.samples, std::move(parts.named), std::move(rows), std::move(options));
  made.samples = reading.samples;
  made.inputs = std::move(parts.inputs);
  made.outputs = std::move(parts.outputs);
  made.count = reading.samples->count();
  return made;
}

/// Classes without a sample that can be read. Labels are read again for that only where samples are bad.
std::vector<std::string> empty_classes(const Task& task, const Reading& reading, const data::Feed& feed) {
  std::vector<std::string> lines;
  const std::vector<data::BadSample> bad = feed.bad_samples();
  if (bad.empty()) return lines;
  for (const auto& output : task.outputs) {
    const std::vector<std::string> classes = output->classes();
    const std::vector<int64_t> labels = output->labels(reading);
    if (classes.empty() || labels.empty()) continue;
    std::vector<int64_t> counts(classes.size());
    for (const int64_t label : labels)
      if (label >= 0) ++counts[static_cast<size_t>(label)];
    for (const data::BadSample& sample : bad)
      if (const int64_t label = labels[static_cast<size_t>(sample.index)]; label >= 0)
        --counts[static_cast<size_t>(label)];
    for (size_t c = 0; c < counts.size(); ++c)
      if (counts[c] == 0)
        lines.push_back(fmt::format("{}: the class '{}' has no {} that can be read", feed.path(), classes[c],
                                    feed.unit()));
  }
  return lines;
}

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

/// Those that the task's inputs take.
std::vector<std::string> input_columns(const Task& task) {
  std::vector<std::string> columns;
  for (const auto& input : task.inputs) append(columns, input->columns());
  return columns;
}

std::vector<std::string> unreadable(const Task& task, const data::Dataset& samples) {
  std::vector<std::string> lines;
  for (const auto& input : task.inputs) append(lines, input->unreadable(samples));
  return lines;
}

/// The task with the samples that it was learnt from.
struct Learnt {
  Task task;
  TrainingSource source;
  bool whole = false;  // the samples are a corpus, of which the task takes a part
};

/// The classes of samples, as the task's outputs tell them: as of orders by class, those of the first output
/// that has some.
ClassesOf classes_of(const Task& task) {
  return [&task](const std::shared_ptr<const data::Dataset>& samples) {
    for (const auto& output : task.outputs) {
      std::vector<int64_t> labels;
      if (!output->classes().empty()) labels = output->labels({task.recipe, samples});
      if (!labels.empty()) return labels;
    }
    std::vector<std::string> kinds;
    for (const auto& output : task.outputs)
      kinds.push_back(fmt::format("{}.kind = \"{}\"", output_key(output->section()), output->kind().name));
    fail<InputError>(
        "{} has no classes that samples could be divided by; take random, group:COLUMN or time:COLUMN",
        fmt::join(kinds, ", "));
  };
}

/// What kinds samples are of, as the first output that knows some tells them.
ClassesOf strata_of(const Task& task) {
  return [&task](const std::shared_ptr<const data::Dataset>& samples) {
    for (const auto& output : task.outputs)
      if (auto strata = output->strata({task.recipe, samples}); !strata.empty()) return strata;
    return std::vector<int64_t>();
  };
}

/// ", whole groups of patient": how data.test_share divides.
std::string divided_text(const Recipe& recipe) {
  const data::SplitBy by = data::SplitBy::parse(recipe.data.test_by);
  switch (by.how) {
    case data::SplitBy::How::random:
      return "";
    case data::SplitBy::How::stratified:
      return ", of each class its share";
    case data::SplitBy::How::group:
      return fmt::format(", whole groups of '{}'", by.column);
    case data::SplitBy::How::time:
      return fmt::format(", the newest by '{}'", by.column);
  }
  return "";
}

/// A column that keeps samples together says which they are, not what they are like: where an input would
/// take it by itself, that it does not is said. Times that are categories are each of one side.
void note_division(const Task& task, const data::Dataset& samples, std::vector<std::string>& notes) {
  using How = data::SplitBy::How;
  const data::SplitBy by = data::SplitBy::parse(task.recipe.data.test_by);
  if (by.how != How::group && by.how != How::time) return;
  std::vector<std::string> taken = taken_columns(task.recipe);
  std::erase(taken, by.column);
  for (const auto& input : task.inputs) {
    const std::string key = input_key(input->section());
    if (by.how == How::group && !contains(input->columns(), by.column) &&
        contains(input->kind().recognise(samples, taken), by.column))
      notes.push_back(fmt::format(
          "{0} keeps samples together (data.test_by) and is none of {1}'s columns; {1}.columns can name it",
          by.column, key));
    std::vector<std::string> categories;
    for (const ExportedTexts& each : input->exported_texts()) categories.push_back(each.name);
    const std::string& left_out = input->kind().left_out;
    if (by.how == How::time && !left_out.empty() && contains(categories, by.column))
      notes.push_back(fmt::format(
          "{0} is one of {1}'s categories, and all that are tested on are unknown to the model, as "
          "they are newer; {1}.{2} = [\"{0}\"] does without it",
          by.column, key, left_out));
  }
}

/// Only the task knows whether samples are a corpus, and only the training part of samples may be learnt
/// from. So with data.test_share or data.sample a corpus is taken for granted first, and all is opened again
/// where it is none.
Learnt learn(const Recipe& recipe, const std::string& encoding, int64_t most, const ReadProgress& progress) {
  Learnt learnt;
  const auto reading = [&] {
    return Reading{recipe, learnt.source.samples,
                   {},     learnt.whole ? Reading::Share::train : Reading::Share::all,
                   false,  progress};
  };
  const bool divided = recipe.data.test_share > 0 || !recipe.data.sample.empty();
  if (!encoding.empty()) {
    learnt.task = load_task(recipe, encoding);
    learnt.whole = divided && cuts_corpus(learnt.task);
    learnt.source =
        open_training_source(recipe, learnt.whole, most, classes_of(learnt.task), strata_of(learnt.task));
    return learnt;
  }
  learnt.whole = divided;
  learnt.source = open_training_source(recipe, learnt.whole, most);
  learnt.task = learn_task(reading());
  if (!learnt.whole) return learnt;
  if (cuts_corpus(learnt.task)) {
    if (recipe.data.test_by != "random")
      fail<InputError>(
          "data.test_by = \"{}\": rows are extracts of a corpus, of which the end is kept to test on; leave "
          "it out",
          recipe.data.test_by);
    return learnt;
  }
  learnt.whole = false;
  learnt.source = open_training_source(recipe, false, most, classes_of(learnt.task), strata_of(learnt.task));
  learnt.task = learn_task(reading());
  return learnt;
}

/// A part of the data may be less than a batch: then batches are as small. Where there are so few samples
/// that they do not fill the usual batch (written or not), it is smaller, so that an epoch has some steps.
void settle_batch(Task& task, int64_t count, std::vector<std::string>& notes) {
  Recipe::Train& train = task.recipe.train;
  const bool part = !task.recipe.data.sample.empty(), usual = train.batch == Recipe::Train().batch;
  if (!(part || usual) || cuts_corpus(task) || count >= train.batch || count < train.accumulate) return;
  if (data::parse_order(task.recipe.data.order).kind->own_length) return;
  const auto samples = static_cast<uint64_t>(count);
  const int64_t most =
      part ? count : static_cast<int64_t>(std::bit_floor(std::max<uint64_t>(samples / 8, 1)));
  const int64_t batch = std::max(most / train.accumulate, int64_t{1}) * train.accumulate;
  notes.push_back(fmt::format("train.batch = {}: the {} {}{} do not fill {} of {}", batch, count, task.unit(),
                              part ? " of data.sample" : "", part ? "a batch" : "the usual batch",
                              train.batch));
  train.batch = batch;
}

}  // namespace

Opened open_training(Recipe recipe, const std::string& encoding, int64_t most, const ReadProgress& progress,
                     std::vector<std::string>& notes) {
  if (recipe.train.batch == 0)
    fail<InputError>(
        "train.batch = \"auto\" is measured when a training begins: for this, say how many samples a batch "
        "has, as in train.batch=128");
  if (recipe.data.stream) require_steps(recipe, "data.stream, which gives each sample once and never all,");
  if (recipe.data.stream) return open_streams(std::move(recipe), encoding, notes);
  // Some batches at least, so that the order of an epoch is a usual one.
  const int64_t sample = most > 0 ? std::max(most, 4 * recipe.train.batch) : 0;
  Learnt learnt = learn(recipe, encoding, sample, progress);
  Opened opened{std::move(learnt.task), {}};
  const Task& task = opened.task;
  const Reading reading{task.recipe, learnt.source.samples,
                        {},          learnt.whole ? Reading::Share::train : Reading::Share::all,
                        false,       progress};
  // A model that is fitted, or an optimiser that needs the loss of all samples, takes each once, unchanged,
  // in order.
  const bool fitted = is_fitted(task.recipe);
  const bool whole = fitted || optim::optimizer_kinds().at(task.recipe.train.optimizer.kind).whole;
  const int64_t count = learnt.source.samples->count();
  if (whole && !fitted) opened.task.recipe.train.batch = std::min(task.recipe.train.batch, count);
  if (!whole && !learnt.whole) settle_batch(opened.task, count, notes);
  FeedRequest request{.purpose = whole ? Purpose::evaluation : Purpose::training,
                      .batch = fitted ? std::min(count, fit_batch) : task.recipe.train.batch,
                      .cache_bytes = task.recipe.data.cache_mb << 20,
                      .memory = memory_of(task.recipe),
                      .parts = learnt.source.parts,
                      .weights = true,
                      .notes = {}};
  if (const std::string unused = unused_keys(task.recipe); fitted && encoding.empty() && !unused.empty())
    notes.push_back(unused);
  if (fitted) opened.task.recipe.train.precision = "fp32";
  opened.training = feed_of(task, reading, request);
  if (sample > 0) {
    const TrainingSource all =
        open_training_source(task.recipe, learnt.whole, 0, classes_of(task), strata_of(task));
    opened.training.count = all.samples->count();
    const double bytes = static_cast<double>(opened.training.feed->sample_bytes()) *
                         static_cast<double>(opened.training.count);
    if (opened.training.feed->cached() && bytes > static_cast<double>(request.cache_bytes)) {
      // The sample would be kept in memory, the whole set will not.
      const int64_t of_all = opened.training.count;
      request.cache_bytes = 0;
      opened.training = feed_of(task, reading, request);
      opened.training.count = of_all;
    }
  }
  const data::Feed& feed = *opened.training.feed;
  append(notes, feed.notes());
  append(notes,
         count_notes(task, feed.path(), fmt::format("{} {}", learnt.source.samples->count(), task.unit())));
  if (!task.recipe.data.sample.empty() && !learnt.whole)
    notes.push_back(fmt::format("data.sample = {}: {} of {} {} to train on", task.recipe.data.sample,
                                learnt.source.samples->count(), learnt.source.of, task.unit()));
  append(notes, unreadable(task, *learnt.source.samples));
  note_division(task, *learnt.source.samples, notes);
  append(notes, empty_classes(task, reading, feed));
  return opened;
}

std::shared_ptr<const data::Dataset> as_opened(const Task& task,
                                               std::shared_ptr<const data::Dataset> samples) {
  return in_groups(task.recipe, data::spread_arrays(std::move(samples), input_columns(task)));
}

TaskFeed open_tests(const Task& task, const std::string& path, int64_t most, int64_t memory_used,
                    const ReadProgress& progress, std::vector<std::string>& notes,
                    const std::shared_ptr<const data::Dataset>& given) {
  const Recipe& recipe = task.recipe;
  const bool own = path.empty() && !given;
  if (own && !has_tests(recipe)) return {};
  KnownColumns known{{}, input_columns(task)};
  for (const auto& input : task.inputs) append(known.texts, input->text_columns());
  const bool corpus = cuts_corpus(task);
  auto samples =
      given ? as_opened(task, given)
            : open_test_source(recipe, corpus && recipe.data.test_share > 0, path, known, classes_of(task));
  if (!samples) return {};
  require_samples(*samples);
  // A test of all would take longer than a training on a small part; the rows are those of every part and
  // seed.
  constexpr int64_t enough = 10'000;
  const int64_t there = samples->count();
  if (own && !recipe.data.sample.empty() && !corpus) samples = data::sample_of(samples, enough);
  const int64_t count = samples->count();
  if (most > 0) samples = data::sample_of(samples, std::max(most, 2 * recipe.eval.batch));
  const bool share = own && recipe.data.test.empty() && recipe.data.test_share > 0;
  const Reading reading{recipe, samples, {}, corpus && share ? Reading::Share::test : Reading::Share::all,
                        false,  progress};
  FeedRequest request{.purpose = Purpose::evaluation,
                      .batch = corpus ? recipe.eval.batch : std::min(recipe.eval.batch, samples->count()),
                      .cache_bytes = recipe.data.cache_mb << 20,
                      .memory = memory_of(recipe),
                      .parts = {},
                      .weights = false,
                      .notes = {}};
  if (request.memory > 0)  // what the training has left
    request.memory = std::max<int64_t>(1, request.memory - memory_used);
  TaskFeed tests = feed_of(task, reading, std::move(request));
  tests.count = count;
  if (corpus && share)
    notes.push_back(fmt::format("{}: its end is kept to test on, by data.test_share:", tests.feed->path()));
  append(notes, tests.feed->notes());
  if (!cuts_corpus(task))
    notes.push_back(fmt::format("{}: {}{} {} to test on{}", tests.feed->path(), samples->count(),
                                count < there ? fmt::format(" of {}", there) : "", task.unit(),
                                share ? ", kept by data.test_share" + divided_text(recipe) : ""));
  append(notes, unreadable(task, *samples));
  for (const auto& input : task.inputs) append(notes, input->unknown(*samples));
  append(notes, empty_classes(task, reading, *tests.feed));
  return tests;
}

namespace {

/// Samples without targets, in order; `cache_bytes`: for decoded ones that stay.
TaskFeed predictions_feed(const Task& task, std::shared_ptr<const data::Dataset> samples, int64_t batch,
                          int64_t cache_bytes) {
  const Recipe& recipe = task.recipe;
  task.require_predictions(samples->path());
  if (cuts_corpus(task))
    fail<InputError>("{}: the model predicts what follows in a text, nothing of a sample as a whole",
                     samples->path());
  if (batch == 0) batch = std::min(recipe.eval.batch, samples->count());
  const Reading reading{recipe, std::move(samples)};
  return feed_of(task, reading,
                 {.purpose = Purpose::prediction,
                  .batch = batch,
                  .cache_bytes = cache_bytes,
                  .memory = memory_of(recipe),
                  .parts = {},
                  .weights = false,
                  .notes = {}});
}

}  // namespace

TaskFeed open_predictions(const Task& task, std::shared_ptr<const data::Dataset> samples, int64_t batch) {
  return predictions_feed(task, std::move(samples), batch, task.recipe.data.cache_mb << 20);
}

TaskFeed open_pass(const Task& task, std::shared_ptr<const data::Dataset> samples) {
  return predictions_feed(task, std::move(samples), 0, 0);
}

}  // namespace millrace::task
