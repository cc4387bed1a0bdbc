// Samples of the test set that training has, too.
#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <xxhash.h>

#include "base/fnv.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "base/words.h"
#include "check/check.h"
#include "check/columns.h"
#include "check/context.h"
#include "check/near_rows.h"

namespace millrace::check {
namespace {

constexpr const char* overlap_advice =
    "results on these say what was learnt by heart: remove copies before the data is divided, and keep "
    "copies and changed versions of one thing together (data.test_by = \"group:COLUMN\")";

/// Of each sample a number for all that the inputs see of it.
std::vector<uint64_t> row_codes(const Columns& table) {
  std::vector<uint64_t> codes(static_cast<size_t>(table.samples), 0xcbf29ce484222325);
  bool any = false;
  for (const Column* column : columns_seen(table)) {
    any = true;
    for (size_t i = 0; i < codes.size(); ++i) {
      codes[i] = (codes[i] ^ column->codes[i]) * 0x9E3779B97F4A7C15;
      codes[i] ^= codes[i] >> 29;
    }
  }
  if (!any) codes.clear();
  return codes;
}

/// Of samples that have a content of their own (files): a number for the bytes; as many as a second allows.
std::vector<uint64_t> content_codes(const data::Dataset& from, int64_t most, double seconds) {
  std::vector<uint64_t> codes;
  size_t place = from.columns().size();
  for (size_t c = 0; c < from.columns().size(); ++c)
    if (from.columns()[c].kind == data::ColumnKind::audio ||
        from.columns()[c].kind == data::ColumnKind::bytes)
      place = c;
  if (place == from.columns().size()) return codes;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < std::min(from.count(), most); ++i) {
    if (seconds_since(begin) > seconds) break;
    const data::Value value = from.read(i, place);
    if (const auto* bytes = std::get_if<data::Bytes>(&value))
      codes.push_back(XXH3_64bits(bytes->data(), bytes->size()));
  }
  return codes;
}

struct Shared {
  double tests = 0;     // share of the test set that training has
  double training = 0;  // share of training samples that training has once more
  int64_t count = 0;
};
Shared shared_codes(const std::vector<uint64_t>& training, const std::vector<uint64_t>& tests) {
  std::unordered_map<uint64_t, int64_t> times;
  for (const uint64_t code : training) ++times[code];
  Shared shared;
  for (const uint64_t code : tests) shared.count += times.contains(code);
  int64_t again = 0;
  for (const uint64_t code : training) again += times[code] > 1;
  shared.tests = static_cast<double>(shared.count) / static_cast<double>(std::max<size_t>(1, tests.size()));
  shared.training = static_cast<double>(again) / static_cast<double>(std::max<size_t>(1, training.size()));
  return shared;
}

Finding judge_shared(const Shared& shared, const char* what) {
  const std::string saw = fmt::format(
      "{} of the {} to test on ({}) are among those of training; of training's own {} are there twice",
      shared.count, what, share_text(shared.tests), share_text(shared.training));
  Finding finding = passed(saw);
  // Rows of few values are alike by chance, in training as well.
  if (shared.tests > 0.01 && shared.tests > 2 * shared.training)
    finding = failed(saw, overlap_advice);
  else if (shared.tests > 0.02 || (shared.tests > 0.001 && shared.tests > 2 * shared.training))
    finding = warned(saw, overlap_advice);
  return with_numbers(finding, {{"shared", shared.count},
                                {"share_of_tests", shared.tests},
                                {"repeated_in_training", shared.training}});
}

/// What an input finds by its own look ("12 of 1,000 pictures …").
Finding judge_repeated(const std::string& line) {
  std::string digits;
  double count = 0, of = 0;
  for (const char c : line) {
    if (c >= '0' && c <= '9') digits += c;
    if (c != ' ' || digits.empty()) continue;
    (count == 0 ? count : of) = std::stod(digits);
    digits.clear();
    if (of > 0) break;
  }
  return with_numbers(
      of > 0 && count / of > 0.01 ? failed(line, overlap_advice) : warned(line, overlap_advice),
      {{"shared", count}, {"tests", of}});
}

/// The words of a corpus, up to some millions.
std::vector<std::string> corpus_words(const data::Dataset& from, const std::string& column) {
  constexpr size_t most = 2'000'000;
  std::vector<std::string> words;
  const auto place = from.find_column(column);
  for (int64_t i = 0; place && i < from.count() && words.size() < most; ++i) {
    const data::Value value = from.read(i, *place);
    const auto* const text = std::get_if<std::string>(&value);
    const auto* const bytes = std::get_if<data::Bytes>(&value);
    if (!text && !bytes) continue;
    const std::string_view view =
        text ? std::string_view(*text)
             : std::string_view(reinterpret_cast<const char*>(bytes->view().data()), bytes->view().size());
    for (std::string& word : words_in(view)) words.push_back(std::move(word));
  }
  return words;
}

/// A number for each passage of some words, one at each word.
std::vector<uint64_t> passage_codes(std::span<const std::string> words) {
  constexpr size_t length = 10;
  std::vector<uint64_t> codes, own;
  for (const std::string& word : words) own.push_back(fnv1a(word));
  for (size_t i = 0; i + length <= own.size(); ++i) {
    uint64_t code = 0;
    for (size_t k = 0; k < length; ++k) {
      code = (code ^ own[i + k]) * 0x9E3779B97F4A7C15;
      code ^= code >> 29;
    }
    codes.push_back(code);
  }
  return codes;
}

/// Extracts of a corpus: passages to test on that are in what is trained on, word for word.
Finding judge_passages(Context& context, const task::Input& input) {
  const std::vector<std::string> columns = input.text_columns();
  if (columns.size() != 1) return not_for("rows are extracts of one text");
  const task::Recipe& recipe = context.task()->recipe;
  const std::vector<std::string> words = corpus_words(*context.samples(), columns[0]);
  std::vector<uint64_t> trained, tested;
  if (recipe.data.test.empty()) {
    // Of one corpus the end is tested on.
    const auto cut = static_cast<size_t>((1 - recipe.data.test_share) * static_cast<double>(words.size()));
    trained = passage_codes(std::span(words).subspan(0, cut));
    tested = passage_codes(std::span(words).subspan(cut));
  } else {
    trained = passage_codes(words);
    tested = passage_codes(corpus_words(*context.test_samples(), columns[0]));
  }
  constexpr size_t enough = 50;
  if (trained.size() < enough || tested.size() < enough) return not_for("these are few words");
  return judge_shared(shared_codes(trained, tested), "passages of ten words");
}

Finding run_overlap(Context& context) {
  if (!context.samples() || !context.test_samples())
    return not_for("there is no test set beside samples to train on");
  const data::Dataset &training = *context.samples(), &tests = *context.test_samples();
  Finding finding =
      not_for("inputs have no columns of values and no files of their own, or are extracts of one text");
  for (const auto& input : context.task()->inputs) {
    if (input->cuts()) return judge_passages(context, *input);
    if (const std::string line = input->repeated(training, tests); !line.empty())
      finding = worse(finding, judge_repeated(line));
    else if (input->gives() == "picture")
      finding = worse(
          finding, passed("no sample of the test set was found among those of training, by bytes or looks"));
  }
  // A row beside a picture or a sound is not all that is seen of a sample.
  const auto& inputs = context.task()->inputs;
  const bool files = std::any_of(inputs.begin(), inputs.end(),
                                 [](const auto& input) { return input->gives() == "picture"; });
  constexpr int64_t most = 1 << 20;
  const Columns table = read_table(context, training, most), others_table = read_table(context, tests, most);
  const std::vector<uint64_t> trained = row_codes(table), tested = row_codes(others_table);
  if (!files && !trained.empty() && !tested.empty()) {
    const Finding same = judge_shared(shared_codes(trained, tested), "rows");
    const Finding near = same.verdict == Verdict::pass ? judge_near(table, others_table) : same;
    return worse(finding, near.verdict == Verdict::pass ? same : near);
  }
  const std::vector<uint64_t> contents = content_codes(training, 50000, 2),
                              others = content_codes(tests, 5000, 1);
  if (!contents.empty() && !others.empty())
    return worse(finding, judge_shared(shared_codes(contents, others), "samples"));
  return finding;
}

}  // namespace

MILLRACE_CHECK_KIND(overlap){
    .name = "overlap",
    .doc = "samples of the test set that are among those of training, the same or nearly",
    .matters = "on samples that it has seen a model is tested for its memory, and looks better than it is",
    .place = 130,
    .run = run_overlap,
};

}  // namespace millrace::check
