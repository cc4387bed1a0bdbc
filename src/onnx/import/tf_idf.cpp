#include <algorithm>
#include <map>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

/// How often each of `grams` (i64 [grams, length]) stands in the rows of x [rows, columns], its items `skip`
/// apart.
Value occurrences(onnx::ImportCall& call, Value x, const Array& grams, int64_t skip) {
  const int64_t rows = call.b.shape(x)[0].size(), columns = call.b.shape(x)[1].size(),
                many = grams.shape()[0].size(), length = grams.shape()[1].size(),
                windows = columns - (length - 1) * skip;
  if (windows < 1) return call.b.broadcast(call.scalar(f32, 0), {rows, many});
  const Shape pairs{rows, windows, many};
  Value all;
  for (int64_t k = 0; k < length; ++k) {
    Array items(i64, {1, 1, many});
    for (int64_t g = 0; g < many; ++g) items.set_int(g, grams.int_at(g * length + k));
    const Value part = call.part(x, 1, k * skip, k * skip + windows);
    const Value same =
        call.b.binary("equal", call.b.broadcast(call.b.reshape(part, {rows, windows, 1}), pairs),
                      call.b.broadcast(call.constant(items), pairs));
    all = all.valid() ? call.graph.add("logical_and", {all, same}) : same;
  }
  return call.b.sum(call.b.cast(all, f32), {1}, false);
}

}  // namespace

/// Counts of n-grams, weighted.
MILLRACE_ONNX_IMPORT(TfIdfVectorizer) {
  const Ints starts = call.ints("ngram_counts"), columns = call.ints("ngram_indexes");
  const int64_t least = call.integer("min_gram_length"), most = call.integer("max_gram_length"),
                skips = call.integer("max_skip_count");
  const std::string mode = call.text("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") call.refuse("the mode '" + mode + "' is not known");
  if (columns.empty() || skips < 0 || skips > 1000 || least < 1) call.refuse("its n-grams make no sense");
  // Texts become their numbers.
  Ints pool = call.ints("pool_int64s", Ints{});
  Value x;
  Shape shape;
  if (call.has("pool_strings")) {
    std::map<std::string, int64_t> numbers;
    for (const std::string& text : call.attribute("pool_strings").texts)
      pool.push_back(numbers.emplace(text, static_cast<int64_t>(numbers.size())).first->second);
    Ints items;
    for (const std::string& text : call.texts(0).values) {
      const auto found = numbers.find(text);
      items.push_back(found == numbers.end() ? -1 : found->second);
    }
    shape = Shape(call.texts(0).shape);
    x = call.b.reshape(call.ints_constant(items), shape);
  } else {
    x = call.b.cast(call[0], i64);
    shape = call.shape(0);
  }
  if (shape.rank() < 1 || shape.rank() > 2) call.refuse("its items are neither [n] nor [batch, n]");
  const bool flat = shape.rank() == 1;
  const int64_t rows = flat ? 1 : shape[0].size(),
                width = *std::max_element(columns.begin(), columns.end()) + 1;
  if (width < 1 || width > (1 << 24) || *std::min_element(columns.begin(), columns.end()) < 0)
    call.refuse("its indexes are out of bounds");
  x = call.b.reshape(x, {rows, shape.back()});
  Value counts = call.b.broadcast(call.scalar(f32, 0), {rows, width});
  size_t gram = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const int64_t length = static_cast<int64_t>(n) + 1, from = starts[n],
                  to = n + 1 < starts.size() ? starts[n + 1] : static_cast<int64_t>(pool.size());
    if (from < 0 || to < from || to > static_cast<int64_t>(pool.size()))
      call.refuse("its ngram_counts are out of bounds");
    const int64_t many = (to - from) / length;
    if (gram + static_cast<size_t>(many) > columns.size()) call.refuse("its ngram_indexes are too few");
    const Ints own(columns.begin() + static_cast<int64_t>(gram),
                   columns.begin() + static_cast<int64_t>(gram) + many);
    gram += static_cast<size_t>(many);
    if (length < least || length > most || many == 0) continue;
    Array grams(i64, {many, length});
    for (int64_t i = 0; i < many * length; ++i) grams.set_int(i, pool[static_cast<size_t>(from + i)]);
    for (int64_t skip = 1; skip <= (length == 1 ? 1 : skips + 1); ++skip)
      counts =
          call.graph.add("scatter_add", {counts, call.ints_constant(own), occurrences(call, x, grams, skip)},
                         {{"axis", int64_t{1}}});
  }
  std::vector<double> weights(static_cast<size_t>(width), 1);
  if (call.has("weights")) {
    const std::vector<double> given = call.numbers("weights");
    if (given.size() != columns.size()) call.refuse("its weights are not as many as its n-grams");
    // By the n-gram in the pool; a weight belongs to its column.
    for (size_t i = 0; i < given.size(); ++i) weights[static_cast<size_t>(columns[i])] = given[i];
  }
  if (mode != "TF") {
    if (mode == "IDF") counts = call.b.cast(call.compare("greater", counts, 0), f32);
    counts = call.b.mul(counts, call.constant(Array::of(f32, {width}, weights)));
  }
  return {flat ? call.b.reshape(counts, {width}) : counts};
}
